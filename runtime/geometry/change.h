// Changes of a structure that may fail on the way, and its use by value. Internal.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "../capture.h"
#include "../observe.h"

namespace weft::detail {

/// While it lives, this thread's launches make a structure: they ask for none by the data that they are given.
class Makes {
 public:
  Makes();
  Makes(const Makes&) = delete;
  Makes& operator=(const Makes&) = delete;
  ~Makes();

 private:
  const bool before_;
};

/// Calls f(), which changes a structure; where that throws (memory may run out), `mark` says so to all who look at the
/// structure, until a change of all of it takes that back. In a capture the mark is that of what is to come, and one
/// that fails puts back what it was.
template <class F>
void change(const std::shared_ptr<std::atomic<bool>>& mark, const F& f) {
  if (Capture* c = Capture::current()) c->if_it_fails([mark, was = bool(*mark)] { *mark = was; });
  try {
    const Makes makes;
    f();
  } catch (...) {
    *mark = true;
    throw;
  }
}

/// Asks, outside of a capture and before a structure's members say otherwise, what may refuse the work that is to
/// change it. Errors: those of work that writes `written` and reads `read`: a recording that is not submitted works on
/// them.
void refuse_change(DeviceState& device, std::span<const ArrayBase* const> written,
                   std::span<const ArrayBase* const> read);

/// A launch is given the data of a structure by value: it needs the structure in their form, now or when it runs.
/// \param form     of the data, without its text
/// \param what     makes that: it is asked for by captured work, and for errors
/// Errors: as refuse_held(), of launches that are not captured.
/// Cost: some 20 nanoseconds where nothing is captured.
void use_form(const std::shared_ptr<FormCell>& cell, Form form, const std::function<std::string()>& what);

}  // namespace weft::detail

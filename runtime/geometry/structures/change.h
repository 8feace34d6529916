// Changes of a structure that may fail on the way, and its use by value. Internal.
#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <utility>

#include "../../graph/capture.h"
#include "../../work/observe.h"

namespace weft::detail {

/// Calls f(), which changes a structure; where that throws (memory may run out), `mark` says so to all who look at the
/// structure, until a change of all of it takes that back. In a capture the mark is that of what is to come, and one
/// that fails puts back what it was.
template <class F>
void change(const std::shared_ptr<std::atomic<bool>>& mark, const F& f) {
  if (Capture* c = Capture::current()) c->if_it_fails([mark, was = bool(*mark)] { *mark = was; });
  try {
    const Within makes(&Context::makes_structure, true);
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

/// Of the memory of an array; 0 for a null array, which whoever fills in data may leave there.
inline std::uint64_t serial_of(const ArrayBase& a) { return a.is_null() ? 0 : a.storage()->serial; }

/// Around work that changes a structure: what the device holds behind it is known when done() is called, and nobody
/// knows it where that does not come.
class FormChange {
 public:
  explicit FormChange(std::shared_ptr<FormCell> cell) : cell_(std::move(cell)), begun_(cell_->begin()) {}
  FormChange(const FormChange&) = delete;
  FormChange& operator=(const FormChange&) = delete;
  ~FormChange() {
    if (cell_) cell_->fail();
  }
  void done(const Form& form) { std::exchange(cell_, nullptr)->set(form, begun_); }

 private:
  std::shared_ptr<FormCell> cell_;
  const std::uint64_t begun_;
};

/// A launch is given the data of a structure by value: it needs the structure in their form, now or when it runs.
/// Errors: as refuse_held(), of launches that are not captured. Cost: some 30 nanoseconds.
void use_form(const std::shared_ptr<FormCell>& cell, const Form& form);

}  // namespace weft::detail

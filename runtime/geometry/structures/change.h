// Changes of structures on the device, direct ones and captured ones. Internal.
#pragma once
#include <span>

#include "../../work/capture.h"
#include "../../work/observe.h"

namespace weft::detail {

/// Calls f(), which builds or refits a structure. Until it has ended, and after it failed, the device holds no data of
/// the structure that kernels may query. In a capture the device holds what it held: captured work builds a structure
/// in its present memory and size, which the caller has checked.
/// \param use  gives the data as they are after f()
template <class Use, class F>
void change(const Use& use, const F& f) {
  const Quiet quiet;
  const Within makes(&Context::makes_structure, true);
  const std::shared_ptr<Generation> structure = use().structure;
  if (Capture* const capture = Capture::current()) {
    Capture::Whole whole(*capture, "a build or a refit");
    capture->builds(use());
    f();
    whole.done();
  } else {
    structure->hold(Generation::kNone);
    f();
    structure->hold(use().number);
  }
}

/// The elements of an array in a row, because structs in memory hold contiguous arrays only: the array itself, or
/// `copy`, which gets them. The copy stays where it is as long as the size stays, so that captured work may write it.
template <class T>
Array<T> in_rows(const Array<T>& a, Array<T>& copy) {
  if (a.is_contiguous()) return a;
  if (!copy.is_null() && copy.size() == a.size())
    copy.copy_from(a);
  else
    copy = a.contiguous();
  return copy;
}

/// Throws Error(invalid_argument) unless an array that a structure is given is there, and on the structure's device.
/// \param structure, what  in messages: "a mesh", "indices"
void require_array(const Device& device, const ArrayBase& array, const char* structure, const char* what);

/// Throws the errors that work which writes `written` and reads `read` would throw, because a recording that is not
/// submitted works on them. Called outside of a capture, before the structure's members change.
void refuse_change(DeviceState& device, std::span<const ArrayBase* const> written,
                   std::span<const ArrayBase* const> read);

}  // namespace weft::detail

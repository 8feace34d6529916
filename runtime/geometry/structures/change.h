// Changes of structures on the device, direct ones and captured ones. Internal.
#pragma once
#include <span>

#include "../../work/capture.h"
#include "../../work/observe.h"

namespace weft::detail {

/// Calls f(), which builds or refits a structure. Until that has ended, and after it failed, the device holds nothing
/// of the structure that may be asked. In a capture it holds what it held: work that is captured builds a structure in
/// the memory and to the size that it has, which the caller has checked. \param use  gives the data as they are after
/// f()
template <class Use, class F>
void change(const Use& use, const F& f) {
  const Quiet quiet;
  const Within makes(&Context::makes_structure, true);
  const std::shared_ptr<Generation> structure = use().structure;
  if (Capture* const capture = Capture::current()) {
    Capture::Undo undo(*capture);
    capture->builds(use());
    f();
    undo.done();
  } else {
    structure->hold(Generation::kNone);
    f();
    structure->hold(use().number);
  }
}

/// Asks, outside of a capture and before a structure's members say otherwise, what may refuse the work that is to
/// change it. Errors: those of work that writes `written` and reads `read`: a recording that is not submitted works on
/// them.
void refuse_change(DeviceState& device, std::span<const ArrayBase* const> written,
                   std::span<const ArrayBase* const> read);

}  // namespace weft::detail

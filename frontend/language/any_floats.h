// Exempts stores from debug mode's search for NaN. Internal to the library's kernels.
#pragma once

namespace weft::tracing {

/// Lets code that this thread traces while the object lives store any bits in floats, even in a kernel that looks for
/// NaN: integers that share a vector with floats, the infinite bounds of empty boxes, copies of the user's values.
class AnyFloats {
 public:
  AnyFloats();
  ~AnyFloats();
  AnyFloats(const AnyFloats&) = delete;
};

}  // namespace weft::tracing

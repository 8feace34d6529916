// Stores that debug mode's search for NaN leaves alone. Internal to the library's kernels.
#pragma once

namespace weft::tracing {

/// While it lives, what this thread traces may store any bits in floats, also in a kernel that looks for NaN: integers
/// that share a vector with floats, the infinite bounds of empty boxes, copies of what the user has put there.
class AnyFloats {
 public:
  AnyFloats();
  ~AnyFloats();
  AnyFloats(const AnyFloats&) = delete;
};

}  // namespace weft::tracing

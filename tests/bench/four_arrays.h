// A launch with four arrays and two scalars that does almost no work, for measuring the cost of launches.
#pragma once
#include <stdexcept>
#include <vector>

#include "../../runtime/weft.h"

namespace weft::bench {

struct FourArrays {
  explicit FourArrays(const Device& device)
      : a(full<float>(device, 32, 1)),
        b(full<float>(device, 32, 2)),
        c(full<float>(device, 32, 3)),
        out(zeros<float>(device, 32)) {}
  void launch_one() const { launch(k, 32, a, b, c, out, 0.5f, 2); }
  /// Errors: std::runtime_error unless a launch has run.
  void check() const {
    if (out.to_vector() != std::vector<float>(32, 7.f)) throw std::runtime_error("the kernel gives wrong results");
  }
  Array<float> a, b, c, out;
  Kernel<Arr<const float>, Arr<const float>, Arr<const float>, Arr<float>, Float, Int> k =
      kernel("four arrays, two scalars",
             [](Arr<const float> a, Arr<const float> b, Arr<const float> c, Arr<float> out, Float s, Int m) {
               Int i = tid();
               out[i] = a[i] + b[i] + c[i] + s * Float(m);
             });
};

}  // namespace weft::bench

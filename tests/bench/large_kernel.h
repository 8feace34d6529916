// A kernel of many operations of all kinds, for measuring what compilers take.
#pragma once
#include <stdexcept>
#include <string>

#include "../../runtime/weft.h"

namespace weft::bench {

/// The size of a large kernel: some twenty operations a part, and ten for each of its steps.
struct KernelSize {
  int parts = 20, steps = 4;
  int pairs = 0;  ///< of operations, beside those of the parts
};

/// Makes a kernel of operations that survive clean-up: arithmetic that no rule folds, on variables that loops and
/// branches change. \param salt  makes it another kernel, so that no cache has it
inline auto large_kernel(KernelSize size, float salt = 0) {
  return kernel("large", [size, salt](Arr<const float> x, Arr<float> y, Float scale, Int count) {
    Int i = tid();
    Float a = x[i], b = scale;
    for (int part = 0; part < size.parts; ++part) {
      for (auto k : range(count)) {
        Float t = Float(k) * a + b;
        for (int step = 0; step < size.steps; ++step) {
          t = t * a + sqrt(abs(t) + 0.5f * float(part + 1) + salt);
          b = min(b * t, a) - sin(t + float(step));
        }
        If (t > b) {
          a += t * 0.25f;
        }
        Else { b -= x[i + k]; }
      }
      y[i + part] = a * b;
    }
    for (int k = 0; k < size.pairs; ++k) a = sqrt(abs(a));
    if (size.pairs > 0) y[i] = a;
  });
}

inline std::size_t operations_of(const ir::Module& module) {
  std::size_t n = 0;
  for (const ir::Region& region : module.regions) n += region.insts.size();
  return n;
}

/// The kernel after cleaning up. Errors: std::runtime_error if it has fewer than so many operations.
inline ir::Module traced_large_kernel(KernelSize size, std::size_t operations) {
  ir::Module module = large_kernel(size).trace();
  if (const std::size_t n = operations_of(module); n < operations)
    throw std::runtime_error("the kernel has " + std::to_string(n) + " operations after cleaning up, not " +
                             std::to_string(operations));
  return module;
}

}  // namespace weft::bench

// The kernels of suite cpu by hand in C++, against which the native device's code is measured. Each runs a range of a
// launch on the calling thread; HostThreads shares a launch among threads.
#pragma once
#include <cstdint>

/// Whether the compiler has what the vectors need: GCC has.
#if defined(__GNUC__) && !defined(__clang__)
#define WEFT_HAND_VECTORS
#endif

namespace weft::bench {

/// Constants of a step of particles.
struct HandStep {
  float force[3];
  float dt;
};

/// Kernels that move numbers more than they compute. Elements are numbers side by side: three of a vec3.
struct HandArrays {
  const char* name;
  void (*saxpy)(float a, const float* x, float* y, std::int64_t begin, std::int64_t end);
  /// Rows of an n x n image.
  void (*stencil)(const float* in, float* out, int n, std::int64_t begin, std::int64_t end);
  void (*gather)(const float* x, const int* index, float* out, std::int64_t begin, std::int64_t end);
  void (*transform)(const float* m, const float* v, float* out, std::int64_t begin, std::int64_t end);
  void (*rotation)(const float* q, const float* v, float* out, std::int64_t begin, std::int64_t end);
  void (*step_arrays)(float* pos, float* vel, const float* inv_mass, HandStep step, std::int64_t begin,
                      std::int64_t end);
  void (*step_structs)(float* particles, HandStep step, std::int64_t begin, std::int64_t end);
  /// A step of the particles of the case of gradients, and the same way back: `x` and `v` then hold gradients.
  void (*particles)(float* x, float* v, const float* w, HandStep step, float stiffness, std::int64_t begin,
                    std::int64_t end);
  void (*particles_back)(float* x, float* v, const float* w, HandStep step, float stiffness, std::int64_t begin,
                         std::int64_t end);
};

/// Kernels that compute.
struct HandMaths {
  const char* name;
  void (*nbody)(const float* bodies, float* out, int n, std::int64_t begin, std::int64_t end);
  /// Rows of an n x n image.
  void (*mandelbrot)(int* out, int n, int limit, std::int64_t begin, std::int64_t end);
  void (*svd3)(const float* a, float* u, float* sigma, float* v, std::int64_t begin, std::int64_t end);
  /// Rows of an n x n image.
  void (*noise)(float* out, int n, unsigned seed, float z, std::int64_t begin, std::int64_t end);
};

/// The forms in which the kernels are written. `loops`: a loop over elements, which the compiler vectorises if it can.
/// `vectors`: several elements in the lanes of vectors, by the compiler's vector types and, where those have no
/// operator, by intrinsics.
#if defined(WEFT_HAND_VECTORS)
inline constexpr int kHandForms = 2;
#else
inline constexpr int kHandForms = 1;
#endif
/// kHandForms of each.
const HandArrays* hand_arrays();
const HandMaths* hand_maths();

}  // namespace weft::bench

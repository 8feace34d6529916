// The kernels that suites codegen and cpu time: their inputs, what the host says of the results, and weft's launch.
#pragma once
#include <cstdint>
#include <vector>

#include "../contest.h"

namespace weft::bench {

/// A kernel of weft with its arrays. `contest` is complete but for those who are compared.
struct Workload {
  Workload() = default;
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;
  Contest contest;
};

/// y = a x + y
struct Saxpy : Workload {
  static constexpr std::int64_t n = 16 << 20;
  static constexpr float a = 0.25f;
  explicit Saxpy(const Device& device);
  const std::vector<float> x0, y0;
  Array<float> x, y;
};

/// Mean of a cell and its four neighbours; the rim stays.
struct Stencil : Workload {
  static constexpr std::int64_t n = 2048;
  explicit Stencil(const Device& device);
  const std::vector<float> in0;
  Array<float, 2> in, out;
};

/// Acceleration of each body by all others, softened; w is the mass.
struct NBody : Workload {
  static constexpr std::int64_t n = 8192;
  explicit NBody(const Device& device);
  const std::vector<vec4> bodies0;
  Array<vec4> bodies;
  Array<vec3> out;
};

/// Steps until z = z^2 + c leaves the circle of radius 2.
struct Mandelbrot : Workload {
  static constexpr std::int64_t n = 1024;
  static constexpr int limit = 256;
  explicit Mandelbrot(const Device& device);
  Array<int, 2> out;
};

/// out[i] = x[index[i]]
struct Gather : Workload {
  static constexpr std::int64_t n = 4 << 20;
  explicit Gather(const Device& device);
  const std::vector<float> x0;
  const std::vector<int> index0;
  Array<float> x, out;
  Array<int> index;
};

/// out[i] = m[i] v[i], each with a matrix of its own
struct Transform : Workload {
  static constexpr std::int64_t n = 1 << 20;
  explicit Transform(const Device& device);
  const std::vector<mat44> m0;
  const std::vector<vec4> v0;
  Array<mat44> m;
  Array<vec4> v, out;
};

/// a = u diag(sigma) v^T of a million matrices
struct Svd3OfMany : Workload {
  static constexpr std::int64_t n = 1 << 20;
  explicit Svd3OfMany(const Device& device);
  const std::vector<mat33> a0;
  Array<mat33> a, u, v;
  Array<vec3> sigma;
};

/// Gradient noise in space, on a plane through it.
struct NoiseImage : Workload {
  static constexpr std::int64_t n = 2048;
  static constexpr unsigned seed = 7;
  static constexpr float z = 3.3f;
  explicit NoiseImage(const Device& device);
  Array<float, 2> out;
};

/// out[i] = v[i] turned by q[i]
struct RotationOfVectors : Workload {
  static constexpr std::int64_t n = 4 << 20;
  explicit RotationOfVectors(const Device& device);
  const std::vector<quat> q0;
  const std::vector<vec3> v0;
  Array<quat> q;
  Array<vec3> v, out;
};

/// Particles of the cases of structs.
struct ParticlesAtStart {
  static constexpr std::int64_t n = 4 << 20;
  static constexpr float step = 0.125f;
  static constexpr vec3 force{0.5f, -1, 0.25f};
  ParticlesAtStart();
  vec3 new_vel(std::size_t i) const { return vel[i] + force * inv_mass[i] * step; }
  /// Component at % 6 of the new position and velocity of particle at / 6.
  float expected(std::size_t at) const;
  const std::vector<vec3> pos, vel;
  const std::vector<float> inv_mass;
};

template <template <class> class F = Host>
struct Particle {
  F<vec3> pos, vel;
  F<float> inv_mass;
};

/// A step of particles that are kept as arrays of their fields.
struct StructOfArrays : Workload {
  explicit StructOfArrays(const Device& device);
  const ParticlesAtStart start;
  Array<vec3> pos, vel;
  Array<float> inv_mass;
};

/// The same of an array of structs.
struct ArrayOfStructs : Workload {
  explicit ArrayOfStructs(const Device& device);
  const ParticlesAtStart start;
  const std::vector<Particle<>> particles0;
  Array<Particle<>> particles;
};

/// Appends all numbers of an array's elements to a list.
template <class T>
void append(std::vector<float>& flat, const Array<T>& array) {
  const std::vector<T> values = array.to_vector();
  const auto* numbers = reinterpret_cast<const float*>(values.data());
  flat.insert(flat.end(), numbers, numbers + values.size() * sizeof(T) / sizeof(float));
}

}  // namespace weft::bench

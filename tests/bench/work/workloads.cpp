// The workloads that are arithmetic of a few lines on arrays.
#include "workloads.h"

#include <cmath>
#include <random>

namespace weft::bench {

namespace {

std::vector<int> random_indices(std::int64_t n, unsigned seed) {
  std::vector<int> index(static_cast<std::size_t>(n));
  std::mt19937 random(seed);
  for (int& i : index) i = int(random() % std::uint32_t(n));
  return index;
}

}  // namespace

Saxpy::Saxpy(const Device& device)
    : x0(random_floats(n, -1, 1, 1)), y0(random_floats(n, -1, 1, 2)), x(device, x0), y(device, y0) {
  contest.reset = [this] { y.assign(y0); };
  contest.result = [this] { return y.to_vector(); };
  contest.expected = [this](std::size_t i) { return a * x0[i] + y0[i]; };
  contest.weft = [this, k = kernel("saxpy", [](Float a, Arr<const float> x, Arr<float> y) {
                          Int i = tid();
                          y[i] += a * x[i];
                        })] { launch(k, n, a, x, y); };
}

Stencil::Stencil(const Device& device)
    : in0(random_floats(n * n, 0, 1, 3)), in(device, {n, n}, in0), out(empty<float, 2>(device, {n, n})) {
  contest.reset = [this] { out.fill(kUnwritten); };
  contest.result = [this] { return out.to_vector(); };
  contest.expected = [this](std::size_t at) {
    const std::size_t i = at / n, j = at % n;
    if (i == 0 || j == 0 || i == n - 1 || j == n - 1) return in0[at];
    return 0.2f * (in0[at] + in0[at - n] + in0[at + n] + in0[at - 1] + in0[at + 1]);
  };
  contest.weft = [this, k = kernel("stencil", [](Arr<const float, 2> in, Arr<float, 2> out) {
                          auto [i, j] = tid<2>();
                          If (i > 0 && i < in.shape(0) - 1 && j > 0 && j < in.shape(1) - 1) {
                            out(i, j) = 0.2f * (in(i, j) + in(i - 1, j) + in(i + 1, j) + in(i, j - 1) + in(i, j + 1));
                          }
                          Else { out(i, j) = in(i, j); }
                        })] {
    launch(k, {n, n}, in, out);
  };
}

NBody::NBody(const Device& device)
    : bodies0(packed<vec4>(random_floats(4 * n, 0, 1, 4))), bodies(device, bodies0), out(empty<vec3>(device, n)) {
  contest.reset = [this] { out.fill(vec3(kUnwritten)); };
  contest.result = [this] {
    std::vector<float> flat;
    append(flat, out);
    return flat;
  };
  contest.expected = [this](std::size_t at) {
    const vec4 self = bodies0[at / 3];
    double sum = 0;
    for (const vec4& other : bodies0) {
      const double d[] = {double(other.x) - self.x, double(other.y) - self.y, double(other.z) - self.z};
      sum += d[at % 3] * other.w / std::pow(d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 0.01, 1.5);
    }
    return float(sum);
  };
  contest.weft = [this, k = kernel("nbody", [](Arr<const vec4> bodies, Arr<vec3> out) {
                          Int i = tid();
                          Vec4 self = bodies[i];
                          Vec3 at(self.x, self.y, self.z), sum;
                          for (auto j : range(bodies.shape(0))) {
                            Vec4 other = bodies[j];
                            Vec3 d = Vec3(other.x, other.y, other.z) - at;
                            Float r = rsqrt(dot(d, d) + 0.01f);
                            sum += d * (other.w * r * r * r);
                          }
                          out[i] = sum;
                        })] { launch(k, n, bodies, out); };
  contest.tolerance = 1e-3;  // 8192 terms, summed in one order but rounded as the device's functions do
}

Mandelbrot::Mandelbrot(const Device& device) : out(empty<int, 2>(device, {n, n})) {
  contest.reset = [this] { out.fill(-1); };
  contest.result = [this] {
    const std::vector<int> steps = out.to_vector();
    return std::vector<float>(steps.begin(), steps.end());
  };
  contest.expected = [](std::size_t at) {
    const float cx = float(at % n) * (3.0f / n) - 2.25f, cy = float(at / n) * (3.0f / n) - 1.5f;
    float x = 0, y = 0;
    int steps = 0;
    for (; steps < limit && x * x + y * y <= 4.0f; ++steps) {
      const float t = x * x - y * y + cx;
      y = 2.0f * x * y + cy;
      x = t;
    }
    return float(steps);
  };
  contest.weft = [this, k = kernel("mandelbrot", [](Arr<int, 2> out, Int limit) {
                          auto [i, j] = tid<2>();
                          Float cx = Float(j) * (3.0f / n) - 2.25f, cy = Float(i) * (3.0f / n) - 1.5f;
                          Float x = 0, y = 0;
                          Int steps = 0;
                          While (steps < limit && x * x + y * y <= 4.0f) {
                            Float t = x * x - y * y + cx;
                            y = 2.0f * x * y + cy;
                            x = t;
                            steps += 1;
                          }
                          out(i, j) = steps;
                        })] {
    launch(k, {n, n}, out, limit);
  };
  contest.tolerance = 0;
  contest.outliers = 0.02;  // at the border of the set a rounding (a fused product, say) decides
}

Gather::Gather(const Device& device)
    : x0(random_floats(n, -1, 1, 5)),
      index0(random_indices(n, 6)),
      x(device, x0),
      out(empty<float>(device, n)),
      index(device, index0) {
  contest.reset = [this] { out.fill(kUnwritten); };
  contest.result = [this] { return out.to_vector(); };
  contest.expected = [this](std::size_t i) { return x0[std::size_t(index0[i])]; };
  contest.weft = [this, k = kernel("gather", [](Arr<const float> x, Arr<const int> index, Arr<float> out) {
                          Int i = tid();
                          out[i] = x[index[i]];
                        })] { launch(k, n, x, index, out); };
  contest.tolerance = 0;
}

Transform::Transform(const Device& device)
    : m0(packed<mat44>(random_floats(16 * n, -1, 1, 7))),
      v0(packed<vec4>(random_floats(4 * n, -1, 1, 8))),
      m(device, m0),
      v(device, v0),
      out(empty<vec4>(device, n)) {
  contest.reset = [this] { out.fill(vec4(kUnwritten)); };
  contest.result = [this] {
    std::vector<float> flat;
    append(flat, out);
    return flat;
  };
  contest.expected = [this](std::size_t at) { return (m0[at / 4] * v0[at / 4])[int(at % 4)]; };
  contest.weft = [this, k = kernel("transform", [](Arr<const mat44> m, Arr<const vec4> v, Arr<vec4> out) {
                          Int i = tid();
                          out[i] = m[i] * v[i];
                        })] { launch(k, n, m, v, out); };
}

}  // namespace weft::bench

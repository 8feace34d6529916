// Suite codegen: kernels of weft against the same kernels written by hand in GLSL, on one device and one stream.
#include <fmt/format.h>

#include <cmath>
#include <random>

#include "contest.h"

namespace weft::bench {

namespace {

using backend::Grid;
using backend::MemoryRange;
using Address = std::uint64_t;

std::string block_1d(int x) { return fmt::format("local_size_x = {}", x); }
std::string block_2d(int x, int y) { return fmt::format("local_size_x = {}, local_size_y = {}", x, y); }

// y = a x + y

void saxpy(Run& run) {
  constexpr std::int64_t n = 16 << 20;
  constexpr float a = 0.25f;
  const Device& device = run.device();
  const std::vector<float> x0 = random_floats(n, -1, 1, 1), y0 = random_floats(n, -1, 1, 2);
  Array<float> x(device, x0), y(device, y0);

  auto k = kernel("saxpy", [](Float a, Arr<const float> x, Arr<float> y) {
    Int i = tid();
    y[i] += a * x[i];
  });

  struct Args {
    Address x, y;
    float a;
    std::uint32_t count;
  } args{x.address(), y.address(), a, n};
  const std::string head =
      "layout(push_constant, scalar) uniform Args { ConstFloats x; Floats y; float a; uint count; };";
  // These are more groups than one dimension of a grid may have: spread over two dimensions, or larger groups.
  const std::string wide = glsl_kernel(block_1d(256), head + R"(
    void main() {
      uint i = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 256 + gl_LocalInvocationID.x;
      if (i >= count) return;
      y.v[i] += a * x.v[i];
    })");
  const std::string tall = glsl_kernel(block_1d(512), head + R"(
    void main() {
      uint i = gl_GlobalInvocationID.x;
      if (i >= count) return;
      y.v[i] += a * x.v[i];
    })");
  backend::Device& native = device.native();
  Contest contest;
  contest.reset = [&] { y.assign(y0); };
  contest.result = [&] { return y.to_vector(); };
  contest.expected = [&](std::size_t i) { return a * x0[i] + y0[i]; };
  contest.weft = [&] { launch(k, n, a, x, y); };
  const std::vector<MemoryRange> ranges{reads(x), updates(y)};
  contest.glsl.emplace_back(native, "GLSL 256", wide, Grid{groups(n, 256 * 256), 256, 1}, args, ranges);
  if (native.info().max_block >= 512)
    contest.glsl.emplace_back(native, "GLSL 512", tall, Grid{groups(n, 512), 1, 1}, args, ranges);
  race(run, contest);
}

// Mean of a cell and its four neighbours; the rim stays.

void stencil(Run& run) {
  constexpr std::int64_t n = 2048;
  const Device& device = run.device();
  const std::vector<float> in0 = random_floats(n * n, 0, 1, 3);
  Array<float, 2> in(device, {n, n}, in0);
  auto out = empty<float, 2>(device, {n, n});

  auto k = kernel("stencil", [](Arr<const float, 2> in, Arr<float, 2> out) {
    auto [i, j] = tid<2>();
    If (i > 0 && i < in.shape(0) - 1 && j > 0 && j < in.shape(1) - 1) {
      out(i, j) = 0.2f * (in(i, j) + in(i - 1, j) + in(i + 1, j) + in(i, j - 1) + in(i, j + 1));
    }
    Else { out(i, j) = in(i, j); }
  });

  struct Args {
    Address in, out;
    std::int32_t rows, columns;
  } args{in.address(), out.address(), n, n};
  const std::string head =
      "layout(push_constant, scalar) uniform Args { ConstFloats from; Floats to; int rows, columns; };";
  const std::string body = R"(
      if (i > 0 && i < rows - 1 && j > 0 && j < columns - 1)
        to.v[at] = 0.2 * (from.v[at] + from.v[at - columns] + from.v[at + columns] + from.v[at - 1] + from.v[at + 1]);
      else
        to.v[at] = from.v[at];
    })";
  const std::string line = head + R"(
    void main() {
      int at = int(gl_GlobalInvocationID.x);
      if (at >= rows * columns) return;
      int i = at / columns, j = at - i * columns;)" +
                           body;
  const std::string plane = head + R"(
    void main() {
      int i = int(gl_GlobalInvocationID.y), j = int(gl_GlobalInvocationID.x);
      if (i >= rows || j >= columns) return;
      int at = i * columns + j;)" +
                            body;
  backend::Device& native = device.native();
  Contest contest;
  contest.reset = [&] { out.fill(kUnwritten); };
  contest.result = [&] { return out.to_vector(); };
  contest.expected = [&](std::size_t at) {
    const std::size_t i = at / n, j = at % n;
    if (i == 0 || j == 0 || i == n - 1 || j == n - 1) return in0[at];
    return 0.2f * (in0[at] + in0[at - n] + in0[at + n] + in0[at - 1] + in0[at + 1]);
  };
  contest.weft = [&] { launch(k, {n, n}, in, out); };
  const std::vector<MemoryRange> ranges{reads(in), writes(out)};
  contest.glsl.emplace_back(native, "GLSL 256", glsl_kernel(block_1d(256), line), Grid{groups(n * n, 256), 1, 1}, args,
                            ranges);
  contest.glsl.emplace_back(native, "GLSL 16x16", glsl_kernel(block_2d(16, 16), plane),
                            Grid{groups(n, 16), groups(n, 16), 1}, args, ranges);
  contest.glsl.emplace_back(native, "GLSL 32x8", glsl_kernel(block_2d(32, 8), plane),
                            Grid{groups(n, 32), groups(n, 8), 1}, args, ranges);
  race(run, contest);
}

// Acceleration of each body by all others, softened; w is the mass.

void nbody(Run& run) {
  constexpr std::int64_t n = 8192;
  const Device& device = run.device();
  const std::vector<vec4> bodies0 = packed<vec4>(random_floats(4 * n, 0, 1, 4));
  Array<vec4> bodies(device, bodies0);
  auto out = empty<vec3>(device, n);

  auto k = kernel("nbody", [](Arr<const vec4> bodies, Arr<vec3> out) {
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
  });

  struct Args {
    Address bodies, out;
    std::int32_t count;
  } args{bodies.address(), out.address(), n};
  const std::string text = glsl_kernel(block_1d(256), R"(
    layout(push_constant, scalar) uniform Args { ConstVec4s bodies; Vec3s result; int count; };
    void main() {
      int i = int(gl_GlobalInvocationID.x);
      if (i >= count) return;
      vec3 at = bodies.v[i].xyz, sum = vec3(0);
      for (int j = 0; j < count; ++j) {
        vec4 other = bodies.v[j];
        vec3 d = other.xyz - at;
        float r = inversesqrt(dot(d, d) + 0.01);
        sum += d * (other.w * r * r * r);
      }
      result.v[i] = sum;
    })");
  Contest contest;
  contest.reset = [&] { out.fill(vec3(kUnwritten)); };
  contest.result = [&] {
    std::vector<float> flat;
    for (const vec3& v : out.to_vector()) flat.insert(flat.end(), {v.x, v.y, v.z});
    return flat;
  };
  contest.expected = [&](std::size_t at) {
    const vec4 self = bodies0[at / 3];
    double sum = 0;
    for (const vec4& other : bodies0) {
      const double d[] = {double(other.x) - self.x, double(other.y) - self.y, double(other.z) - self.z};
      sum += d[at % 3] * other.w / std::pow(d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 0.01, 1.5);
    }
    return float(sum);
  };
  contest.weft = [&] { launch(k, n, bodies, out); };
  contest.tolerance = 1e-3;  // 8192 terms, summed in one order but rounded as the device's functions do
  contest.glsl.emplace_back(device.native(), "GLSL 256", text, Grid{groups(n, 256), 1, 1}, args,
                            std::vector<MemoryRange>{reads(bodies), writes(out)});
  race(run, contest);
}

// Steps until z = z^2 + c leaves the circle of radius 2.

void mandelbrot(Run& run) {
  constexpr std::int64_t n = 1024;
  constexpr int limit = 256;
  const Device& device = run.device();
  auto out = empty<int, 2>(device, {n, n});

  auto k = kernel("mandelbrot", [](Arr<int, 2> out, Int limit) {
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
  });

  struct Args {
    Address out;
    std::int32_t n, limit;
  } args{out.address(), n, limit};
  const std::string head = "layout(push_constant, scalar) uniform Args { Ints result; int n, limit; };";
  const std::string body = R"(
      float cx = float(j) * (3.0 / 1024.0) - 2.25, cy = float(i) * (3.0 / 1024.0) - 1.5;
      float x = 0, y = 0;
      int steps = 0;
      while (steps < limit && x * x + y * y <= 4.0) {
        float t = x * x - y * y + cx;
        y = 2.0 * x * y + cy;
        x = t;
        ++steps;
      }
      result.v[at] = steps;
    })";
  const std::string line = head + R"(
    void main() {
      int at = int(gl_GlobalInvocationID.x);
      if (at >= n * n) return;
      int i = at / n, j = at - i * n;)" +
                           body;
  const std::string plane = head + R"(
    void main() {
      int i = int(gl_GlobalInvocationID.y), j = int(gl_GlobalInvocationID.x);
      if (i >= n || j >= n) return;
      int at = i * n + j;)" +
                            body;
  backend::Device& native = device.native();
  Contest contest;
  contest.reset = [&] { out.fill(-1); };
  contest.result = [&] {
    const std::vector<int> steps = out.to_vector();
    return std::vector<float>(steps.begin(), steps.end());
  };
  contest.expected = [&](std::size_t at) {
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
  contest.weft = [&] { launch(k, {n, n}, out, limit); };
  contest.tolerance = 0;
  contest.outliers = 0.02;  // at the border of the set a rounding (a fused product, say) decides
  const std::vector<MemoryRange> ranges{writes(out)};
  contest.glsl.emplace_back(native, "GLSL 256", glsl_kernel(block_1d(256), line), Grid{groups(n * n, 256), 1, 1}, args,
                            ranges);
  contest.glsl.emplace_back(native, "GLSL 16x16", glsl_kernel(block_2d(16, 16), plane),
                            Grid{groups(n, 16), groups(n, 16), 1}, args, ranges);
  contest.glsl.emplace_back(native, "GLSL 32x8", glsl_kernel(block_2d(32, 8), plane),
                            Grid{groups(n, 32), groups(n, 8), 1}, args, ranges);
  race(run, contest);
}

// out[i] = x[index[i]]

void gather(Run& run) {
  constexpr std::int64_t n = 4 << 20;
  const Device& device = run.device();
  const std::vector<float> x0 = random_floats(n, -1, 1, 5);
  std::vector<int> index0(n);
  std::mt19937 random(6);
  for (int& i : index0) i = int(random() % n);
  Array<float> x(device, x0);
  Array<int> index(device, index0);
  auto out = empty<float>(device, n);

  auto k = kernel("gather", [](Arr<const float> x, Arr<const int> index, Arr<float> out) {
    Int i = tid();
    out[i] = x[index[i]];
  });

  struct Args {
    Address x, index, out;
    std::uint32_t count;
  } args{x.address(), index.address(), out.address(), n};
  const std::string text = glsl_kernel(block_1d(256), R"(
    layout(push_constant, scalar) uniform Args { ConstFloats x; ConstInts index; Floats result; uint count; };
    void main() {
      uint i = gl_GlobalInvocationID.x;
      if (i >= count) return;
      result.v[i] = x.v[index.v[i]];
    })");
  Contest contest;
  contest.reset = [&] { out.fill(kUnwritten); };
  contest.result = [&] { return out.to_vector(); };
  contest.expected = [&](std::size_t i) { return x0[std::size_t(index0[i])]; };
  contest.weft = [&] { launch(k, n, x, index, out); };
  contest.tolerance = 0;
  contest.glsl.emplace_back(device.native(), "GLSL 256", text, Grid{groups(n, 256), 1, 1}, args,
                            std::vector<MemoryRange>{reads(x), reads(index), writes(out)});
  race(run, contest);
}

// y[i] = m[i] v[i], each with a matrix of its own

void transform(Run& run) {
  constexpr std::int64_t n = 1 << 20;
  const Device& device = run.device();
  const std::vector<mat44> m0 = packed<mat44>(random_floats(16 * n, -1, 1, 7));
  const std::vector<vec4> v0 = packed<vec4>(random_floats(4 * n, -1, 1, 8));
  Array<mat44> m(device, m0);
  Array<vec4> v(device, v0);
  auto out = empty<vec4>(device, n);

  auto k = kernel("transform", [](Arr<const mat44> m, Arr<const vec4> v, Arr<vec4> out) {
    Int i = tid();
    out[i] = m[i] * v[i];
  });

  struct Args {
    Address m, v, out;
    std::uint32_t count;
  } args{m.address(), v.address(), out.address(), n};
  const std::string matrix = glsl_kernel(block_1d(256), R"(
    layout(push_constant, scalar) uniform Args { ConstMats m; ConstVec4s v; Vec4s result; uint count; };
    void main() {
      uint i = gl_GlobalInvocationID.x;
      if (i >= count) return;
      result.v[i] = m.v[i] * v.v[i];
    })");
  const std::string rows = glsl_kernel(block_1d(256), R"(
    layout(push_constant, scalar) uniform Args { ConstVec4s m; ConstVec4s v; Vec4s result; uint count; };
    void main() {
      uint i = gl_GlobalInvocationID.x;
      if (i >= count) return;
      vec4 a = v.v[i];
      result.v[i] = vec4(dot(m.v[4 * i], a), dot(m.v[4 * i + 1], a), dot(m.v[4 * i + 2], a), dot(m.v[4 * i + 3], a));
    })");
  Contest contest;
  contest.reset = [&] { out.fill(vec4(kUnwritten)); };
  contest.result = [&] {
    std::vector<float> flat;
    for (const vec4& r : out.to_vector()) flat.insert(flat.end(), {r.x, r.y, r.z, r.w});
    return flat;
  };
  contest.expected = [&](std::size_t at) { return (m0[at / 4] * v0[at / 4])[int(at % 4)]; };
  contest.weft = [&] { launch(k, n, m, v, out); };
  const std::vector<MemoryRange> ranges{reads(m), reads(v), writes(out)};
  backend::Device& native = device.native();
  contest.glsl.emplace_back(native, "GLSL mat4", matrix, Grid{groups(n, 256), 1, 1}, args, ranges);
  contest.glsl.emplace_back(native, "GLSL rows", rows, Grid{groups(n, 256), 1, 1}, args, ranges);
  race(run, contest);
}

}  // namespace

void add_codegen(Harness& harness) {
  harness.add("codegen", "saxpy 16M", saxpy);
  harness.add("codegen", "stencil 2048^2", stencil);
  harness.add("codegen", "n-body 8192", nbody);
  harness.add("codegen", "mandelbrot 1024^2", mandelbrot);
  harness.add("codegen", "gather 4M", gather);
  harness.add("codegen", "mat44 * vec4 1M", transform);
}

}  // namespace weft::bench

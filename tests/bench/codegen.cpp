// Suite codegen: kernels of weft against the same kernels written by hand in GLSL, on one device and one stream.
#include <fmt/format.h>

#include "work/workloads.h"

namespace weft::bench {

namespace {

using backend::Grid;
using backend::MemoryRange;
using Address = std::uint64_t;

std::string block_1d(int x) { return fmt::format("local_size_x = {}", x); }
std::string block_2d(int x, int y) { return fmt::format("local_size_x = {}, local_size_y = {}", x, y); }

void saxpy(Run& run) {
  const Device& device = run.device();
  Saxpy work(device);
  constexpr std::int64_t n = Saxpy::n;
  struct Args {
    Address x, y;
    float a;
    std::uint32_t count;
  } args{work.x.address(), work.y.address(), Saxpy::a, n};
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
  const std::vector<MemoryRange> ranges{reads(work.x), updates(work.y)};
  work.contest.glsl.emplace_back(native, "GLSL 256", wide, Grid{groups(n, 256 * 256), 256, 1}, args, ranges);
  if (native.info().max_block >= 512)
    work.contest.glsl.emplace_back(native, "GLSL 512", tall, Grid{groups(n, 512), 1, 1}, args, ranges);
  race(run, work.contest);
}

void stencil(Run& run) {
  const Device& device = run.device();
  Stencil work(device);
  constexpr std::int64_t n = Stencil::n;
  struct Args {
    Address in, out;
    std::int32_t rows, columns;
  } args{work.in.address(), work.out.address(), n, n};
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
  const std::vector<MemoryRange> ranges{reads(work.in), writes(work.out)};
  work.contest.glsl.emplace_back(native, "GLSL 256", glsl_kernel(block_1d(256), line), Grid{groups(n * n, 256), 1, 1},
                                 args, ranges);
  work.contest.glsl.emplace_back(native, "GLSL 16x16", glsl_kernel(block_2d(16, 16), plane),
                                 Grid{groups(n, 16), groups(n, 16), 1}, args, ranges);
  work.contest.glsl.emplace_back(native, "GLSL 32x8", glsl_kernel(block_2d(32, 8), plane),
                                 Grid{groups(n, 32), groups(n, 8), 1}, args, ranges);
  race(run, work.contest);
}

void nbody(Run& run) {
  const Device& device = run.device();
  NBody work(device);
  constexpr std::int64_t n = NBody::n;
  struct Args {
    Address bodies, out;
    std::int32_t count;
  } args{work.bodies.address(), work.out.address(), n};
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
  work.contest.glsl.emplace_back(device.native(), "GLSL 256", text, Grid{groups(n, 256), 1, 1}, args,
                                 std::vector<MemoryRange>{reads(work.bodies), writes(work.out)});
  race(run, work.contest);
}

void mandelbrot(Run& run) {
  const Device& device = run.device();
  Mandelbrot work(device);
  constexpr std::int64_t n = Mandelbrot::n;
  struct Args {
    Address out;
    std::int32_t n, limit;
  } args{work.out.address(), n, Mandelbrot::limit};
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
  const std::vector<MemoryRange> ranges{writes(work.out)};
  work.contest.glsl.emplace_back(native, "GLSL 256", glsl_kernel(block_1d(256), line), Grid{groups(n * n, 256), 1, 1},
                                 args, ranges);
  work.contest.glsl.emplace_back(native, "GLSL 16x16", glsl_kernel(block_2d(16, 16), plane),
                                 Grid{groups(n, 16), groups(n, 16), 1}, args, ranges);
  work.contest.glsl.emplace_back(native, "GLSL 32x8", glsl_kernel(block_2d(32, 8), plane),
                                 Grid{groups(n, 32), groups(n, 8), 1}, args, ranges);
  race(run, work.contest);
}

void gather(Run& run) {
  const Device& device = run.device();
  Gather work(device);
  constexpr std::int64_t n = Gather::n;
  struct Args {
    Address x, index, out;
    std::uint32_t count;
  } args{work.x.address(), work.index.address(), work.out.address(), n};
  const std::string text = glsl_kernel(block_1d(256), R"(
    layout(push_constant, scalar) uniform Args { ConstFloats x; ConstInts index; Floats result; uint count; };
    void main() {
      uint i = gl_GlobalInvocationID.x;
      if (i >= count) return;
      result.v[i] = x.v[index.v[i]];
    })");
  work.contest.glsl.emplace_back(device.native(), "GLSL 256", text, Grid{groups(n, 256), 1, 1}, args,
                                 std::vector<MemoryRange>{reads(work.x), reads(work.index), writes(work.out)});
  race(run, work.contest);
}

void transform(Run& run) {
  const Device& device = run.device();
  Transform work(device);
  constexpr std::int64_t n = Transform::n;
  struct Args {
    Address m, v, out;
    std::uint32_t count;
  } args{work.m.address(), work.v.address(), work.out.address(), n};
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
  const std::vector<MemoryRange> ranges{reads(work.m), reads(work.v), writes(work.out)};
  backend::Device& native = device.native();
  work.contest.glsl.emplace_back(native, "GLSL mat4", matrix, Grid{groups(n, 256), 1, 1}, args, ranges);
  work.contest.glsl.emplace_back(native, "GLSL rows", rows, Grid{groups(n, 256), 1, 1}, args, ranges);
  race(run, work.contest);
}

}  // namespace

void add_codegen(Harness& harness) {
  add_against_glsl(harness, "saxpy 16M", saxpy);
  add_against_glsl(harness, "stencil 2048^2", stencil);
  add_against_glsl(harness, "n-body 8192", nbody);
  add_against_glsl(harness, "mandelbrot 1024^2", mandelbrot);
  add_against_glsl(harness, "gather 4M", gather);
  add_against_glsl(harness, "mat44 * vec4 1M", transform);
}

}  // namespace weft::bench

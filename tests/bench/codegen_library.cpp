// Suite codegen, second part: functions of the library against the same algorithms written by hand in GLSL.
#include <fmt/format.h>

#include "work/workloads.h"

namespace weft::bench {

namespace {

using backend::Grid;
using backend::MemoryRange;
using Address = std::uint64_t;

const std::string kBlock = "local_size_x = 256";

// a = u diag(sigma) v^T of a million matrices. The GLSL follows the algorithm of frontend/library/factor.cpp; `sweeps`
// is its code that repeats the sweeps: a loop, or line by line.
std::string svd3_text(const std::string& sweeps) {
  return glsl_kernel(kBlock, R"(
    layout(buffer_reference, scalar, row_major, buffer_reference_align = 4) readonly buffer ConstMat3s { mat3 v[]; };
    layout(buffer_reference, scalar, row_major, buffer_reference_align = 4) writeonly buffer Mat3s { mat3 v[]; };
    layout(push_constant, scalar) uniform Args { ConstMat3s a; Mat3s u; Vec3s sigma; Mat3s v; uint count; };
    const float tiny = 1e-18;
    float jacobi(float d, float o, out float c, out float s) {
      float e = abs(d) + tiny, o2 = o + o;
      float h2 = e * e + o2 * o2, ih = inversesqrt(h2);
      float c2 = 0.5 + 0.5 * (e * ih), ic = inversesqrt(c2);
      float large = c2 * ic, small = o * ih * ic;
      c = d < 0.0 ? small : large;
      s = d < 0.0 ? large : small;
      return h2 * ih;
    }
    void rotate(inout vec3 p, inout vec3 q, float c, float s) {
      vec3 old = p;
      p = old * c + q * s;
      q = q * c - old * s;
    }
    void annihilate(inout float dp, inout float dq, inout float opq, inout float opr, inout float oqr, out float c,
                    out float s) {
      float h = jacobi(dp - dq, opq, c, s);
      float mean = 0.5 * (dp + dq);
      dp = mean + 0.5 * h;
      dq = mean - 0.5 * h;
      opq = 0.0;
      float pr = opr;
      opr = c * pr + s * oqr;
      oqr = c * oqr - s * pr;
    }
    void sweep(inout vec3 d, inout vec3 o, inout mat3 v) {
      float c, s;
      annihilate(d.x, d.y, o.z, o.y, o.x, c, s);
      rotate(v[0], v[1], c, s);
      annihilate(d.x, d.z, o.y, o.z, o.x, c, s);
      rotate(v[0], v[2], c, s);
      annihilate(d.y, d.z, o.x, o.z, o.y, c, s);
      rotate(v[1], v[2], c, s);
    }
    void separate(inout vec3 p, inout vec3 q, inout vec3 vp, inout vec3 vq) {
      float c, s;
      jacobi(dot(p, p) - dot(q, q), dot(p, q), c, s);
      rotate(p, q, c, s);
      rotate(vp, vq, c, s);
    }
    void main() {
      uint i = gl_GlobalInvocationID.x;
      if (i >= count) return;
      mat3 m = a.v[i];
      vec3 m3 = max(max(abs(m[0]), abs(m[1])), abs(m[2]));
      int exponent = clamp(floatBitsToInt(max(max(m3.x, m3.y), m3.z)) & 0x7f800000, 0x00800000, 0x7e800000);
      m *= intBitsToFloat(0x7f000000 - exponent);
      vec3 d = vec3(dot(m[0], m[0]), dot(m[1], m[1]), dot(m[2], m[2]));
      vec3 o = vec3(dot(m[1], m[2]), dot(m[0], m[2]), dot(m[0], m[1]));
      float c0, s0, c1, s1, c2, s2;
      annihilate(d.x, d.y, o.z, o.y, o.x, c0, s0);
      annihilate(d.x, d.z, o.y, o.z, o.x, c1, s1);
      annihilate(d.y, d.z, o.x, o.z, o.y, c2, s2);
      mat3 w = mat3(c0 * c1, s0 * c1, s1, -s0, c0, 0.0, -c0 * s1, -s0 * s1, c1);
      rotate(w[1], w[2], c2, s2);
      )" + sweeps + R"(
      w[0] *= inversesqrt(dot(w[0], w[0]));
      w[1] -= w[0] * dot(w[0], w[1]);
      w[1] *= inversesqrt(dot(w[1], w[1]));
      w[2] = cross(w[0], w[1]);
      mat3 b = m * w;
      separate(b[0], b[1], w[0], w[1]);
      separate(b[0], b[2], w[0], w[2]);
      separate(b[1], b[2], w[1], w[2]);
      mat3 l;
      vec3 first = vec3(b[0].x + tiny, b[0].yz);
      l[0] = first * inversesqrt(dot(first, first));
      vec3 across = b[1] - l[0] * dot(l[0], b[1]);
      bool distinct = dot(across, across) > max(0.25 * dot(b[1], b[1]), tiny * tiny);
      if (!distinct) across = abs(l[0].x) < 0.6 ? vec3(0.0, -l[0].z, l[0].y) : vec3(-l[0].y, l[0].x, 0.0);
      l[1] = across * inversesqrt(dot(across, across));
      l[2] = cross(l[0], l[1]);
      float x = dot(l[0], b[0]), y = min(abs(dot(l[1], b[1])), x), z = clamp(dot(l[2], b[2]), -y, y);
      u.v[i] = l;
      sigma.v[i] = vec3(x, y, z) * intBitsToFloat(exponent);
      v.v[i] = w;
    })");
}

void svd3_of_random_matrices(Run& run) {
  Svd3OfMany work(run.device());
  constexpr std::int64_t n = Svd3OfMany::n;
  struct Args {
    Address a, u, sigma, v;
    std::uint32_t count;
  } args{work.a.address(), work.u.address(), work.sigma.address(), work.v.address(), n};
  const std::vector<MemoryRange> ranges{reads(work.a), writes(work.u), writes(work.sigma), writes(work.v)};
  backend::Device& native = run.device().native();
  const Grid grid{groups(n, 256), 1, 1};
  work.contest.glsl.emplace_back(native, "GLSL lines", svd3_text("sweep(d, o, w); sweep(d, o, w);"), grid, args,
                                 ranges);
  work.contest.glsl.emplace_back(native, "GLSL loop", svd3_text("for (int k = 1; k < 3; ++k) sweep(d, o, w);"), grid,
                                 args, ranges);
  race(run, work.contest);
}

void noise_image(Run& run) {
  NoiseImage work(run.device());
  constexpr std::int64_t n = NoiseImage::n;
  struct Args {
    Address out;
    std::int32_t n;
    std::uint32_t seed;
    float z;
  } args{work.out.address(), n, NoiseImage::seed, NoiseImage::z};
  const std::string head = R"(
    layout(push_constant, scalar) uniform Args { Floats result; int n; uint seed; float z; };
    uint pcg(uint x) {
      uint state = x * 747796405u + 2891336453u;
      uint word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
      return (word >> 22u) ^ word;
    }
    float corner(uint hash, vec3 d) {
      bool first = hash < 0x55555555u, second = hash < 0xaaaaaaaau;
      vec3 g = mix(vec3(0.70710678), vec3(-0.70710678), notEqual(hash & uvec3(0x1000u, 0x2000u, 0x4000u), uvec3(0)));
      return dot(mix(g, vec3(0), bvec3(first, second && !first, !second)), d);
    }
    float edge(uint hash, uint z, vec3 d, float f) {
      return mix(corner(pcg(hash ^ z), d), corner(pcg(hash ^ (z + 1u)), d - vec3(0, 0, 1)), f);
    }
    float face(uint hash, uvec3 c, vec3 d, vec3 f) {
      return mix(edge(pcg(hash ^ c.y), c.z, d, f.z), edge(pcg(hash ^ (c.y + 1u)), c.z, d - vec3(0, 1, 0), f.z), f.y);
    }
    float noise3(uint seed, vec3 p) {
      vec3 below = floor(p), t = p - below, f = t * t * t * (t * (t * 6 - 15) + 10);
      uvec3 c = uvec3(ivec3(below));
      uint hash = pcg(seed);
      return mix(face(pcg(hash ^ c.x), c, t, f), face(pcg(hash ^ (c.x + 1u)), c, t - vec3(1, 0, 0), f), f.x);
    })";
  const std::string body = R"(
      result.v[at] = noise3(seed, vec3(j, i, z) * 0.07);
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
  backend::Device& native = run.device().native();
  const std::vector<MemoryRange> ranges{writes(work.out)};
  work.contest.glsl.emplace_back(native, "GLSL 256", glsl_kernel(kBlock, line), Grid{groups(n * n, 256), 1, 1}, args,
                                 ranges);
  work.contest.glsl.emplace_back(native, "GLSL 16x16", glsl_kernel("local_size_x = 16, local_size_y = 16", plane),
                                 Grid{groups(n, 16), groups(n, 16), 1}, args, ranges);
  work.contest.glsl.emplace_back(native, "GLSL 32x8", glsl_kernel("local_size_x = 32, local_size_y = 8", plane),
                                 Grid{groups(n, 32), groups(n, 8), 1}, args, ranges);
  race(run, work.contest);
}

void rotation_of_vectors(Run& run) {
  RotationOfVectors work(run.device());
  constexpr std::int64_t n = RotationOfVectors::n;
  struct Args {
    Address q, v, out;
    std::uint32_t count;
  } args{work.q.address(), work.v.address(), work.out.address(), n};
  const std::string text = glsl_kernel(kBlock, R"(
    layout(push_constant, scalar) uniform Args { ConstVec4s q; Vec3s v; Vec3s result; uint count; };
    void main() {
      uint i = gl_GlobalInvocationID.x;
      if (i >= count) return;
      vec4 r = q.v[i];
      vec3 x = v.v[i], t = 2.0 * cross(r.xyz, x);
      result.v[i] = x + r.w * t + cross(r.xyz, t);
    })");
  work.contest.glsl.emplace_back(run.device().native(), "GLSL 256", text, Grid{groups(n, 256), 1, 1}, args,
                                 std::vector<MemoryRange>{reads(work.q), reads(work.v), writes(work.out)});
  race(run, work.contest);
}

}  // namespace

void add_codegen_library(Harness& harness) {
  add_against_glsl(harness, "svd3 1M", svd3_of_random_matrices);
  add_against_glsl(harness, "noise 2048^2", noise_image);
  add_against_glsl(harness, "quaternion rotation 4M", rotation_of_vectors);
}

}  // namespace weft::bench

// Suite codegen, structs: one update of particles, kept as arrays of their fields and as an array of structs.
#include "contest.h"

namespace weft::bench {

namespace {

using backend::Grid;
using backend::MemoryRange;
using Address = std::uint64_t;

constexpr std::int64_t kCount = 4 << 20;
constexpr float kStep = 0.125f;
constexpr vec3 kForce{0.5f, -1, 0.25f};

template <template <class> class F = Host>
struct Particle {
  F<vec3> pos, vel;
  F<float> inv_mass;
};

struct Start {
  std::vector<vec3> pos = packed<vec3>(random_floats(3 * kCount, -1, 1, 11));
  std::vector<vec3> vel = packed<vec3>(random_floats(3 * kCount, -1, 1, 12));
  std::vector<float> inv_mass = random_floats(kCount, 0.5f, 2, 13);

  vec3 new_vel(std::size_t i) const { return vel[i] + kForce * inv_mass[i] * kStep; }
  /// Component at % 6 of the new position and velocity of particle at / 6.
  float expected(std::size_t at) const {
    const std::size_t i = at / 6;
    const vec3 v = new_vel(i);
    const int c = int(at % 6);
    return c < 3 ? (pos[i] + v * kStep)[c] : v[c - 3];
  }
};

void flatten(std::vector<float>& out, const vec3& pos, const vec3& vel) {
  for (int c = 0; c < 3; ++c) out.push_back(pos[c]);
  for (int c = 0; c < 3; ++c) out.push_back(vel[c]);
}

void struct_of_arrays(Run& run) {
  const Device& device = run.device();
  const Start start;
  Array<vec3> pos(device, start.pos), vel(device, start.vel);
  Array<float> inv_mass(device, start.inv_mass);

  auto k = kernel("soa_update", [](Arr<vec3> pos, Arr<vec3> vel, Arr<const float> inv_mass, Vec3 force, Float dt) {
    Int i = tid();
    Vec3 v = vel[i] + force * inv_mass[i] * dt;
    vel[i] = v;
    pos[i] += v * dt;
  });

  struct Args {
    Address pos, vel, inv_mass;
    vec3 force;
    float dt;
    std::uint32_t count;
  } args{pos.address(), vel.address(), inv_mass.address(), kForce, kStep, kCount};
  const std::string text = glsl_kernel("local_size_x = 256", R"(
    layout(push_constant, scalar) uniform Args {
      Vec3s pos, vel; ConstFloats inv_mass; vec3 force; float dt; uint count;
    };
    void main() {
      uint i = gl_GlobalInvocationID.x;
      if (i >= count) return;
      vec3 v = vel.v[i] + force * inv_mass.v[i] * dt;
      vel.v[i] = v;
      pos.v[i] += v * dt;
    })");
  Contest contest;
  contest.reset = [&] {
    pos.assign(start.pos);
    vel.assign(start.vel);
  };
  contest.result = [&] {
    const std::vector<vec3> p = pos.to_vector(), v = vel.to_vector();
    std::vector<float> flat;
    for (std::size_t i = 0; i < p.size(); ++i) flatten(flat, p[i], v[i]);
    return flat;
  };
  contest.expected = [&](std::size_t at) { return start.expected(at); };
  contest.weft = [&] { launch(k, kCount, pos, vel, inv_mass, kForce, kStep); };
  contest.glsl.emplace_back(device.native(), "GLSL 256", text, Grid{groups(kCount, 256), 1, 1}, args,
                            std::vector<MemoryRange>{updates(pos), updates(vel), reads(inv_mass)});
  race(run, contest);
}

void array_of_structs(Run& run) {
  const Device& device = run.device();
  const Start start;
  std::vector<Particle<>> particles0;
  for (std::size_t i = 0; i < kCount; ++i) particles0.push_back({start.pos[i], start.vel[i], start.inv_mass[i]});
  Array<Particle<>> particles(device, particles0);

  auto k = kernel("aos_update", [](Arr<Particle<>> particles, Vec3 force, Float dt) {
    Int i = tid();
    Var<Particle<>> p = particles[i];
    p.vel += force * p.inv_mass * dt;
    p.pos += p.vel * dt;
    particles[i] = p;
  });

  struct Args {
    Address particles;
    vec3 force;
    float dt;
    std::uint32_t count;
  } args{particles.address(), kForce, kStep, kCount};
  const std::string head = R"(
    struct Particle { vec3 pos, vel; float inv_mass; };
    layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Particles { Particle v[]; };
    layout(push_constant, scalar) uniform Args { Particles particles; vec3 force; float dt; uint count; };)";
  const std::string fields = glsl_kernel("local_size_x = 256", head + R"(
    void main() {
      uint i = gl_GlobalInvocationID.x;
      if (i >= count) return;
      vec3 v = particles.v[i].vel + force * particles.v[i].inv_mass * dt;
      particles.v[i].vel = v;
      particles.v[i].pos += v * dt;
    })");
  const std::string whole = glsl_kernel("local_size_x = 256", head + R"(
    void main() {
      uint i = gl_GlobalInvocationID.x;
      if (i >= count) return;
      Particle p = particles.v[i];
      p.vel += force * p.inv_mass * dt;
      p.pos += p.vel * dt;
      particles.v[i] = p;
    })");
  Contest contest;
  contest.reset = [&] { particles.assign(particles0); };
  contest.result = [&] {
    std::vector<float> flat;
    for (const Particle<>& p : particles.to_vector()) flatten(flat, p.pos, p.vel);
    return flat;
  };
  contest.expected = [&](std::size_t at) { return start.expected(at); };
  contest.weft = [&] { launch(k, kCount, particles, kForce, kStep); };
  const std::vector<MemoryRange> ranges{updates(particles)};
  contest.glsl.emplace_back(device.native(), "GLSL fields", fields, Grid{groups(kCount, 256), 1, 1}, args, ranges);
  contest.glsl.emplace_back(device.native(), "GLSL whole", whole, Grid{groups(kCount, 256), 1, 1}, args, ranges);
  race(run, contest);
}

}  // namespace

void add_structs(Harness& harness) {
  harness.add("codegen", "struct of arrays 4M", struct_of_arrays);
  harness.add("codegen", "array of structs 4M", array_of_structs);
}

}  // namespace weft::bench

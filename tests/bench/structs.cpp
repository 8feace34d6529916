// Suite codegen, structs: one update of particles, kept as arrays of their fields and as an array of structs.
#include "work/workloads.h"

namespace weft::bench {

namespace {

using backend::Grid;
using backend::MemoryRange;
using Address = std::uint64_t;

void struct_of_arrays(Run& run) {
  StructOfArrays work(run.device());
  struct Args {
    Address pos, vel, inv_mass;
    vec3 force;
    float dt;
    std::uint32_t count;
  } args{work.pos.address(),      work.vel.address(),     work.inv_mass.address(),
         ParticlesAtStart::force, ParticlesAtStart::step, ParticlesAtStart::n};
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
  work.contest.glsl.emplace_back(run.device().native(), "GLSL 256", text, Grid{groups(ParticlesAtStart::n, 256), 1, 1},
                                 args,
                                 std::vector<MemoryRange>{updates(work.pos), updates(work.vel), reads(work.inv_mass)});
  race(run, work.contest);
}

void array_of_structs(Run& run) {
  ArrayOfStructs work(run.device());
  struct Args {
    Address particles;
    vec3 force;
    float dt;
    std::uint32_t count;
  } args{work.particles.address(), ParticlesAtStart::force, ParticlesAtStart::step, ParticlesAtStart::n};
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
  const std::vector<MemoryRange> ranges{updates(work.particles)};
  work.contest.glsl.emplace_back(run.device().native(), "GLSL fields", fields,
                                 Grid{groups(ParticlesAtStart::n, 256), 1, 1}, args, ranges);
  work.contest.glsl.emplace_back(run.device().native(), "GLSL whole", whole,
                                 Grid{groups(ParticlesAtStart::n, 256), 1, 1}, args, ranges);
  race(run, work.contest);
}

}  // namespace

void add_structs(Harness& harness) {
  add_against_glsl(harness, "struct of arrays 4M", struct_of_arrays);
  add_against_glsl(harness, "array of structs 4M", array_of_structs);
}

}  // namespace weft::bench

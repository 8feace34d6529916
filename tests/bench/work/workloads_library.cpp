// The workloads that call the library, and those of structs.
#include "workloads.h"

namespace weft::bench {

namespace {

std::vector<quat> random_rotations(std::int64_t n, unsigned seed) {
  std::vector<quat> q = packed<quat>(random_floats(std::size_t(4 * n), -1, 1, seed));
  for (quat& each : q) each = normalize(each);
  return q;
}

std::vector<Particle<>> as_structs(const ParticlesAtStart& start) {
  std::vector<Particle<>> particles;
  for (std::size_t i = 0; i < start.pos.size(); ++i)
    particles.push_back({start.pos[i], start.vel[i], start.inv_mass[i]});
  return particles;
}

void flatten(std::vector<float>& out, const vec3& pos, const vec3& vel) {
  for (int c = 0; c < 3; ++c) out.push_back(pos[c]);
  for (int c = 0; c < 3; ++c) out.push_back(vel[c]);
}

}  // namespace

Svd3OfMany::Svd3OfMany(const Device& device)
    : a0(packed<mat33>(random_floats(9 * n, -1, 1, 9))),
      a(device, a0),
      u(empty<mat33>(device, n)),
      v(empty<mat33>(device, n)),
      sigma(empty<vec3>(device, n)) {
  contest.reset = [this] {
    mat33 unwritten;
    for (float& x : unwritten.m) x = kUnwritten;
    u.fill(unwritten);
    v.fill(unwritten);
    sigma.fill(vec3(kUnwritten));
  };
  contest.result = [this] {
    std::vector<float> flat;
    append(flat, sigma);
    append(flat, u);
    append(flat, v);
    return flat;
  };
  contest.expected = [this](std::size_t at) {
    if (at < 3 * n) return svd3(a0[at / 3]).sigma[int(at % 3)];
    const std::size_t e = at - 3 * n;
    return e < 9 * n ? svd3(a0[e / 9]).u.m[e % 9] : svd3(a0[e / 9 - n]).v.m[e % 9];
  };
  contest.weft = [this, k = kernel("svd3", [](Arr<const mat33> a, Arr<mat33> u, Arr<vec3> sigma, Arr<mat33> v) {
                          Int i = tid();
                          svd3(a[i], u[i], sigma[i], v[i]);
                        })] { launch(k, n, a, u, sigma, v); };
  contest.tolerance = 1e-3;  // vectors of close singular values turn with rounding errors
  contest.outliers = 0.01;
}

NoiseImage::NoiseImage(const Device& device) : out(empty<float, 2>(device, {n, n})) {
  contest.reset = [this] { out.fill(kUnwritten); };
  contest.result = [this] { return out.to_vector(); };
  contest.expected = [](std::size_t at) { return noise(seed, vec3(float(at % n), float(at / n), z) * 0.07f); };
  contest.weft = [this, k = kernel("noise", [](Arr<float, 2> out, UInt seed, Float z) {
                          auto [i, j] = tid<2>();
                          out(i, j) = noise(seed, Vec3(Float(j), Float(i), z) * 0.07f);
                        })] {
    launch(k, {n, n}, out, seed, z);
  };
  contest.tolerance = 1e-4;  // places far from the origin are rounded once or twice
}

RotationOfVectors::RotationOfVectors(const Device& device)
    : q0(random_rotations(n, 10)),
      v0(packed<vec3>(random_floats(3 * n, -1, 1, 11))),
      q(device, q0),
      v(device, v0),
      out(empty<vec3>(device, n)) {
  contest.reset = [this] { out.fill(vec3(kUnwritten)); };
  contest.result = [this] {
    std::vector<float> flat;
    append(flat, out);
    return flat;
  };
  contest.expected = [this](std::size_t at) { return quat_rotate(q0[at / 3], v0[at / 3])[int(at % 3)]; };
  contest.weft = [this, k = kernel("rotation", [](Arr<const quat> q, Arr<const vec3> v, Arr<vec3> out) {
                          Int i = tid();
                          out[i] = quat_rotate(q[i], v[i]);
                        })] { launch(k, n, q, v, out); };
}

ParticlesAtStart::ParticlesAtStart()
    : pos(packed<vec3>(random_floats(3 * n, -1, 1, 11))),
      vel(packed<vec3>(random_floats(3 * n, -1, 1, 12))),
      inv_mass(random_floats(n, 0.5f, 2, 13)) {}

float ParticlesAtStart::expected(std::size_t at) const {
  const std::size_t i = at / 6;
  const vec3 v = new_vel(i);
  const int c = int(at % 6);
  return c < 3 ? (pos[i] + v * step)[c] : v[c - 3];
}

StructOfArrays::StructOfArrays(const Device& device)
    : pos(device, start.pos), vel(device, start.vel), inv_mass(device, start.inv_mass) {
  contest.reset = [this] {
    pos.assign(start.pos);
    vel.assign(start.vel);
  };
  contest.result = [this] {
    const std::vector<vec3> p = pos.to_vector(), v = vel.to_vector();
    std::vector<float> flat;
    for (std::size_t i = 0; i < p.size(); ++i) flatten(flat, p[i], v[i]);
    return flat;
  };
  contest.expected = [this](std::size_t at) { return start.expected(at); };
  contest.weft = [this, k = kernel("soa_update",
                                   [](Arr<vec3> pos, Arr<vec3> vel, Arr<const float> inv_mass, Vec3 force, Float dt) {
                                     Int i = tid();
                                     Vec3 v = vel[i] + force * inv_mass[i] * dt;
                                     vel[i] = v;
                                     pos[i] += v * dt;
                                   })] { launch(k, start.n, pos, vel, inv_mass, start.force, start.step); };
}

ArrayOfStructs::ArrayOfStructs(const Device& device) : particles0(as_structs(start)), particles(device, particles0) {
  contest.reset = [this] { particles.assign(particles0); };
  contest.result = [this] {
    std::vector<float> flat;
    for (const Particle<>& p : particles.to_vector()) flatten(flat, p.pos, p.vel);
    return flat;
  };
  contest.expected = [this](std::size_t at) { return start.expected(at); };
  contest.weft = [this, k = kernel("aos_update", [](Arr<Particle<>> particles, Vec3 force, Float dt) {
                          Int i = tid();
                          Var<Particle<>> p = particles[i];
                          p.vel += force * p.inv_mass * dt;
                          p.pos += p.vel * dt;
                          particles[i] = p;
                        })] { launch(k, start.n, particles, start.force, start.step); };
}

}  // namespace weft::bench

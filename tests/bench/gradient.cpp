// Suite gradient: the way back through a kernel against the kernel itself.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <fstream>

#include "../../runtime/tape.h"
#include "contest.h"
#include "peers/elsewhere.h"
#include "work/particle_gradient.h"

namespace weft::bench {

namespace {

/// A case: a forward launch, the seed of its result, and a gradient that the host knows. Its functions hold the arrays.
struct Case {
  std::function<void()> launch;
  std::function<void(Tape&)> backward;
  std::function<void(Tape&)> check;  ///< the way back for the gradient that is compared; backward where it is not set
  std::function<float()> found, expected;
  double tolerance = 1e-3;
};

/// Launches of a round, so that the device works longer than the host.
constexpr int kRepeats = 4;

/// Times some work of the device; `each` is done several times.
std::function<void()> repeated(Stream stream, std::function<void()> each) {
  return [stream, each = std::move(each)]() mutable {
    for (int i = 0; i < kRepeats; ++i) each();
    stream.synchronize();
  };
}

/// Times two sides in turn.
void race(Run& run, const std::function<void()>& ours, const std::function<void()>& theirs, const char* name) {
  const Stream stream = run.device().stream();
  const auto timings = interleave({repeated(stream, ours), repeated(stream, theirs)}, run.rounds());
  const auto each = [](Timing t) { return Timing{t.seconds / kRepeats, t.spread}; };
  run.compare(each(timings[0]), {name, each(timings[1])}, "ms");
}

/// Records the case and compares its gradient with the known one.
void record(Tape& tape, const Case& c) {
  tape.record(c.launch);
  (c.check ? c.check : c.backward)(tape);
  const float found = c.found(), expected = c.expected();
  if (!(std::abs(found - expected) <= c.tolerance * std::max(1.0f, std::abs(expected))))
    throw std::runtime_error("the gradient is " + std::to_string(found) + ", not " + std::to_string(expected));
  tape.zero();
}

void race_backward(Run& run, const Case& c, const TapeOptions& options = {}) {
  Tape tape(options);
  record(tape, c);
  race(
      run, [&] { c.backward(tape); }, c.launch, "forward");
}

/// The way back with sums that do not depend on an order, against the usual one.
void race_deterministic(Run& run, const Case& c) {
  Tape tape(TapeOptions{.deterministic = true}), usual;
  try {
    record(tape, c);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::unsupported) throw;
    return run.leave_out(e.message());
  }
  record(usual, c);
  race(
      run, [&] { c.backward(tape); }, [&] { c.backward(usual); }, "usual tape");
}

/// Asks for the gradient of the sum of one element's components.
Array<vec3> seed_of(const Device& device, int n, std::size_t element) {
  std::vector<vec3> seed(std::size_t(n), vec3{0, 0, 0});
  seed[element] = {1, 1, 1};
  return Array<vec3>(device, seed);
}

Case spring(const Device& device) {
  constexpr int n = 1 << 20;
  auto x = Array<vec3>(device, packed<vec3>(random_floats(3 * n, -1, 1, 21))).requires_grad();
  std::vector<vec2i> pairs;
  for (int i = 0; i < n; ++i) pairs.push_back({i, int((i * 7ll + 1) % n)});
  const Array<vec2i> ends(device, pairs);
  auto force = zeros<vec3>(device, n);
  const auto seed = ones<vec3>(device, n);
  auto k = kernel("spring", [](Arr<const vec3> x, Arr<const vec2i> ends, Arr<vec3> force) {
    Vec2i e = ends[tid()];
    Vec3 d = x[e[0]] - x[e[1]];
    Float l = length(d);
    Vec3 f = d * ((l - 0.5f) * 10.0f / l);
    atomic_add(force[e[0]], -f);
    atomic_add(force[e[1]], f);
  });
  Case c;
  c.launch = [=] { launch(k, n, x, ends, force); };
  c.backward = [=](Tape& tape) { tape.backward({{force, seed}}); };
  // The force on end 0 by end 1 is f = 10 d - 5 d / |d| for d = x0 - x1, pulling 0 towards 1.
  c.check = [=](Tape& tape) { tape.backward({{force, seed_of(device, n, 0)}}); };
  c.found = [=] { return x.grad().at(1)[0]; };
  c.expected = [=] {
    const vec3 d = x.at(0) - x.at(1);
    const float l = length(d);
    return 10 - 5 / l + 5 * d[0] * (d[0] + d[1] + d[2]) / (l * l * l);
  };
  return c;
}

void svd(Run& run) {
  const Device& device = run.device();
  constexpr int n = 1 << 18;
  auto a = Array<mat33>(device, packed<mat33>(random_floats(9 * n, -1, 1, 22))).requires_grad();
  auto sigma = zeros<vec3>(device, n);
  auto u = zeros<mat33>(device, n), v = zeros<mat33>(device, n);
  const auto seed = full<vec3>(device, n, vec3{2, 0, 0});
  auto k = kernel("svd3", [](Arr<const mat33> a, Arr<mat33> u, Arr<vec3> sigma, Arr<mat33> v) {
    Int i = tid();
    auto [su, ss, sv] = svd3(a[i]);
    u[i] = su;
    sigma[i] = ss;
    v[i] = sv;
  });
  Case c;
  c.launch = [&] { launch(k, n, a, u, sigma, v); };
  c.backward = [&](Tape& tape) {
    a.zero_grad();
    tape.backward({{sigma, seed}});
  };
  // d sigma_0 / d a = u_0 v_0^T.
  c.found = [&] { return a.grad().at(77)(1, 2); };
  c.expected = [&] { return 2 * u.at(77)(1, 0) * v.at(77)(2, 0); };
  race_backward(run, c);
}

constexpr float kSoftening = 0.01f;

/// Forces of 2048 bodies on each other, by a kernel that `launch_forces(positions, forces, n)` launches.
Case n_body(const Device& device,
            const std::function<void(const Array<vec3>&, const Array<vec3>&, int)>& launch_forces) {
  constexpr int n = 2048;
  auto x = Array<vec3>(device, packed<vec3>(random_floats(3 * n, -1, 1, 23))).requires_grad();
  auto force = zeros<vec3>(device, n);
  const auto seed = ones<vec3>(device, n);
  Case c;
  c.launch = [=] { launch_forces(x, force, n); };
  c.backward = [=](Tape& tape) mutable {
    x.zero_grad();
    tape.backward({{force, seed}});
  };
  // The force on body 0 by body 9 is r / (r^2 + softening)^(3/2).
  c.check = [=](Tape& tape) { tape.backward({{force, seed_of(device, n, 0)}}); };
  c.found = [=] { return x.grad().at(9)[1]; };
  c.expected = [=] {
    const vec3 r = x.at(9) - x.at(0);
    const float inv = 1 / std::sqrt(dot(r, r) + kSoftening);
    return inv * inv * inv - 3 * (r[0] + r[1] + r[2]) * r[1] * std::pow(inv, 5.0f);
  };
  return c;
}

/// Computes the forces with a thread for each pair.
Case pairs(const Device& device) {
  auto k = kernel("n-body pairs", [](Arr<const vec3> x, Arr<vec3> force) {
    auto [i, j] = tid<2>();
    Vec3 r = x[j] - x[i];
    Float inv = rsqrt(dot(r, r) + kSoftening);
    atomic_add(force[i], r * (inv * inv * inv));
  });
  return n_body(device, [=](const auto& x, const auto& force, int n) { launch(k, {n, n}, x, force); });
}

/// Computes the forces with a thread for each body.
Case all_bodies(const Device& device) {
  auto k = kernel("n-body", [](Arr<const vec3> x, Arr<vec3> force, Int n) {
    Int i = tid();
    Vec3 at = x[i], sum(0, 0, 0);
    for (auto j : range(n)) {
      Vec3 r = x[j] - at;
      Float inv = rsqrt(dot(r, r) + kSoftening);
      sum += r * (inv * inv * inv);
    }
    force[i] = sum;
  });
  return n_body(device, [=](const auto& x, const auto& force, int n) { launch(k, n, x, force, n); });
}

void loop(Run& run) {
  const Device& device = run.device();
  constexpr int n = 1 << 14, steps = 1000;
  auto x = full<vec3>(device, n, vec3{1, 0, 0.5f}).requires_grad();
  auto out = zeros<vec3>(device, n);
  const auto seed = full<vec3>(device, n, vec3{0, 0, 1});
  // A mass on a spring in a drift; the third component is damped by itself and has a closed form.
  auto k = kernel("loop", [](Arr<const vec3> x, Arr<vec3> out, Int steps) {
    Vec3 p = x[tid()], v(0, 0, 0);
    for ([[maybe_unused]] auto i : range(steps)) {
      Vec3 a = p * (-1.0f / (0.1f + p[0] * p[0] + p[1] * p[1])) + cross(v, Vec3(0, 0, 1)) - v * 0.1f;
      v += Vec3(a[0], a[1], 0) * 0.01f;
      p = Vec3(p[0] + v[0] * 0.01f, p[1] + v[1] * 0.01f, p[2] * 0.999f);
    }
    out[tid()] = p;
  });
  Case c;
  c.launch = [&] { launch(k, n, x, out, steps); };
  c.backward = [&](Tape& tape) {
    x.zero_grad();
    tape.backward({{out, seed}});
  };
  c.found = [&] { return x.grad().at(3)[2]; };
  c.expected = [] { return float(std::pow(0.999, steps)); };
  race_backward(run, c, {.loop_slots = 8});
}

/// Times the particle system of Warp's documents, forward and back, against warp-lang on its CPU device. Warp's tape
/// needs arrays of its own for each step; weft's keeps what is overwritten.
void particles(Run& run) {
  const auto warp = ask_python("particles.py",
                               fmt::format("{} {} {}", ParticleGradient::n, ParticleGradient::steps, run.rounds()), 3);
  ParticleGradient work(run.device());
  std::vector<double> samples;
  for (int round = 0; round < run.rounds() + 1; ++round) {
    work.reset();
    const auto start = std::chrono::steady_clock::now();
    work.run();
    if (round > 0) samples.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  work.check();
  if (warp && std::abs(work.gradient() - (*warp)[2]) > 1e-3 * std::abs((*warp)[2]))
    throw std::runtime_error(fmt::format("the gradient is {}, and warp-lang's {}", work.gradient(), (*warp)[2]));
  run.compare(summarise(std::move(samples)), warp_reference(warp, {0, 1}), "ms");
}

}  // namespace

void add_gradient(Harness& harness) {
  harness.add("gradient", "spring force 1M", [](Run& run) { race_backward(run, spring(run.device())); });
  harness.add("gradient", "svd3 256k", svd);
  harness.add("gradient", "n-body force, 2048^2 pairs", [](Run& run) { race_backward(run, pairs(run.device())); });
  harness.add("gradient", "n-body force, loop over 2048",
              [](Run& run) { race_backward(run, all_bodies(run.device())); });
  harness.add("gradient", "loop of 1000 steps, 8 slots", loop);
  harness.add("gradient", "spring force 1M, deterministic",
              [](Run& run) { race_deterministic(run, spring(run.device())); });
  harness.add("gradient", "n-body force, 2048^2 pairs, deterministic",
              [](Run& run) { race_deterministic(run, pairs(run.device())); });
  harness.add("gradient", "n-body force, loop over 2048, deterministic",
              [](Run& run) { race_deterministic(run, all_bodies(run.device())); });
  harness.add("gradient", "100k particles, 60 steps", particles);
}

}  // namespace weft::bench

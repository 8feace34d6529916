// Suite cpu: kernels on the native device against the same kernels by hand.
#include <fmt/format.h>

#include "../peers/elsewhere.h"
#include "../peers/hand.h"
#include "../work/particle_gradient.h"
#include "contest_on_host.h"

namespace weft::bench {

namespace {

/// The numbers of an array of the native device, whose addresses are pointers of the host.
template <class T = float>
T* numbers(const ArrayBase& array) {
  return reinterpret_cast<T*>(array.address());
}

/// Units of a launch that a thread takes at a time: a 32nd of it, in multiples of `of`.
std::int64_t chunk_of(std::int64_t units, std::int64_t of) { return std::max(of, units / 32 / of * of); }

/// The sides by hand of a kernel in all its forms. `run` runs a range of its units with the functions of a form.
template <class Form>
std::vector<Side> sides_of(HostThreads& threads, const Form* forms, std::int64_t units, std::int64_t multiple,
                           const std::function<void(const Form&, std::int64_t, std::int64_t)>& run) {
  std::vector<Side> sides;
  for (int k = 0; k < kHandForms; ++k)
    sides.push_back({forms[k].name, [=, &threads, &form = forms[k]] {
                       threads.run(units, chunk_of(units, multiple),
                                   [&](std::int64_t begin, std::int64_t end) { run(form, begin, end); });
                     }});
  return sides;
}
using OfArrays = std::function<void(const HandArrays&, std::int64_t, std::int64_t)>;
using OfMaths = std::function<void(const HandMaths&, std::int64_t, std::int64_t)>;

/// What is the same in all cases of a workload. `by_hand(work, threads)` returns the sides, `inputs(work, file)` writes
/// what the scripts read.
template <class Work, class ByHand, class Inputs>
void race_work(Run& run, const char* script, const ByHand& by_hand, const Inputs& inputs) {
  if (!needs_native(run)) return;
  Work work(run.device());
  std::optional<Work> there;
  if (const std::optional<Device> vulkan = software_vulkan()) there.emplace(*vulkan);
  HostThreads threads(run.threads());
  race_on_host(run, work, there ? &*there : nullptr, by_hand(work, threads),
               {script, [&](std::ofstream& file) { inputs(work, file); }});
}

void saxpy(Run& run) {
  race_work<Saxpy>(
      run, "saxpy",
      [](Saxpy& w, HostThreads& threads) {
        const OfArrays side = [x = numbers(w.x), y = numbers(w.y)](const HandArrays& hand, std::int64_t b,
                                                                   std::int64_t e) {
          hand.saxpy(Saxpy::a, x, y, b, e);
        };
        return sides_of(threads, hand_arrays(), w.n, 64, side);
      },
      [](const Saxpy& w, std::ofstream& file) { write_numbers(file, w.x0), write_numbers(file, w.y0); });
}

void stencil(Run& run) {
  race_work<Stencil>(
      run, "stencil",
      [](Stencil& w, HostThreads& threads) {
        const OfArrays side = [in = numbers(w.in), out = numbers(w.out)](const HandArrays& hand, std::int64_t b,
                                                                         std::int64_t e) {
          hand.stencil(in, out, Stencil::n, b, e);
        };
        return sides_of(threads, hand_arrays(), w.n, 1, side);
      },
      [](const Stencil& w, std::ofstream& file) { write_numbers(file, w.in0); });
}

void nbody(Run& run) {
  race_work<NBody>(
      run, "nbody",
      [](NBody& w, HostThreads& threads) {
        const OfMaths side = [bodies = numbers(w.bodies), out = numbers(w.out)](const HandMaths& hand, std::int64_t b,
                                                                                std::int64_t e) {
          hand.nbody(bodies, out, NBody::n, b, e);
        };
        return sides_of(threads, hand_maths(), w.n, 64, side);
      },
      [](const NBody& w, std::ofstream& file) { write_numbers(file, w.bodies0); });
}

void mandelbrot(Run& run) {
  race_work<Mandelbrot>(
      run, "mandelbrot",
      [](Mandelbrot& w, HostThreads& threads) {
        const OfMaths side = [out = numbers<int>(w.out)](const HandMaths& hand, std::int64_t b, std::int64_t e) {
          hand.mandelbrot(out, Mandelbrot::n, Mandelbrot::limit, b, e);
        };
        return sides_of(threads, hand_maths(), w.n, 1, side);
      },
      [](const Mandelbrot&, std::ofstream&) {});
}

void gather(Run& run) {
  race_work<Gather>(
      run, "gather",
      [](Gather& w, HostThreads& threads) {
        const OfArrays side = [x = numbers(w.x), index = numbers<int>(w.index), out = numbers(w.out)](
                                  const HandArrays& hand, std::int64_t b, std::int64_t e) {
          hand.gather(x, index, out, b, e);
        };
        return sides_of(threads, hand_arrays(), w.n, 64, side);
      },
      [](const Gather& w, std::ofstream& file) { write_numbers(file, w.x0), write_numbers(file, w.index0); });
}

void transform(Run& run) {
  race_work<Transform>(
      run, "transform",
      [](Transform& w, HostThreads& threads) {
        const OfArrays side = [m = numbers(w.m), v = numbers(w.v), out = numbers(w.out)](
                                  const HandArrays& hand, std::int64_t b, std::int64_t e) {
          hand.transform(m, v, out, b, e);
        };
        return sides_of(threads, hand_arrays(), w.n, 64, side);
      },
      [](const Transform& w, std::ofstream& file) { write_numbers(file, w.m0), write_numbers(file, w.v0); });
}

void svd3_of_many(Run& run) {
  race_work<Svd3OfMany>(
      run, "svd3",
      [](Svd3OfMany& w, HostThreads& threads) {
        const OfMaths side = [a = numbers(w.a), u = numbers(w.u), sigma = numbers(w.sigma), v = numbers(w.v)](
                                 const HandMaths& hand, std::int64_t b, std::int64_t e) {
          hand.svd3(a, u, sigma, v, b, e);
        };
        return sides_of(threads, hand_maths(), w.n, 64, side);
      },
      [](const Svd3OfMany& w, std::ofstream& file) { write_numbers(file, w.a0); });
}

void noise_image(Run& run) {
  race_work<NoiseImage>(
      run, "noise",
      [](NoiseImage& w, HostThreads& threads) {
        const OfMaths side = [out = numbers(w.out)](const HandMaths& hand, std::int64_t b, std::int64_t e) {
          hand.noise(out, NoiseImage::n, NoiseImage::seed, NoiseImage::z, b, e);
        };
        return sides_of(threads, hand_maths(), w.n, 1, side);
      },
      [](const NoiseImage&, std::ofstream&) {});
}

void rotation(Run& run) {
  race_work<RotationOfVectors>(
      run, "rotation",
      [](RotationOfVectors& w, HostThreads& threads) {
        const OfArrays side = [q = numbers(w.q), v = numbers(w.v), out = numbers(w.out)](
                                  const HandArrays& hand, std::int64_t b, std::int64_t e) {
          hand.rotation(q, v, out, b, e);
        };
        return sides_of(threads, hand_arrays(), w.n, 64, side);
      },
      [](const RotationOfVectors& w, std::ofstream& file) { write_numbers(file, w.q0), write_numbers(file, w.v0); });
}

constexpr HandStep kStep{{ParticlesAtStart::force.x, ParticlesAtStart::force.y, ParticlesAtStart::force.z},
                         ParticlesAtStart::step};

void struct_of_arrays(Run& run) {
  race_work<StructOfArrays>(
      run, "arrays",
      [](StructOfArrays& w, HostThreads& threads) {
        const OfArrays side = [pos = numbers(w.pos), vel = numbers(w.vel), inv_mass = numbers(w.inv_mass)](
                                  const HandArrays& hand, std::int64_t b, std::int64_t e) {
          hand.step_arrays(pos, vel, inv_mass, kStep, b, e);
        };
        return sides_of(threads, hand_arrays(), w.start.n, 64, side);
      },
      [](const StructOfArrays& w, std::ofstream& file) {
        write_numbers(file, w.start.pos), write_numbers(file, w.start.vel), write_numbers(file, w.start.inv_mass);
      });
}

void array_of_structs(Run& run) {
  race_work<ArrayOfStructs>(
      run, "structs",
      [](ArrayOfStructs& w, HostThreads& threads) {
        const OfArrays side = [particles = numbers(w.particles)](const HandArrays& hand, std::int64_t b,
                                                                 std::int64_t e) {
          hand.step_structs(particles, kStep, b, e);
        };
        return sides_of(threads, hand_arrays(), w.start.n, 64, side);
      },
      [](const ArrayOfStructs& w, std::ofstream& file) { write_numbers(file, w.particles0); });
}

/// The particles of ParticleGradient by hand, there and back.
class ParticlesByHand {
 public:
  ParticlesByHand(HostThreads& threads, const HandArrays& hand) : threads_(threads), hand_(hand) {}
  void run() {
    constexpr int n = ParticleGradient::n, steps = ParticleGradient::steps;
    for (std::size_t i = 0; i < std::size_t(n); ++i)
      for (std::size_t c = 0; c < 3; ++c) {
        x_[3 * i + c] = ParticleGradient::x0[int(c)];
        v_[3 * i + c] = ParticleGradient::v0[int(c)];
      }
    for (int s = 0; s < steps; ++s) step(hand_.particles, x_, v_);
    // The mean of squares, and its gradient by the places, from where the way back begins.
    threads_.run(n, chunk(), [&](std::int64_t b, std::int64_t e) {
      for (std::int64_t i = 3 * b; i < 3 * e; ++i) {
        gx_[std::size_t(i)] = 2 * x_[std::size_t(i)] / float(n);
        gv_[std::size_t(i)] = 0;
      }
    });
    for (int s = 0; s < steps; ++s) step(hand_.particles_back, gx_, gv_);
  }
  double gradient() const { return double(gv_[1]) * ParticleGradient::n; }

 private:
  static std::int64_t chunk() { return chunk_of(ParticleGradient::n, 64); }
  template <class Kernel>
  void step(Kernel kernel, std::vector<float>& x, std::vector<float>& v) {
    constexpr HandStep kStep{{0, ParticleGradient::gravity, 0}, ParticleGradient::dt};
    threads_.run(ParticleGradient::n, chunk(), [&](std::int64_t b, std::int64_t e) {
      kernel(x.data(), v.data(), w_.data(), kStep, ParticleGradient::stiffness, b, e);
    });
  }
  static std::vector<float> of_vectors() { return std::vector<float>(3 * std::size_t(ParticleGradient::n)); }

  HostThreads& threads_;
  const HandArrays& hand_;
  std::vector<float> x_ = of_vectors(), v_ = of_vectors(), gx_ = of_vectors(), gv_ = of_vectors();
  std::vector<float> w_ = std::vector<float>(std::size_t(ParticleGradient::n), ParticleGradient::w0);
};

void particle_gradient(Run& run) {
  if (!needs_native(run)) return;
  ParticleGradient ours(run.device());
  HostThreads threads(run.threads());
  std::vector<ParticlesByHand> all;
  all.reserve(kHandForms);
  for (int k = 0; k < kHandForms; ++k) all.emplace_back(threads, hand_arrays()[k]);
  std::vector<std::function<void()>> candidates{[&] { ours.reset(), ours.run(); }};
  std::optional<ParticleGradient> there;
  if (const std::optional<Device> vulkan = software_vulkan()) {
    there.emplace(*vulkan);
    candidates.emplace_back([&] { there->reset(), there->run(); });
  }
  std::vector<Side> by_hand;
  for (ParticlesByHand& each : all) {
    by_hand.push_back({hand_arrays()[by_hand.size()].name, [&each] { each.run(); }});
    candidates.push_back(by_hand.back().launch);
  }
  const std::vector<Timing> timings = interleave(candidates, run.rounds(), 2);
  ours.check();
  for (const ParticlesByHand& each : all) ParticleGradient::check("by hand", each.gradient());
  if (there) there->check();
  report_sides(run, timings, there.has_value(), by_hand);
  report_taichi(run, timings[0], {"particles", {}}, std::abs(ours.gradient()));
  if (run.threads() > 1) return;
  const auto warp = ask_python("particles.py",
                               fmt::format("{} {} {}", ParticleGradient::n, ParticleGradient::steps, run.rounds()), 3);
  if (warp) ParticleGradient::check("warp-lang", (*warp)[2]);
  run.compare(timings[0], warp_reference(warp, {0, 1}), "ms", "Warp");
}

}  // namespace

void add_cpu(Harness& harness) {
  harness.add("cpu", "saxpy 16M", saxpy);
  harness.add("cpu", "stencil 2048^2", stencil);
  harness.add("cpu", "n-body 8192", nbody);
  harness.add("cpu", "mandelbrot 1024^2", mandelbrot);
  harness.add("cpu", "gather 4M", gather);
  harness.add("cpu", "mat44 * vec4 1M", transform);
  harness.add("cpu", "svd3 1M", svd3_of_many);
  harness.add("cpu", "noise 2048^2", noise_image);
  harness.add("cpu", "quaternion rotation 4M", rotation);
  harness.add("cpu", "struct of arrays 4M", struct_of_arrays);
  harness.add("cpu", "array of structs 4M", array_of_structs);
  harness.add("cpu", "100k particles, 60 steps, and back", particle_gradient);
}

}  // namespace weft::bench

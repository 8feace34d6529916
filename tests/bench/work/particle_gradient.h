// The particle system of Warp's documents with the gradient of where it ends, for suites gradient and cpu.
#pragma once
#include <functional>
#include <string>

#include "../../../runtime/weft.h"

namespace weft::bench {

/// The mean square of the final places, differentiated by the velocities at the start.
class ParticleGradient {
 public:
  static constexpr int n = 100'000, steps = 60;
  static constexpr float stiffness = 3, dt = 0.01f, gravity = -9.81f, w0 = 2;
  static constexpr vec3 x0{0.1f, 0.2f, 0.3f}, v0{1, 0, -1};

  explicit ParticleGradient(const Device& device);
  /// Brings the particles to their start, and waits.
  void reset();
  /// There and back.
  void run();
  /// The gradient by the first particle's velocity along y, times n.
  double gradient() const;
  /// Errors: std::runtime_error unless the gradient is that of the host's.
  void check() const { check("weft", gradient()); }
  static void check(const std::string& who, double gradient);

 private:
  Array<vec3> x_, v_;
  Array<float> w_, loss_;
  std::function<void()> launch_steps_;
};

}  // namespace weft::bench

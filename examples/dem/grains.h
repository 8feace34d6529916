// Grains: equal spheres that repel, stick, rub, and lose energy at contacts (the discrete element method).
#pragma once
#include <weft/runtime/geometry/hash_grid.h>
#include <weft/weft.h>

/// Lengths in metres, y upwards; the floor is the plane y = 0.
constexpr float kGrainRadius = 0.1f;
constexpr float kGrainMass = 1.f / 64;
constexpr float kGravity = 9.81f;

/// The totals of a heap of grains.
struct Totals {
  bool finite = true;
  double energy = 0;        ///< of motion, height and contacts
  double speed = 0;         ///< mean
  double height = 0;        ///< of the centre of mass
  double lowest = 0;        ///< height of the lowest centre
  double momentum[3] = {};  ///< of motion
};

/// A block of grains that is thrown. If two grains overlap, or a grain and the floor, a spring pushes them apart, and a
/// damper slows them down while they approach; up to a gap of kStick the spring still pulls. Across the contact they
/// rub: a force against the motion, proportional to it, and at most proportional to the push or pull (Cundall and
/// Strack 1979, without rolling). Forces on both sides of a contact are equal.
class Grains {
 public:
  /// \param count  the number of grains, in a block whose lowest ones are `above` over the floor
  Grains(const weft::Device& device, int count, float above);

  /// Advances by `count` steps of dt seconds. Returns at once.
  void advance(int count, float dt);

  /// Waits. \return  the totals, with all sums in double precision
  Totals totals() const;

  const weft::Array<weft::vec3>& positions() const { return x_; }

 private:
  weft::Array<weft::vec3> x_, v_, v_new_;
  mutable weft::HashGrid grid_;
};

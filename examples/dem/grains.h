// Grains: equal spheres that repel, stick, rub, and lose energy where they meet (the discrete element method).
#pragma once
#include <weft/runtime/geometry/hash_grid.h>
#include <weft/weft.h>

/// Lengths in metres, y upwards; the floor is the plane y = 0.
constexpr float kGrainRadius = 0.1f;
constexpr float kGrainMass = 1.f / 64;
constexpr float kGravity = 9.81f;

/// What a heap of grains has, in all.
struct Totals {
  bool finite = true;
  double energy = 0;        ///< of motion, height and contacts
  double speed = 0;         ///< mean
  double height = 0;        ///< of the centre of mass
  double lowest = 0;        ///< height of the lowest centre
  double momentum[3] = {};  ///< of motion
};

/// A block of grains that was thrown. Where two are closer than they are wide, or the floor closer than it should be, a
/// spring pushes them apart, and a damper slows them down while they approach; up to kStick further apart it still
/// pulls. Across the contact they rub: a force against the motion, in proportion to it, and at most in proportion to
/// the push or pull (Cundall and Strack 1979, without rolling). Forces on both sides of a contact are equal.
class Grains {
 public:
  /// \param count  of grains, in a block whose lowest ones are `above` over the floor
  Grains(const weft::Device& device, int count, float above);

  /// Advances by `count` steps of dt seconds. Returns at once.
  void advance(int count, float dt);

  /// Waits. \return  with all sums in double precision
  Totals totals() const;

  const weft::Array<weft::vec3>& positions() const { return x_; }

 private:
  weft::Array<weft::vec3> x_, v_, v_new_;
  mutable weft::HashGrid grid_;
};

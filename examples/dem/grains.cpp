// The kernels of contacts and steps, and the conserved quantities.
#include "grains.h"

#include <weft/runtime/geometry/hash_grid_query.h>

#include <cmath>
#include <random>

using namespace weft;

namespace {

constexpr float kStiffness = 8000;  // newtons for each metre that two grains overlap
constexpr float kStick = 0.0025f;   // the gap up to which grains stick
constexpr float kDamping = 2;       // newtons for each metre a second of approach
constexpr float kRub = 1;           // newtons for each metre a second across the contact, at most
constexpr float kRubLimit = 0.5f;   // of the push or pull
constexpr float kFloorRub = 4;
constexpr float kReach = 2 * kGrainRadius + kStick;

/// The force of a contact on a grain.
/// \param away  the direction away from the other body
/// \param gap  negative where the two overlap
/// \param motion  relative to the other body
/// \param rub  kRub or kFloorRub
Vec3 contact(const Vec3& away, const Float& gap, const Vec3& motion, float rub) {
  Float apart = dot(away, motion);
  Float push = -kStiffness * gap - kDamping * min(apart, 0);
  Vec3 across = motion - away * apart;
  Float speed = length(across);
  // Without motion any direction will do.
  Float against = min(speed * rub, abs(push) * kRubLimit) / max(speed, 1e-12f);
  return away * push - across * against;
}

// One step of a grain: the forces of the floor and of all neighbours, then velocity, then position (symplectic Euler).
// Thread k moves the k-th grain in the order of cells, so that neighbouring threads look at the same cells. Positions
// are read from the copy that the grid keeps, so that grains may move meanwhile; velocities go to another array.
const auto step_kernel =
    kernel("step", [](Var<HashGridArrays> grid, Arr<vec3> x, Arr<const vec3> v, Arr<vec3> v_new, Float dt) {
      Int k = tid(), i = hash_grid_point_id(grid, k);
      Vec3 p = grid.positions[k], motion = v[i], force;
      Float gap = p.y - kGrainRadius;
      If (gap < kStick) {
        force += contact(Vec3(0, 1, 0), gap, motion, kFloorRub);
      }
      auto near = hash_grid_query(grid, p, kReach);
      for (auto other : near) {
        Vec3 apart = p - grid.positions[near.place()];
        Float square = dot(apart, apart);
        // Two centres at one place have no direction and do not push, so a grain does not meet itself.
        If ((square < kReach * kReach) & (square > 0.f)) {
          Float distance = sqrt(square);
          force += contact(apart / distance, distance - 2 * kGrainRadius, motion - v[other], kRub);
        }
      }
      motion += (force * (1 / kGrainMass) + vec3{0, -kGravity, 0}) * dt;
      v_new[i] = motion;
      x[i] = p + motion * dt;
    });

// The energy in the springs of each grain, which is half of that of each contact. Zero where grains let go of each
// other.
const auto spring_kernel = kernel("springs", [](Var<HashGridArrays> grid, Arr<float> energy) {
  Int k = tid();
  Vec3 p = grid.positions[k];
  Float sum = 0;
  Float gap = p.y - kGrainRadius;
  If (gap < kStick) {
    sum += gap * gap - kStick * kStick;
  }
  auto near = hash_grid_query(grid, p, kReach);
  for ([[maybe_unused]] auto other : near) {
    Vec3 apart = p - grid.positions[near.place()];
    Float distance = length(apart);
    If ((distance < kReach) & (distance > 0.f)) {
      gap = distance - 2 * kGrainRadius;
      sum += (gap * gap - kStick * kStick) * 0.5f;
    }
  }
  energy[k] = sum * (kStiffness / 2);
});

}  // namespace

Grains::Grains(const Device& device, int count, float above) {
  // The block is about as high as wide, in layers; no grain touches another.
  const int side = std::max(1, int(std::ceil(std::cbrt(double(count)))));
  // The grid has about as many cells as there are grains; a heap wider than the grid wraps around.
  grid_ = HashGrid(device, side, side, side, {.keep_positions = true});
  constexpr float kSpacing = 2.2f * kGrainRadius, kJitter = 0.09f * kGrainRadius;
  std::mt19937 random(5);
  std::uniform_real_distribution<float> any(-1, 1);
  const auto some = [&](float size) {
    const float x = any(random), y = any(random), z = any(random);
    return vec3{x, y, z} * size;
  };
  std::vector<vec3> x, v;
  for (int i = 0; i < count; ++i) {
    const float across = float(i % side) - 0.5f * float(side - 1),
                along = float(i / side % side) - 0.5f * float(side - 1);
    const vec3 place = vec3{across, float(i / side / side), along} * kSpacing;
    x.push_back(place + vec3{0, above + kGrainRadius + kJitter, 0} + some(kJitter));
    v.push_back(vec3{4, 0, 0} + some(0.3f));
  }
  x_ = Array<vec3>(device, x);
  v_ = Array<vec3>(device, v);
  v_new_ = empty_like(v_);
}

void Grains::advance(int count, float dt) {
  for (int k = 0; k < count; ++k) {
    grid_.build(x_, kReach);
    launch(step_kernel, x_.size(), grid_, x_, v_, v_new_, dt);
    std::swap(v_, v_new_);
  }
}

Totals Grains::totals() const {
  const Array<float> springs = empty<float>(x_.device(), x_.size());
  grid_.build(x_, kReach);
  launch(spring_kernel, x_.size(), grid_, springs);
  const std::vector<vec3> x = x_.to_vector(), v = v_.to_vector();
  Totals t;
  t.lowest = INFINITY;
  for (const float e : springs.to_vector()) t.energy += double(e);
  for (std::size_t i = 0; i < x.size(); ++i) {
    double square = 0;
    for (int k = 0; k < 3; ++k) {
      t.finite &= std::isfinite(x[i][k]) && std::isfinite(v[i][k]);
      square += double(v[i][k]) * double(v[i][k]);
      t.momentum[k] += double(kGrainMass) * double(v[i][k]);
    }
    t.speed += std::sqrt(square) / double(x.size());
    t.height += double(x[i].y) / double(x.size());
    t.lowest = std::min(t.lowest, double(x[i].y));
    t.energy += double(kGrainMass) * (0.5 * square + double(kGravity) * double(x[i].y));
  }
  return t;
}

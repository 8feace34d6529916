// The soft body: its springs, and the kernel that moves it.
#include "body.h"

#include <weft/runtime/geometry/mesh.h>
#include <weft/runtime/geometry/mesh_query.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "scene.h"

using namespace weft;

namespace {

constexpr float kStiffness = 1.8e6f;       // of all springs at a vertex together, per mass: 1 / s^2
constexpr float kInternalDamping = 5e-4f;  // s: a spring pulls as if it were this much ahead in time
constexpr float kDrag = 0.4f;              // 1 / s
constexpr float kFriction = 0.5f;
constexpr float kSkin = 0.01f;     // m: kept between vertices and obstacles, so that the faces do not touch
constexpr float kStrutWeight = 1;  // of a strut's stiffness to an edge's
constexpr int kStruts = 4;         // per vertex
constexpr float kSlant = 1.2f;     // tangent of the angle between a strut and the normal

/// Pushes the velocity of a vertex so that its next position is not below a surface with this normal.
void push_out(Vec3& velocity, const Vec3& normal, const Float& depth, const Float& dt) {
  If (depth > 0) {
    Float push = depth / dt;
    Vec3 slip = velocity - normal * dot(velocity, normal);
    // Coulomb: friction takes at most its share of the push, and never turns the motion around.
    Float keep = max(1 - kFriction * push / max(length(slip), 1e-6f), 0);
    velocity = slip * keep + normal * (dot(velocity, normal) + push);
  }
}

// Strategy: one thread per vertex gathers the forces of its own springs from a list, so that no two threads write to
// one place: no atomics, and the same result in every run. Then come semi-implicit Euler, and contact with the
// obstacles of the world. Positions and velocities are read from one pair of arrays and written to another, because the
// neighbours still need the old ones.
// Edge cases: a spring of length 0 has no direction and no force; a vertex without springs falls freely.
// Example: two vertices 1.1 apart, spring of rest length 1 and stiffness 100: each gets 10 toward the other.
auto step_kernel =
    kernel("body_step", [](Arr<const vec3> x, Arr<const vec3> v, Arr<vec3> x_new, Arr<vec3> v_new, Arr<const int> first,
                           Arr<const int> other, Arr<const vec2> spring, Float stiffness, Float dt) {
      Int i = tid();
      Vec3 here = x[i], velocity = v[i];
      Vec3 pull;
      for (auto k : range(first[i], first[i + 1])) {
        Int j = other[k];
        Vec2 rest_and_share = spring[k];
        Vec3 along = x[j] - here;
        Float distance = length(along);
        Vec3 direction = along / max(distance, 1e-9f);
        Float stretch = distance - rest_and_share.x + kInternalDamping * dot(v[j] - velocity, direction);
        pull += direction * (rest_and_share.y * stretch);
      }
      velocity = (velocity + (pull * stiffness + vec3{0, -kGravity, 0}) * dt) * (1 - kDrag * dt);

      Vec3 ahead = here + velocity * dt;
      push_out(velocity, vec3{0, 1, 0}, kSkin - ahead.y, dt);
      Vec3 from_sphere = ahead - kSphereCentre;
      push_out(velocity, normalize(from_sphere), kSphereRadius + kSkin - length(from_sphere), dt);
      v_new[i] = velocity;
      x_new[i] = here + velocity * dt;
    });

auto start_kernel =
    kernel("body_start", [](Arr<const vec3> position, Arr<const vec3> velocity, Arr<vec3> x, Arr<vec3> v) {
      Int i = tid();
      x[i] = position[i];
      v[i] = velocity[0];
    });

// Computes the normal of a vertex: the mean of its triangles' normals, weighted by their areas; zero if they cancel.
auto normal_kernel = kernel("body_normals", [](Arr<const vec3> x, Arr<const vec3i> triangles, Arr<const int> first,
                                               Arr<const int> list, Arr<vec3> normal) {
  Int i = tid();
  Vec3 sum;
  for (auto k : range(first[i], first[i + 1])) {
    Vec3i corner = triangles[list[k]];
    Vec3 a = x[corner.x];
    sum += cross(x[corner.y] - a, x[corner.z] - a);
  }
  normal[i] = normalize(sum);
});

// Strategy: a surface of springs alone is a limp skin. Struts across its inside hold a body in shape: from each vertex
// a few rays go inwards, slanted so that struts cross each other and resist shear too. The other end of a strut is the
// nearest corner of the triangle where its ray comes out again.
// Edge cases: a ray that meets nothing (the mesh is open) or a triangle from outside (a neighbour in a fold) gives no
// strut: -1. A flat sheet has none and behaves like cloth.
// Example: vertex at the top of a unit cube's lid: its four rays leave through the floor or the walls.
auto strut_kernel = kernel("body_struts", [](Var<MeshArrays> mesh, Arr<const vec3> normal, Arr<int, 2> end) {
  auto [i, k] = tid<2>();
  Vec3 inward = -Vec3(normal[i]);
  Vec3 side = normalize(cross(inward, select(abs(inward.x) < 0.7f, Vec3(1, 0, 0), Vec3(0, 1, 0))));
  Float angle = (Float(k) + 0.5f) * (2 * std::numbers::pi_v<float> / kStruts);
  Vec3 direction = normalize(inward + (side * cos(angle) + cross(inward, side) * sin(angle)) * kSlant);
  MeshRayHit hit = mesh_query_ray(mesh, mesh.points[i] + direction * 1e-4f, direction);
  Int found = -1;
  If (hit.hit & (hit.sign < 0)) {
    Float w = 1 - hit.u - hit.v;
    Int corner = select(hit.u >= max(hit.v, w), 0, select(hit.v >= w, 1, 2));
    found = mesh_get_index(mesh, hit.face * 3 + corner);
  }
  end(i, k) = found;
});

struct Spring {
  int a, b;  // a < b
  float weight;
};

void add_spring(std::vector<Spring>& springs, int a, int b, float weight) {
  if (a != b) springs.push_back({std::min(a, b), std::max(a, b), weight});
}

/// The number of each vertex's part; the vertices of a part are connected by edges.
std::vector<int> parts_of(const BodyMesh& mesh) {
  std::vector<int> parent(mesh.positions.size());
  std::iota(parent.begin(), parent.end(), 0);
  auto root = [&](int i) {
    while (parent[std::size_t(i)] != i) {
      int& above = parent[std::size_t(i)];
      above = parent[std::size_t(above)];
      i = above;
    }
    return i;
  };
  for (const vec3i& t : mesh.triangles)
    for (int k = 1; k < 3; ++k) parent[std::size_t(root(t[k]))] = root(t.x);
  std::vector<int> part(parent.size());
  for (std::size_t i = 0; i < part.size(); ++i) part[i] = root(int(i));
  return part;
}

/// Ties each smaller part (an eye, a lid) to larger ones, by springs from some of its vertices to the nearest vertices
/// there.
void add_links(std::vector<Spring>& springs, const BodyMesh& mesh) {
  constexpr std::size_t kMostParts = 64;  // a heap of single triangles stays one, and falls as dust
  constexpr std::size_t kLinks = 24;      // per part
  const std::vector<int> part = parts_of(mesh);
  std::vector<std::vector<int>> members(part.size());
  for (std::size_t i = 0; i < part.size(); ++i) members[std::size_t(part[i])].push_back(int(i));
  std::erase_if(members, [](const auto& m) { return m.empty(); });
  std::stable_sort(members.begin(), members.end(), [](auto& a, auto& b) { return a.size() > b.size(); });
  std::vector<int> rank(part.size());
  for (std::size_t r = 0; r < members.size(); ++r)
    for (int i : members[r]) rank[std::size_t(i)] = int(r);

  for (std::size_t r = 1; r < std::min(members.size(), kMostParts); ++r) {
    const std::size_t stride = std::max<std::size_t>(members[r].size() / kLinks, 1);
    for (std::size_t m = 0; m < members[r].size(); m += stride) {
      const vec3 p = mesh.positions[std::size_t(members[r][m])];
      float best = std::numeric_limits<float>::max();
      int nearest = members[0][0];
      for (std::size_t j = 0; j < rank.size(); ++j) {
        const vec3 d = mesh.positions[j] - p;
        if (rank[j] < int(r) && dot(d, d) < best) {
          best = dot(d, d);
          nearest = int(j);
        }
      }
      add_spring(springs, members[r][m], nearest, 1);
    }
  }
}

}  // namespace

Body::Body(const Device& device, const BodyMesh& mesh)
    : x_(device, mesh.positions),
      v_(zeros<vec3>(device, mesh.positions.size())),
      x_new_(empty_like(x_)),
      v_new_(empty_like(v_)),
      triangles_(device, mesh.triangles) {
  const Adjacency around = triangles_of_vertices(mesh);
  triangles_first_ = Array<int>(device, around.first);
  triangles_list_ = Array<int>(device, around.item);

  std::vector<Spring> springs;
  for (const vec3i& t : mesh.triangles)
    for (int k = 0; k < 3; ++k) add_spring(springs, t[k], t[(k + 1) % 3], 1);
  add_links(springs, mesh);

  const auto n = x_.size();
  Array<int, 2> ends = empty<int, 2>(device, {n, kStruts});
  launch(strut_kernel, {n, kStruts}, Mesh(x_, triangles_), normals(), ends);
  const std::vector<int> end = ends.to_vector();
  for (std::size_t k = 0; k < end.size(); ++k)
    if (end[k] >= 0) add_spring(springs, int(k / kStruts), end[k], kStrutWeight);

  // Each pair is kept once; an edge wins over a strut.
  std::sort(springs.begin(), springs.end(), [](const Spring& s, const Spring& t) {
    return std::tuple(s.a, s.b, -s.weight) < std::tuple(t.a, t.b, -t.weight);
  });
  springs.erase(std::unique(springs.begin(), springs.end(),
                            [](const Spring& s, const Spring& t) { return s.a == t.a && s.b == t.b; }),
                springs.end());

  // The stiffness of a vertex is shared among its springs. Whatever their number and the mesh, the fastest vibration of
  // the body is the same, and with it the longest stable step.
  std::vector<float> weight(mesh.positions.size());
  std::vector<int> first(mesh.positions.size() + 1);
  for (const Spring& s : springs)
    for (int i : {s.a, s.b}) {
      weight[std::size_t(i)] += s.weight;
      ++first[std::size_t(i) + 1];
    }
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<int> next(first.begin(), first.end() - 1);
  std::vector<int> other(std::size_t(first.back()));
  std::vector<vec2> data(other.size());
  for (const Spring& s : springs) {
    const float rest = length(mesh.positions[std::size_t(s.a)] - mesh.positions[std::size_t(s.b)]);
    const float share = s.weight / std::max(weight[std::size_t(s.a)], weight[std::size_t(s.b)]);
    for (auto [from, to] : {std::pair(s.a, s.b), std::pair(s.b, s.a)}) {
      const auto at = std::size_t(next[std::size_t(from)]++);
      other[at] = to;
      data[at] = {rest, share};
    }
  }
  first_ = Array<int>(device, first);
  other_ = Array<int>(device, other);
  spring_ = Array<vec2>(device, data);
}

void Body::start(const Array<vec3>& positions, const Array<vec3>& velocity) {
  launch(start_kernel, x_.size(), positions, velocity, x_, v_);
}

void Body::advance(int count, float dt) {
  // Twice the stiffness bounds the square of the highest frequency (Gershgorin), and semi-implicit Euler is stable
  // while frequency times dt is below 2. Half of that leaves room for damping and contact.
  const float stiffness = std::min(kStiffness, 0.5f / (dt * dt));
  for (int k = 0; k < count; ++k) {
    launch(step_kernel, x_.size(), x_, v_, x_new_, v_new_, first_, other_, spring_, stiffness, dt);
    std::swap(x_, x_new_);
    std::swap(v_, v_new_);
  }
}

Shape Body::shape() const { return {x_.clone(), triangles_, normals()}; }

Array<vec3> Body::normals() const {
  Array<vec3> normal = empty_like(x_);
  launch(normal_kernel, x_.size(), x_, triangles_, triangles_first_, triangles_list_, normal);
  return normal;
}

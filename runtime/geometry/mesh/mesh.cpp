// The host's part of a mesh: checks, and the order of the passes over its points.
#include "../mesh.h"

#include <fmt/format.h>

#include <algorithm>

#include "../../../frontend/kernels/names.h"
#include "../../../frontend/language/atomic.h"
#include "../../../frontend/library/vector.h"
#include "../../../frontend/support/error.h"
#include "../../../frontend/support/invalid.h"
#include "../../array_create.h"
#include "../../core/view.h"
#include "../../work/capture.h"
#include "../../work/observe.h"
#include "../bvh/bvh_tree.h"
#include "../structures/change.h"
#include "../structures/element.h"
#include "device_rays.h"
#include "mesh_passes.h"

namespace weft {

namespace detail {

struct MeshState {
  Array<vec3> points, velocities;  ///< as given
  Array<int> indices;
  Array<vec3> lowers, uppers;              ///< boxes of the triangles
  Array<vec3> point_rows, velocity_rows;   ///< see in_rows()
  Bvh handle;                              ///< the tree, for programs
  BvhTree* tree = nullptr;                 ///< kept by `handle`
  Array<int> arrived;                      ///< by node; for far fields
  std::shared_ptr<Generation> generation;  ///< ends when the indices change, because that makes it another mesh
  std::unique_ptr<DeviceRays> rays;
  MeshArrays arrays;
  Element<MeshArrays> element;
};

namespace {

/// The number of a mesh's data. A mesh stays in its memory, so that the device holds its data or none.
constexpr std::uint64_t kWhole = 1;

StructureUse use_of(const MeshState& s) { return {s.generation, kWhole, s.indices.size() / 3}; }

/// Places in the answer of `look`: the first triangle with an index that names no point, and the first with a point
/// that is not finite; the number of triangles if there is none.
constexpr int kBadIndex = 0, kBadPoint = 1, kAnswers = 2;

const auto& look() {
  static const auto k = kernel("check mesh", [](Arr<const vec3> points, Arr<const int> indices, Arr<int> bad) {
    Int i = tid();
    Bool named = true, finite = true;
    for (int k = 0; k < 3; ++k) {
      const Int at = indices[i * 3 + k];
      const Bool there = (at >= 0) & (at < points.shape(0));
      named &= there;
      If (there) {
        const Vec3 p = points[at];
        finite &= isfinite(p.x) & isfinite(p.y) & isfinite(p.z);
      }
    }
    If (!named) {
      atomic_min(bad[kBadIndex], i);
    }
    If (!finite) {
      atomic_min(bad[kBadPoint], i);
    }
  });
  return k;
}

[[noreturn]] void refuse_indices(const MeshState& s, int triangle) {
  const std::vector<int> corners = s.indices.slice(3 * triangle, 3 * triangle + 3).to_vector();
  const auto bad = std::find_if(corners.begin(), corners.end(), [&](int k) { return k < 0 || k >= s.points.size(); });
  invalid("triangle {} of a mesh has the index {}, which names none of its {} points", triangle,
          bad == corners.end() ? corners[0] : *bad, s.points.size());
}

void check_triangles(const MeshState& s) {
  const int triangles = int(s.indices.size() / 3);
  Array<int> bad = full<int>(s.points.device(), kAnswers, triangles);
  launch(look(), triangles, s.points, s.indices, bad);
  const std::vector<int> answer = bad.to_vector();
  if (answer[kBadIndex] < triangles) refuse_indices(s, answer[kBadIndex]);
  if (answer[kBadPoint] < triangles)
    invalid("triangle {} of a mesh has a point that is NaN or infinite", answer[kBadPoint]);
}

void check_present(const MeshState& s) {
  if (s.points.is_freed() || s.indices.is_freed() || s.velocities.is_freed())
    invalid("an array of a mesh was freed: its points, its indices or its velocities");
}

void check(const MeshState& s, const MeshOptions& options) {
  if (s.points.is_null()) invalid("a mesh is given a null array of points");
  check_present(s);
  require_array(s.points.device(), s.indices, "a mesh", "indices");
  if (s.indices.size() % 3 != 0) invalid("a mesh is given {} indices: not three for each triangle", s.indices.size());
  if (s.indices.size() == 0) invalid("a mesh is given no triangles");
  if (s.points.size() == 0) invalid("a mesh is given no points");
  if (s.indices.size() / 3 > (1 << 28) || s.points.size() > (1ll << 31) - 1)
    unsupported("a mesh of {} triangles and {} points; 2^28 triangles are possible", s.indices.size() / 3,
                s.points.size());
  // Far fields of a tree's nodes are counted in 32 bits, ten rows for each.
  constexpr std::int64_t most_with_winding = 0x7fffffff / 10;
  if (options.winding_number && s.indices.size() / 3 > most_with_winding)
    unsupported("a mesh of {} triangles with winding numbers; {} are possible", s.indices.size() / 3,
                most_with_winding);
  if (options.leaf_size < 1 || options.leaf_size > 8)
    invalid("a mesh with {} triangles in a leaf; 1 to 8 are possible", options.leaf_size);
  if (!s.velocities.is_null()) {
    require_array(s.points.device(), s.velocities, "a mesh", "velocities");
    if (s.velocities.size() != s.points.size())
      invalid("a mesh of {} points is given {} velocities", s.points.size(), s.velocities.size());
  }
  check_triangles(s);
}

void check_unchanged(const MeshState& s) {
  if (s.generation->held() == Generation::kNone)
    invalid("the indices of a mesh have changed, or its last refit or rebuild failed: call its rebuild()");
}

// Checks the arrays beside the tree's, before the mark that a failed change leaves.
void refuse_mesh_change(const MeshState& s) {
  const ArrayBase* const written[] = {&s.lowers, &s.uppers, &s.arrays.corners, &s.arrays.far_fields,
                                      &s.element.array()};
  const ArrayBase* const read[] = {&s.points, &s.indices, &s.velocities};
  refuse_change(*s.points.device().state(), written, read);
}

void read_points(MeshState& s) {
  triangle_boxes(s.arrays, s.lowers, s.uppers);
  if (s.rays) s.rays->build(s.arrays.points, s.arrays.indices);
}

/// The data for elements, which hold contiguous arrays only.
MeshArrays contiguous_data(MeshState& s) {
  MeshArrays d = s.arrays;
  d.points = in_rows(d.points, s.point_rows);
  d.velocities = in_rows(d.velocities, s.velocity_rows);
  return d;
}

void follow_tree(MeshState& s) {
  s.arrays.tree = s.tree->data;
  gather_corners(s.arrays);
  if (s.arrays.has_far_fields) sum_far_fields(s.arrays, s.arrived);
  const auto now = [&] { return contiguous_data(s); };
  // Captured work changes the data in their arrays, but points in strided views have to be copied again, even if id()
  // is called only later.
  if (Capture::current() && !(s.arrays.points.is_contiguous() && s.arrays.velocities.is_contiguous()))
    s.element.make(s.points.device(), now);
  s.element.write(now);
}

}  // namespace
}  // namespace detail

Mesh::Mesh(const Array<vec3>& points, const Array<int>& indices, const MeshOptions& options, Loc loc) {
  detail::called_from(loc, [&] {
    auto made = std::make_shared<detail::MeshState>();
    detail::MeshState& s = *made;
    s.points = points, s.indices = indices, s.velocities = options.velocities;
    const detail::Quiet quiet;
    if (const detail::Capture* capture = detail::Capture::current())
      invalid("a mesh is made while {}: make it before; its refit() and rebuild() may be captured", capture->doing());
    detail::check(s, options);
    const Device device = points.device();
    const std::int64_t n = indices.size() / 3;
    s.generation = detail::generation_over(indices, "a mesh", "triangles");
    s.arrays.tag = detail::kMeshTag;
    s.arrays.points = points;  // the array itself, whose gradients are the mesh's
    s.arrays.indices = indices.contiguous();
    s.arrays.has_velocities = !s.velocities.is_null();
    s.arrays.has_far_fields = options.winding_number;
    s.arrays.velocities = s.arrays.has_velocities ? s.velocities : zeros<vec3>(device, 1);
    s.arrays.ray_memory = zeros<std::uint8_t>(device, 1);
    if (options.ray_query) {
      s.rays = std::make_unique<detail::DeviceRays>(points, indices);
      s.arrays.ray_memory = s.rays->memory();
      s.arrays.ray_structure = s.rays->number();
    }
    s.lowers = empty<vec3>(device, n);
    s.uppers = empty<vec3>(device, n);
    s.arrays.corners = empty<vec4>(device, 3 * n);
    detail::read_points(s);
    s.handle = Bvh(device, s.lowers, s.uppers, {options.builder, options.leaf_size});
    s.tree = &s.handle.hand_over();
    s.arrays.far_fields = zeros<vec4>(device, options.winding_number ? 10 * s.tree->data.nodes.size() : 1);
    if (options.winding_number) s.arrived = zeros<int>(device, s.tree->data.nodes.size());
    detail::follow_tree(s);
    s.arrays.corners.storage()->structure = s.generation;
    s.generation->hold(detail::kWhole);
    state_ = std::move(made);
  });
}

namespace detail {
namespace {
Array<int> indices_of(const Array<vec3i>& triangles) {
  if (triangles.is_null()) invalid("a mesh is given a null array of triangles");
  if (!triangles.is_contiguous()) unsupported("a mesh is given triangles in a strided view: clone() it first");
  return Row<int>(View(triangles.storage(), triangles.address(), 3 * triangles.size(), sizeof(int)));
}
}  // namespace
}  // namespace detail

Mesh::Mesh(const Array<vec3>& points, const Array<vec3i>& triangles, const MeshOptions& options, Loc loc)
    : Mesh(points, detail::called_from(loc, [&] { return detail::indices_of(triangles); }), options, loc) {}

Mesh::Mesh(const Device& device, const MeshData& data, const MeshOptions& options, Loc loc)
    : Mesh(Array<vec3>(device, data.points, loc), Array<int>(device, data.indices, loc), options, loc) {}

detail::MeshState& Mesh::state() const {
  if (!state_) invalid("a null mesh is used");
  return *state_;
}

void Mesh::refit(Loc loc) {
  detail::called_from(loc, [&] {
    detail::MeshState& s = state();
    const detail::Quiet quiet;
    detail::check_present(s);
    detail::check_unchanged(s);
    if (!detail::Capture::current()) {
      detail::refuse_mesh_change(s);
      s.tree->refuse_refit(s.lowers, s.uppers);
    }
    detail::change([&] { return detail::use_of(s); },
                   [&] {
                     detail::read_points(s);
                     s.tree->refit(s.lowers, s.uppers);
                     detail::follow_tree(s);
                   });
  });
}
void Mesh::rebuild(Loc loc) {
  detail::called_from(loc, [&] {
    detail::MeshState& s = state();
    const detail::Quiet quiet;
    detail::check_present(s);
    detail::Capture* const capture = detail::Capture::current();
    const bool changed = !detail::use_of(s).holds();
    if (changed && capture)
      invalid(
          fmt::format("the indices of a mesh have changed, or its last refit or rebuild failed: call its "
                      "rebuild() before {}",
                      capture->doing()));
    if (changed) detail::check_triangles(s);
    if (!capture) {
      detail::refuse_mesh_change(s);
      s.tree->refuse_build(s.lowers, s.uppers, {});
      if (const ArrayBase* const own[] = {&s.arrays.indices}; changed)
        detail::refuse_change(*device().state(), own, {});
    }
    detail::change([&] { return detail::use_of(s); },
                   [&] {
                     // Indices are copied in place: graphs and earlier arguments of launches continue with that memory.
                     if ((changed || capture) && !s.indices.is_contiguous()) s.arrays.indices.copy_from(s.indices);
                     detail::read_points(s);
                     s.tree->build(s.lowers, s.uppers, {});
                     detail::follow_tree(s);
                   });
  });
}

Device Mesh::device() const { return state().points.device(); }
std::int64_t Mesh::size() const { return state().indices.size() / 3; }
const Array<vec3>& Mesh::points() const { return state().points; }
const Array<int>& Mesh::indices() const { return state().indices; }
const Array<vec3>& Mesh::velocities() const { return state().velocities; }
const Bvh& Mesh::tree() const { return state().handle; }
std::uint64_t Mesh::id(Loc loc) const {
  return detail::called_from(loc, [&] {
    detail::MeshState& s = state();
    detail::check_unchanged(s);
    return s.element.id(
        device(), [&] { return detail::contiguous_data(s); }, s.generation);
  });
}
const MeshArrays& Mesh::kernel_argument() const {
  detail::MeshState& s = state();
  detail::check_unchanged(s);
  return s.arrays;
}

detail::StructureUse stored::weft_structure_of(const MeshArrays& mesh) {
  if (mesh.corners.is_null() || !mesh.corners.storage()->structure) return {};
  return {mesh.corners.storage()->structure, detail::kWhole, mesh.indices.size() / 3};
}

}  // namespace weft

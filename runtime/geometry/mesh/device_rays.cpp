// Structures for ray queries, and the order of their builds among other work.
#include "device_rays.h"

#include "../../../frontend/kernels/kernel.h"
#include "../../../frontend/kernels/names.h"
#include "../../array_create.h"
#include "../../launch.h"
#include "../../work/capture.h"
#include "../../work/work.h"
#include "../shapes/finite.h"

namespace weft::detail {

// The structure must be destroyed before its memory.
struct DeviceRays::State {
  std::shared_ptr<Storage> storage;
  std::shared_ptr<backend::RayStructure> structure;
};

namespace {

// Copies the points with infinite ones at the origin: they would make the bounds of the whole structure infinite, and
// no ray would find anything in it. By Vulkan's rule a NaN in the x of a point makes its triangles inactive (in y or z
// alone it is undefined), but lavapipe (25.0) joins boxes with NaN like others and loses what is beside them. No ray
// anywhere finds a triangle that is a single point.
const auto& copy_points() {
  static const auto k = kernel("points for rays", [](Arr<const vec3> points, Arr<vec3> to) {
    Int i = tid();
    const Vec3 p = points[i];
    to[i] = select(is_finite(p), p, Vec3());
  });
  return k;
}
const auto& copy_triangles() {
  static const auto k = kernel("triangles for rays", [](Arr<const vec3> points, Arr<const int> indices, Arr<int> to) {
    Int i = tid(), some = 0;
    Bool whole = true;
    for (int k = 2; k >= 0; --k) {
      const Int at = indices[i * 3 + k];
      const Bool is_point = UInt(at) < UInt(points.shape(0));
      const Bool there = is_point & is_finite(points[select(is_point, at, 0)]);
      // The point is one of the triangle's own if any is usable, so that it lies within the bounds of the others.
      some = select(there, at, some);
      whole &= there;
    }
    for (int k = 0; k < 3; ++k) to[i * 3 + k] = select(whole, indices[i * 3 + k], some);
  });
  return k;
}

}  // namespace

DeviceRays::DeviceRays(const Array<vec3>& points, const Array<int>& indices) : state_(std::make_shared<State>()) {
  const std::shared_ptr<DeviceState>& device = points.storage()->device;
  const auto num_points = std::uint32_t(points.size()), num_triangles = std::uint32_t(indices.size() / 3);
  const std::uint64_t bytes = device->device->ray_structure_bytes(num_points, num_triangles);
  memory_ = empty<std::uint8_t>(points.device(), std::int64_t(bytes));
  points_ = empty<vec3>(points.device(), points.size());
  indices_ = empty<int>(points.device(), indices.size());
  state_->storage = memory_.storage();
  state_->structure = device->device->create_ray_structure(memory_.address(), num_points, num_triangles);
}

void DeviceRays::build(const Array<vec3>& points, const Array<int>& indices) {
  launch(copy_points(), points.size(), points, points_);
  launch(copy_triangles(), indices.size() / 3, points, indices, indices_);
  StreamState& stream = current_stream(*state_->storage->device);
  const backend::RayTriangles triangles{points_.address(), indices_.address(), std::uint32_t(points.size()),
                                        std::uint32_t(indices.size() / 3)};
  const Access accesses[] = {
      {points_.storage().get(), false}, {indices_.storage().get(), false}, {state_->storage.get(), true, &memory_}};
  submit(stream, {.name = "a build of a mesh", .accesses = accesses},
         [&](backend::Stream& s) { return s.build(*state_->structure, triangles); });
}

std::uint64_t DeviceRays::number() const { return state_->structure->number(); }

}  // namespace weft::detail

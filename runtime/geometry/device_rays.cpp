// Structures for ray queries, and the order of their builds among other work.
#include "device_rays.h"

#include "../array_create.h"
#include "../capture.h"
#include "../observe.h"
#include "../state.h"

namespace weft::detail {

// The structure is gone before its memory.
struct DeviceRays::State {
  std::shared_ptr<Storage> storage;
  std::shared_ptr<backend::RayStructure> structure;
};

DeviceRays::DeviceRays(const Array<vec3>& points, const Array<int>& indices) : state_(std::make_shared<State>()) {
  const std::shared_ptr<DeviceState>& device = points.storage()->device;
  const auto num_points = std::uint32_t(points.size()), num_triangles = std::uint32_t(indices.size() / 3);
  const std::uint64_t bytes = device->device->ray_structure_bytes(num_points, num_triangles);
  memory_ = empty<std::uint8_t>(points.device(), std::int64_t(bytes));
  state_->storage = memory_.storage();
  state_->structure = device->device->create_ray_structure(memory_.address(), num_points, num_triangles);
}

void DeviceRays::build(const Array<vec3>& points, const Array<int>& indices) {
  StreamState& stream = current_stream(*state_->storage->device);
  Storage* const read[] = {points.storage().get(), indices.storage().get()};
  before_write(memory_, stream);
  for (Storage* s : read) s->order_before(stream, false);
  state_->storage->order_before(stream, true);
  const backend::RayTriangles triangles{points.address(), indices.address(), std::uint32_t(points.size()),
                                        std::uint32_t(indices.size() / 3)};
  const backend::Ticket ticket =
      stream.with([&](backend::Stream& s) { return s.build(*state_->structure, triangles); });
  for (Storage* s : read) s->touched(stream, ticket, false);
  state_->storage->touched(stream, ticket, true);
}

std::uint64_t DeviceRays::number() const { return state_->structure->number(); }

}  // namespace weft::detail

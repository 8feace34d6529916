// A mesh's triangles in the device's own form, for rays. Internal to the runtime.
#pragma once
#include <memory>

#include "../../array.h"

namespace weft::detail {

/// The structure that a device with ray queries searches for the triangles of a mesh.
class DeviceRays {
 public:
  /// Makes an empty structure for build().
  /// Errors: Error(unsupported) if the device has no ray queries; Error(out_of_memory).
  DeviceRays(const Array<vec3>& points, const Array<int>& indices);

  /// Builds from as many points and indices as the constructor's. No ray finds a triangle with a point that is NaN,
  /// infinite or missing.
  /// Cost: passes over points and indices and a build of the driver's, on Device::stream(); no wait.
  void build(const Array<vec3>& points, const Array<int>& indices);

  /// The memory of the structure: work that reads it is ordered with builds.
  const Array<std::uint8_t>& memory() const { return memory_; }
  std::uint64_t number() const;

 private:
  struct State;
  Array<std::uint8_t> memory_;
  // The copies that the driver is given.
  Array<vec3> points_;
  Array<int> indices_;
  std::shared_ptr<State> state_;
};

}  // namespace weft::detail

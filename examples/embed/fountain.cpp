// The kernel of the fountain, and weft as a guest on the renderer's device.
#include "fountain.h"

#include <weft/vulkan.h>
#include <weft/weft.h>

#include <optional>

#include "plain/drops.h"

using namespace weft;

namespace {

/// A vertex as the renderer reads it: see Point.
struct Vertex {
  vec3 place, colour;
};
static_assert(sizeof(Vertex) == sizeof(Point));
WEFT_STRUCT(Vertex, place, colour);

// Constant acceleration is integrated without error; a drop at the end of its life starts again.
auto fly = kernel(
    "fly", [](Arr<Vertex> vertices, Arr<vec3> velocity, Arr<const vec3> first_velocity, Arr<float> age, Float dt) {
      Int i = tid();
      Vec3 x = vertices[i].place, v = velocity[i];
      Float t = age[i] + dt;
      const Vec3 down = Vec3(0, -kGravity, 0);
      x += v * dt + 0.5f * dt * dt * down;
      v += dt * down;
      If (t >= kLife) {
        t -= kLife;
        x = first_velocity[i] * t + 0.5f * t * t * down;
        v = first_velocity[i] + t * down;
      };
      age[i] = t;
      velocity[i] = v;
      vertices[i].place = x;
      const Float young = 1 - t / kLife;
      vertices[i].colour = lerp(Vec3(0.1f, 0.38f, 0.9f), Vec3(0.85f, 0.95f, 1), young);
    });

std::vector<vec3> vectors(const std::vector<Drops::Vector>& from) {
  std::vector<vec3> to;
  for (const Drops::Vector& v : from) to.push_back({v[0], v[1], v[2]});
  return to;
}

/// The handles of the renderer's device, for weft.
VulkanHandles handles_of(Renderer& renderer) {
  VulkanHandles h;
  h.instance = renderer.instance();
  h.physical_device = renderer.physical_device();
  h.device = renderer.device();
  h.queue = renderer.queue();
  h.queue_family = renderer.queue_family();
  h.api_version = Renderer::kApiVersion;
  h.extensions = renderer.extensions();
  h.features = &renderer.features();
  h.lock = [&renderer] { renderer.queue_mutex().lock(); };
  h.unlock = [&renderer] { renderer.queue_mutex().unlock(); };
  return h;
}

class Fountain final : public Simulation {
 public:
  Fountain(Renderer& renderer, int drops)
      : renderer_(renderer),
        drops_(drops),
        device_(Device::adopt(handles_of(renderer))),
        stream_(device_.stream()),
        vertices_(wrap_buffer<Vertex>(
            device_, drops, {renderer.points(), 0, sizeof(Point) * std::uint64_t(drops), 0, renderer.point_usage()})) {
    const Drops start = drops_at_start(drops);
    std::vector<Vertex> vertices;
    for (const Point& p : start.points)
      vertices.push_back({{p.place[0], p.place[1], p.place[2]}, {p.colour[0], p.colour[1], p.colour[2]}});
    vertices_.assign(vertices);
    velocity_ = Array<vec3>(device_, vectors(start.velocity));
    first_velocity_ = Array<vec3>(device_, vectors(start.first_velocity));
    age_ = Array<float>(device_, start.age);
  }

  void record(int frame, VkCommandBuffer commands, int steps, float dt) override {
    recordings_[frame] = stream_.record_into(commands, [&] {
      for (int k = 0; k < steps; ++k) launch(fly, drops_, vertices_, velocity_, first_velocity_, age_, dt);
    });
  }
  void submitted(int frame) override { recordings_[frame].submitted(renderer_.timeline(), renderer_.submitted()); }

  // weft reads the renderer's vertex buffer.
  std::vector<Point> points() override {
    std::vector<Point> points;
    for (const Vertex& v : vertices_.to_vector())
      points.push_back({{v.place.x, v.place.y, v.place.z}, {v.colour.x, v.colour.y, v.colour.z}});
    return points;
  }
  void end() override { device_.detach(); }

 private:
  Renderer& renderer_;
  int drops_;
  Device device_;
  Stream stream_;
  Array<Vertex> vertices_;
  Array<vec3> velocity_, first_velocity_;
  Array<float> age_;
  Recording recordings_[Renderer::kFrames];  // one beside the command buffer of each frame
};

}  // namespace

Guest fountain_guest() {
  Guest guest;
  // The requirements are kept while the device is used: they hold what weft adds to the chain of features.
  const auto needs = std::make_shared<std::optional<VulkanRequirements>>();
  guest.ask = [needs](VkInstance instance, VkPhysicalDevice physical, VkPhysicalDeviceFeatures2& features,
                      std::vector<const char*>& extensions) {
    needs->emplace(instance, physical, Renderer::kApiVersion);
    (*needs)->add_features(features);
    (*needs)->add_extensions(extensions);
  };
  guest.begin = [](Renderer& renderer, int drops) { return std::make_unique<Fountain>(renderer, drops); };
  return guest;
}

SpirvKernel exported_fountain() {
  return fly.spirv({.names = {"vertices", "velocity", "first_velocity", "age", "dt"}});
}

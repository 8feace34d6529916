// raycast: a mesh by rays. Measures rays through each pixel, then draws the mesh with light and shadows to a PNG file.
#include <fmt/core.h>
#include <weft/runtime/geometry/mesh.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <numbers>

#include "../common/ending.h"
#include "../common/mesh.h"
#include "../common/picture.h"
#include "../common/render.h"
#include "../common/shape.h"

using namespace weft;

namespace {

struct Options {
  std::string mesh, device, search = "walk", builder = "hploc", out = "pictures";
  int width = 1280, height = 720, samples = 32, rounds = 5;
};

constexpr float kSize = 2.4f, kLowest = 0.01f;

Options parse(int argc, char** argv) {
  Options o;
  CLI::App app("Draws a mesh by rays.");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)->always_capture_default();
  app.add_option("--mesh", o.mesh, "OBJ, PLY or STL file; a torus knot without it");
  app.add_option("--device", o.device, "vulkan:0, cpu, reference; the best one present without it");
  app.add_option("--search", o.search, "Who finds hits: walk (weft's hierarchy) or device (its own ray query)")
      ->check(CLI::IsMember({"walk", "device"}));
  app.add_option("--builder", o.builder, "How the hierarchy is built: hploc or lbvh")
      ->check(CLI::IsMember({"hploc", "lbvh"}));
  app.add_option("--samples", o.samples, "Paths per pixel")->check(CLI::Range(1, 100000));
  app.add_option("--rounds", o.rounds, "Times that all rays are measured")->check(CLI::Range(1, 1000));
  app.add_option("--width", o.width, "Of the picture")->check(CLI::Range(1, 8192));
  app.add_option("--height", o.height, "Of the picture")->check(CLI::Range(1, 8192));
  app.add_option("--out", o.out, "Folder for the picture");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    std::exit(app.exit(e) == 0 ? 0 : 1);
  }
  return o;
}

// How far it is to the mesh through each pixel; 0 where the ray meets nothing.
auto depth_kernel(RaySearch search) {
  return kernel("depth",
                [search](Var<MeshArrays> mesh, Arr<float, 2> depth, Vec3 eye, Vec3 forward, Vec3 right, Vec3 up) {
                  auto [row, column] = tid<2>();
                  Float across = (2 * Float(column) + 1) / Float(depth.shape(1)) - 1;
                  Float down = (2 * Float(row) + 1) / Float(depth.shape(0)) - 1;
                  depth(row, column) = mesh_query_ray(mesh, eye, normalize(forward + right * across - up * down),
                                                      std::numeric_limits<float>::infinity(), search)
                                           .t;
                });
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// \return  what is wrong with the outcome, if anything
std::string run(const Options& o) {
  using Clock = std::chrono::steady_clock;
  const Device device = o.device.empty() ? Device::best() : Device(o.device);
  fmt::print("device    {} ({})\n", device.name(), device.adapter());
  BodyMesh body = o.mesh.empty() ? torus_knot(1200) : read_mesh(o.mesh);
  place(body, kSize, kLowest, 0, 0);
  const Shape shape = shape_of(device, body);
  const RaySearch search = o.search == "device" ? RaySearch::device : RaySearch::walk;

  Mesh mesh(shape.positions, shape.triangles,
            {.builder = o.builder == "lbvh" ? BvhBuilder::lbvh : BvhBuilder::hploc,
             .ray_query = search == RaySearch::device});
  mesh.rebuild();  // once for the time that kernels take to compile
  device.synchronize();
  const auto building = Clock::now();
  mesh.rebuild();
  device.synchronize();
  fmt::print("mesh      {}: {} triangles, hierarchy of depth {} built in {:.1f} ms\n",
             o.mesh.empty() ? "torus knot" : o.mesh, mesh.size(), mesh.tree().depth(), seconds_since(building) * 1e3);

  float top = 0;
  for (const vec3& p : body.positions) top = std::max(top, p.y);
  const Camera camera{{1.6f, 0.6f + 0.75f * top, 3.4f}, {0, 0.45f * top, 0}, 34};
  const vec3 forward = normalize(camera.target - camera.eye);
  const float half = std::tan(camera.view * std::numbers::pi_v<float> / 360);
  const vec3 right = normalize(cross(forward, vec3{0, 1, 0})), up = cross(right, forward) * half;
  Array<float, 2> depth = empty<float, 2>(device, {o.height, o.width});
  const auto rays = depth_kernel(search);
  double fastest = 0;
  for (int round = 0; round <= o.rounds; ++round) {
    const auto start = Clock::now();
    launch(rays, {o.height, o.width}, mesh, depth, camera.eye, forward,
           right * (half * float(o.width) / float(o.height)), up);
    device.synchronize();
    if (round > 0) fastest = std::max(fastest, double(o.width) * o.height / seconds_since(start));
  }
  int hits = 0;
  for (const float t : depth.to_vector()) hits += t > 0;
  fmt::print("rays      {:.2f} million a second, one through each pixel; {:.1f} % hit the mesh\n", fastest * 1e-6,
             100. * hits / (double(o.width) * o.height));

  const auto drawing = Clock::now();
  const Picture picture = draw(shape, {}, {camera, o.width, o.height, o.samples, search});
  const std::filesystem::path folder = o.out;
  std::filesystem::create_directories(folder);
  write_png(folder / "raycast.png", picture);
  fmt::print("picture   {}: drawn in {:.1f} s\n", std::filesystem::absolute(folder / "raycast.png").string(),
             seconds_since(drawing));
  return hits > 0 ? std::string() : "no ray hit the mesh";
}

}  // namespace

int main(int argc, char** argv) {
  return run_example("raycast", [&] { return run(parse(argc, argv)); });
}

// raycast: a mesh by rays. Measures rays through each pixel, then draws the mesh with light and shadows to a PNG file.
#include <fmt/core.h>
#include <weft/runtime/geometry/mesh.h>

#include <algorithm>

#include "../common/mesh.h"
#include "../common/program.h"
#include "../common/render.h"
#include "../common/shape.h"

using namespace weft;

namespace {

struct Options : DrawingOptions {
  std::string mesh, search = "walk", builder = "hploc";
  int rounds = 5;
};

constexpr float kSize = 2.4f, kLowest = 0.01f;

// A camera that looks down on the mesh, from so far that the picture shows all of it and a little margin.
Camera camera_for(const BodyMesh& mesh, const Options& o) {
  float top = 0;
  for (const vec3& p : mesh.positions) top = std::max(top, p.y);
  Camera camera{{1.6f, 0.6f + 0.75f * top, 3.4f}, {0, 0.45f * top, 0}, 34};
  show_all(camera, mesh.positions, o.width, o.height);
  return camera;
}

// Computes the distance to the mesh through each pixel; 0 if the ray meets nothing.
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

/// \return  a description of what is wrong with the outcome, if anything
std::string run(const Options& o) {
  const Device device = device_of(o);
  BodyMesh body = o.mesh.empty() ? torus_knot(1200) : read_mesh(o.mesh);
  place(body, kSize, kLowest, 0, 0);
  const Shape shape = shape_of(device, body);
  const RaySearch search = o.search == "device" ? RaySearch::device : RaySearch::walk;

  Mesh mesh(shape.positions, shape.triangles,
            {.builder = o.builder == "lbvh" ? BvhBuilder::lbvh : BvhBuilder::hploc,
             .ray_query = search == RaySearch::device});
  mesh.rebuild();  // a first time, in which kernels are compiled
  device.synchronize();
  const Stopwatch building;
  mesh.rebuild();
  device.synchronize();
  fmt::print("mesh      {}: {} triangles, hierarchy of depth {} built in {:.1f} ms\n",
             o.mesh.empty() ? "torus knot" : o.mesh, mesh.size(), mesh.tree().depth(), building.seconds() * 1e3);

  const Camera camera = camera_for(body, o);
  const CameraFrame frame = frame_of(camera, o.width, o.height);
  Array<float, 2> depth = empty<float, 2>(device, {o.height, o.width});
  const auto rays = depth_kernel(search);
  double fastest = 0;
  for (int round = 0; round <= o.rounds; ++round) {
    const Stopwatch watch;
    launch(rays, {o.height, o.width}, mesh, depth, camera.eye, frame.forward, frame.right, frame.up);
    device.synchronize();
    if (round > 0) fastest = std::max(fastest, double(o.width) * o.height / watch.seconds());
  }
  int hits = 0;
  for (const float t : depth.to_vector()) hits += t > 0;
  fmt::print("rays      {:.2f} million a second, one through each pixel; {:.1f} % hit the mesh\n", fastest * 1e-6,
             100. * hits / (double(o.width) * o.height));

  const Stopwatch drawing;
  const auto progress = [](int done, int all) { show_progress("row", done, all); };
  const Picture picture = draw(shape, {}, {camera, o.width, o.height, o.samples, search, progress});
  const std::filesystem::path folder = folder_of(o);
  write_png(folder / "raycast.png", picture);
  fmt::print("picture   {}: drawn in {:.1f} s\n", std::filesystem::absolute(folder / "raycast.png").string(),
             drawing.seconds());
  return hits > 0 ? std::string() : "no ray hit the mesh";
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  o.width = 1280, o.height = 720, o.samples = 32;
  const auto add = [&](CLI::App& app) {
    add_options(app, o);
    app.add_option("--mesh", o.mesh, "OBJ, PLY or STL file; a torus knot without it");
    app.add_option("--search", o.search, "Who finds hits: walk (weft's hierarchy) or device (its own ray query)")
        ->check(CLI::IsMember({"walk", "device"}));
    app.add_option("--builder", o.builder, "How the hierarchy is built: hploc or lbvh")
        ->check(CLI::IsMember({"hploc", "lbvh"}));
    app.add_option("--rounds", o.rounds, "Times that all rays are measured")->check(CLI::Range(1, 1000));
  };
  return run_program({"raycast", "Draws a mesh by rays.", add, {}, [&] { return run(o); }}, argc, argv);
}

// drop: a soft body of springs falls on a sphere and a floor; pictures of it become PNG files.
#include <fmt/core.h>

#include "../common/body.h"
#include "../common/mesh.h"
#include "../common/program.h"
#include "../common/render.h"
#include "../common/scene.h"

namespace {

struct Options : FilmOptions {
  std::string mesh;
};

constexpr float kFrameTime = 1 / 60.f;
constexpr float kBodySize = 2.2f;
constexpr float kStartHeight = 1.6f;  // of the body's lowest point

std::string run(const Options& o) {
  const weft::Device device = device_of(o);

  BodyMesh mesh = o.mesh.empty() ? torus_knot() : read_mesh(o.mesh);
  place(mesh, kBodySize, kStartHeight, 0.08f, 0.03f);
  Body body(device, mesh);
  fmt::print("body      {}: {} vertices, {} triangles, {} springs\n", o.mesh.empty() ? "torus knot" : o.mesh,
             mesh.positions.size(), mesh.triangles.size(), body.springs());

  // The picture reaches from the floor to the top of the body, however tall it is.
  float top = 0;
  for (const weft::vec3& p : mesh.positions) top = std::max(top, p.y);
  const Camera camera{{1.0f * top, 0.8f * top, 1.65f * top}, {0, 0.44f * top, 0}, 36};
  const Balls ball = sphere_of_scene(device);
  Film film(o, "drop", [&] { return draw(body.shape(), ball, {camera, o.width, o.height, o.samples}); });
  film.run([&](int frame) {
    body.advance(o.substeps, kFrameTime / float(o.substeps));
    body.positions().wait();
    show_progress("frame", frame, o.frames);
    return std::string();
  });

  fmt::print("speed     {:.0f} steps per second, {:.1f} million springs per second\n",
             o.frames * o.substeps / film.seconds_simulating(),
             double(o.frames) * o.substeps * double(body.springs()) / film.seconds_simulating() * 1e-6);
  film.finish();
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  const auto add = [&](CLI::App& app) {
    add_options(app, o);
    app.add_option("--mesh", o.mesh,
                   "OBJ, PLY or STL file to drop; a torus knot without it. Its vertices meet the sphere, so that its "
                   "triangles should be smaller than that (radius 0.7; the body is 2.2 long)");
  };
  return run_program(
      {"drop", "Drops a soft body on a sphere and draws it.", add, [&] { check_options(o); }, [&] { return run(o); }},
      argc, argv);
}

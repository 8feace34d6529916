// Rays: draws a mesh with letters. Without an argument it is a torus; otherwise the mesh of an OBJ, PLY or STL file.
#include <weft/geometry.h>
#include <weft/weft.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

using namespace weft;

constexpr int kWidth = 64, kHeight = 24;

const auto draw = kernel("draw", [](Var<MeshArrays> mesh, Arr<int, 2> shade, Vec3 centre, Float size) {
  auto [row, column] = tid<2>();
  const Float x = (Float(column) + 0.5f) / kWidth - 0.5f, y = 0.5f - (Float(row) + 0.5f) / kHeight;
  // The camera looks from above towards the middle; a letter is about twice as high as it is wide.
  const vec3 forward = normalize(vec3{0, -0.8f, -1}), right{1, 0, 0}, up = cross(right, forward);
  const Vec3 eye = centre - forward * size;
  const Vec3 direction = forward + 1.2f * x * right + 0.9f * y * up;
  MeshRayHit hit = mesh_query_ray(mesh, eye, direction);
  If (hit.hit) {
    const Float light = dot(hit.normal, normalize(vec3{0.4f, 0.8f, 0.5f}));
    shade(row, column) = 1 + Int(max(light, 0) * 6.99f);
  }
});

int main(int count, char** arguments) try {
  const Device device = Device::best();
  const MeshData data = count > 1 ? load_mesh(arguments[1]) : shapes::torus();
  vec3 lower = data.points.at(0), upper = lower;
  for (const vec3& p : data.points) lower = min(lower, p), upper = max(upper, p);

  const Mesh mesh(device, data);
  const Array<int, 2> shade = zeros<int, 2>(device, {kHeight, kWidth});
  launch(draw, {kHeight, kWidth}, mesh, shade, (lower + upper) / 2, length(upper - lower) * 0.85f);

  const std::vector<int> shades = shade.to_vector();
  for (int row = 0; row < kHeight; ++row) {
    std::string line;
    for (int column = 0; column < kWidth; ++column) line += " .:-=+*#"[shades[std::size_t(row * kWidth + column)]];
    std::printf("%s\n", line.substr(0, line.find_last_not_of(' ') + 1).c_str());
  }
  return std::ranges::count(shades, 0) < kWidth * kHeight ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

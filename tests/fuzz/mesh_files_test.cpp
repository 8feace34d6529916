// Mesh files of random bytes and of damaged good ones: each is a mesh with indices in range and finite points, which is
// read back as it was saved, or is refused with words.
#include <fmt/core.h>
#include <weft/runtime/geometry/mesh_shapes.h>
#include <weft/weft.h>

#include <cmath>
#include <cstring>
#include <numbers>
#include <string>
#include <vector>

#include "../../runtime/geometry/files/mesh_formats.h"
#include "inputs.h"

namespace weft {
namespace {

using mesh_formats::Format;
using test::below;
using test::one_in;
using test::one_of;
using test::Random;

std::string random_number(Random& random) {
  static constexpr const char* kNumbers[] = {
      "0",   "1",  "-1",     "2",    "0.5", "1e30",  "-3e38", "1e39",     "1e-40", "nan",  "-inf",
      "1,5", "+2", "1.#IND", "0x10", "",    "1e400", "1e-5",  "16777217", ".",     "-0.0", "99999999999999999999"};
  return one_in(random, 3) ? one_of(random, kNumbers)
                           : fmt::format("{:.6g}", double(int(below(random, 2000)) - 1000) / 64);
}
std::string end_of_line(Random& random, const char* usual) {
  static constexpr const char* kEnds[] = {"\n", "\r\n", "\r", " ", "\\\n", " # x\n", "\n\n", "\\ \r\n"};
  return one_in(random, 40) ? one_of(random, kEnds) : usual;
}
const char* usual_end(Random& random) {
  static constexpr const char* kEnds[] = {"\n", "\n", "\r\n", "\r"};
  return one_of(random, kEnds);
}

/// Points of polygons: on a circle, on a small grid or anywhere.
vec3 random_point(Random& random, std::uint64_t kind, std::size_t k, std::size_t n) {
  if (kind == 0) {
    const double angle = 2 * std::numbers::pi * double(k) / double(n);
    return {float(std::cos(angle)), float(std::sin(angle)), 0.5f};
  }
  if (kind == 1) return {float(below(random, 4)), float(below(random, 4)), 0};
  vec3 p;
  for (int axis = 0; axis < 3; ++axis)
    p[axis] = std::ldexp(float(int(below(random, 200)) - 100), int(below(random, 20)));
  return p;
}
std::size_t random_corners(Random& random) {
  return one_in(random, 50) ? 3 + below(random, 400) : one_in(random, 20) ? below(random, 3) : 3 + below(random, 12);
}

std::string random_obj(Random& random) {
  static constexpr const char* kOthers[] = {"vn 0 0 1", "vt 0 0", "usemtl a\\", "g a b",
                                            "s off",    "l 1 2",  "# \\",       "mtllib a b"};
  static constexpr const char* kForms[] = {"{}", "{}/1", "{}//1", "{}/", "{}//", "{}/0/0", "+{}", "{}.5", "/{}"};
  const char* const end = usual_end(random);
  std::string text;
  std::size_t points = 0;
  for (std::uint64_t part = 1 + below(random, 4); part > 0; --part) {
    const std::size_t n = random_corners(random);
    const std::uint64_t kind = below(random, 3);
    for (std::size_t k = 0; k < n; ++k) {
      const vec3 p = random_point(random, kind, k, n);
      text += one_in(random, 60) ? "v " + random_number(random) + " " + random_number(random) + " 0"
                                 : fmt::format("v {} {} {}", p.x, p.y, p.z);
      text += end_of_line(random, end);
    }
    points += n;
    text += one_in(random, 30) ? "fo" : "f";
    const bool backwards = one_in(random, 3);
    for (std::size_t k = 0; k < n; ++k) {
      const long long vertex = one_in(random, 60) ? (long long)(below(random, 9)) - 4
                               : backwards        ? -(long long)(n - k)
                                                  : (long long)(points - n + 1 + k);
      text += ' ' + fmt::format(fmt::runtime(one_in(random, 20) ? one_of(random, kForms) : "{}"), vertex);
    }
    text += end_of_line(random, end);
    if (one_in(random, 4)) text += one_of(random, kOthers) + end_of_line(random, end);
  }
  return text;
}

template <class T>
void put(std::string& to, T x, bool big_endian) {
  std::string bytes(sizeof x, 0);
  std::memcpy(bytes.data(), &x, sizeof x);
  to += big_endian ? std::string(bytes.rbegin(), bytes.rend()) : bytes;
}
/// Writes numbers as PLY files have them.
struct PlyNumbers {
  int encoding;  ///< 0: text
  std::string body;
  void put_number(const std::string& type, double x) {
    const bool big = encoding == 2;
    if (encoding == 0)
      body += fmt::format("{} ", x);
    else if (type == "char" || type == "uchar")
      put(body, std::uint8_t(std::int64_t(x)), big);
    else if (type == "short" || type == "ushort")
      put(body, std::uint16_t(std::int64_t(x)), big);
    else if (type == "int" || type == "uint")
      put(body, std::uint32_t(std::int64_t(x)), big);
    else if (type == "float")
      put(body, float(x), big);
    else
      put(body, x, big);
  }
};

std::string random_ply(Random& random) {
  static constexpr const char* kFormats[] = {"ascii", "binary_little_endian", "binary_big_endian"};
  static constexpr const char* kTypes[] = {"char", "uchar", "short", "ushort", "int", "uint", "float", "double"};
  static constexpr const char* kReals[] = {"float", "double", "short"};
  static constexpr const char* kIndices[] = {"int", "uint", "short", "ushort", "double"};
  const char* const end = usual_end(random);
  const int encoding = int(below(random, 3));
  PlyNumbers numbers{encoding, {}};
  const std::size_t n = random_corners(random), faces = below(random, 4);
  const std::uint64_t kind = below(random, 3);
  const bool strips = one_in(random, 3), extra = one_in(random, 3);
  const std::string real = one_of(random, kReals), extra_type = one_of(random, kTypes),
                    count_type = one_of(random, kTypes), index_type = one_of(random, kIndices);
  std::string text = fmt::format("ply{0}format {1} 1.0{0}element vertex {2}{0}", end, kFormats[encoding], n);
  if (extra) text += fmt::format("property {1} quality{0}", end, extra_type);
  text += fmt::format("property {1} x{0}property {1} y{0}property {1} z{0}element {2} {3}{0}", end, real,
                      strips ? "tristrips" : "face", faces);
  text += fmt::format("property list {1} {2} vertex_indices{0}end_header{0}", end, count_type, index_type);
  for (std::size_t k = 0; k < n; ++k) {
    if (extra) numbers.put_number(extra_type, double(below(random, 200)));
    const vec3 p = random_point(random, kind, k, n);
    for (int axis = 0; axis < 3; ++axis) numbers.put_number(real, double(p[axis]));
    if (encoding == 0) numbers.body += end_of_line(random, end);
  }
  for (std::size_t f = 0; f < faces; ++f) {
    const std::size_t corners = n + (one_in(random, 20) ? below(random, 3) : 0);
    numbers.put_number(count_type, double(corners));
    for (std::size_t k = 0; k < corners; ++k)
      numbers.put_number(index_type, one_in(random, 30)            ? double(below(random, 5)) - 2
                                     : strips && one_in(random, 6) ? -1
                                                                   : double(k));
    if (encoding == 0) numbers.body += end_of_line(random, end);
  }
  return text + numbers.body;
}

std::string random_stl(Random& random) {
  const std::size_t triangles = below(random, 6);
  const std::uint64_t kind = below(random, 3);
  if (one_in(random, 2)) {
    std::string content = one_in(random, 2) ? "solid a" : "binary";
    content.resize(80, one_in(random, 2) ? ' ' : '\0');
    put(content, std::uint32_t(triangles), false);
    for (std::size_t t = 0; t < 3 * triangles; ++t) {
      if (t % 3 == 0) content += std::string(t ? 14 : 12, '\0');
      const vec3 p = random_point(random, kind, t, 3 * triangles);
      for (int axis = 0; axis < 3; ++axis) put(content, p[axis], false);
    }
    if (triangles) content += std::string(2, '\0');
    if (one_in(random, 10)) content += std::string(below(random, 120), char(below(random, 2)));
    return content;
  }
  static constexpr const char* kNames[] = {"", " a", " facet normal", " vertex 1 2 3", " solid endsolid loop"};
  const std::string end = one_in(random, 6) ? " " : usual_end(random);
  std::string text = "solid" + std::string(one_of(random, kNames)) + end;
  for (std::size_t t = 0; t < 3 * triangles; ++t) {
    if (t % 3 == 0) text += "facet normal 0 0 " + random_number(random) + end + "outer loop" + end;
    const vec3 p = random_point(random, kind, t, 3 * triangles);
    text += fmt::format("vertex {} {} {}", p.x, p.y, one_in(random, 50) ? random_number(random) : std::to_string(p.z));
    text += end_of_line(random, end.c_str());
    if (t % 3 == 2) text += "endloop" + end + "endfacet" + end;
  }
  text += "endsolid" + std::string(one_of(random, kNames)) + end;
  if (one_in(random, 3))
    for (char& c : text)
      if (c >= 'a' && c <= 'z') c = char(c - 'a' + 'A');
  return text;
}

void expect_mesh(const MeshData& mesh, std::size_t bytes) {
  ASSERT_FALSE(mesh.indices.empty());
  ASSERT_EQ(mesh.indices.size() % 3, 0u);
  // Each point and each triangle takes bytes of the file.
  ASSERT_LE(mesh.points.size(), bytes);
  ASSERT_LE(mesh.indices.size(), 3 * bytes);
  for (const int index : mesh.indices) ASSERT_LT(std::size_t(index), mesh.points.size());
  for (const vec3& p : mesh.points) ASSERT_TRUE(std::isfinite(p.x) && std::isfinite(p.y) && std::isfinite(p.z));
}

TEST(FuzzMeshFiles, are_meshes_or_refused) {
  std::uint64_t meshes = 0, refused = 0;
  test::for_each_input(3000, [&](Random& random) {
    const Format format = Format(below(random, 3));
    const auto make = [&](Format f) {
      return f == Format::obj ? random_obj(random) : f == Format::ply ? random_ply(random) : random_stl(random);
    };
    // Now and then the content is of another format, or of none.
    std::string content = make(one_in(random, 100) ? Format(below(random, 3)) : format);
    if (one_in(random, 100)) content.assign(below(random, 200), char(random()));
    if (!one_in(random, 3)) test::damage(random, content);
    MeshData mesh;
    try {
      mesh = mesh_formats::read_mesh(format, content);
    } catch (const mesh_formats::NoMesh& e) {
      ++refused;
      ASSERT_GT(std::strlen(e.what()), 10u);
      return;
    }
    ++meshes;
    ASSERT_NO_FATAL_FAILURE(expect_mesh(mesh, content.size()));
    const MeshData obj = mesh_formats::read_mesh(Format::obj, mesh_formats::write_obj(mesh));
    ASSERT_EQ(obj.points, mesh.points);
    ASSERT_EQ(obj.indices, mesh.indices);
    ASSERT_EQ(mesh_formats::read_mesh(Format::ply, mesh_formats::write_ply(mesh)).indices, mesh.indices);
    ASSERT_EQ(mesh_formats::read_mesh(Format::stl, mesh_formats::write_stl(mesh)).indices.size(), mesh.indices.size());
  });
  // Meshes and refusals must both be common, or the inputs are not worth trying.
  if (meshes + refused >= 1000) {
    EXPECT_GT(meshes, (meshes + refused) / 5);
    EXPECT_GT(refused, (meshes + refused) / 5);
  }
}

}  // namespace
}  // namespace weft

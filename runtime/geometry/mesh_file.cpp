// Mesh files: what all formats have in common, and OBJ by tinyobjloader.
#include "mesh_file.h"

#include <fast_float/fast_float.h>
#include <tiny_obj_loader.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include "../../frontend/support/error.h"
#include "mesh_formats.h"

namespace weft {

namespace mesh_formats {

bool parse_number(std::string_view word, double& value) {
  if (word.starts_with('+')) word.remove_prefix(1);
  // As std::from_chars, which libc++ lacks for reals. Tiny ones are 0, as everywhere, and huge ones infinite, which is
  // no coordinate: newer versions also call both an error.
  const auto [end, error] = fast_float::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() && error != std::errc::result_out_of_range) return false;
  return !word.empty() && end == word.data() + word.size();
}

namespace {

/// Looks at the corners of a face, of which the loader says nothing that names them: "7", "7/1/3", or "-1" for the last
/// vertex so far.
/// \param ahead  takes the vertices that are not there yet, with the line
void check_face(Words& words, std::size_t line, std::size_t vertices,
                std::vector<std::pair<std::size_t, long long>>& ahead) {
  int corners = 0;
  for (std::string_view word = words.next(); !word.empty(); word = words.next(), ++corners) {
    word = word.substr(0, word.find('/'));
    if (word.starts_with('+')) word.remove_prefix(1);
    long long vertex = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), vertex);
    if (error != std::errc() || end != word.data() + word.size())
      damaged("line {}: \"{}\" in a face is no number of a vertex", line, word);
    if (vertex == 0) damaged("line {}: a face refers to vertex 0; they count from 1, or from -1 backwards", line);
    if (vertex < 0 && vertex < -static_cast<long long>(vertices))
      damaged("line {}: a face refers to vertex {}, and there are {} before it", line, vertex, vertices);
    if (vertex > static_cast<long long>(vertices)) ahead.push_back({line, vertex});
  }
  if (corners < 3) damaged("line {}: a face with {} corners; it takes 3", line, corners);
}

/// What neither reader of lines knows is taken away: comments, also those behind something, and the ends of lines that
/// go on in the next one. Such a line is followed by as many empty ones, so that all lines keep their numbers.
std::string plain_lines(std::string_view text) {
  std::string plain;
  plain.reserve(text.size() + 1);
  for (std::size_t joined = 0; !text.empty();) {
    const std::string_view line = text.substr(0, text.find_first_of("\r\n"));
    text.remove_prefix(line.size());
    text.remove_prefix(text.starts_with("\r\n") ? 2 : text.empty() ? 0 : 1);
    const std::size_t comment = line.find('#');
    // In a comment a backslash means nothing: no line is lost behind one.
    const bool goes_on = comment == line.npos && line.ends_with('\\');
    plain += goes_on ? line.substr(0, line.size() - 1) : line.substr(0, comment);
    if (goes_on && !text.empty()) {
      plain += ' ';
      ++joined;
    } else {
      plain.append(joined + 1, '\n');
      joined = 0;
    }
  }
  return plain;
}

/// The loader takes 0 for what it cannot read, and does not round to the nearest number: the vertices are read here.
std::vector<vec3> read_vertices(std::string_view text) {
  std::vector<vec3> points;
  std::vector<std::pair<std::size_t, long long>> ahead;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find_first_of("\r\n"));
    text.remove_prefix(line.size());
    text.remove_prefix(text.starts_with("\r\n") ? 2 : text.empty() ? 0 : 1);
    Words words(line);
    const std::string_view kind = words.next();
    if (kind == "f") check_face(words, number, points.size(), ahead);
    if (kind != "v") continue;
    vec3 p;
    for (int k = 0; k < 3; ++k) {
      double value = 0;
      if (!parse_number(words.next(), value)) damaged("line {} is not a vertex with three numbers", number);
      p[k] = float(value);
    }
    points.push_back(p);
  }
  for (const auto& [line, vertex] : ahead)
    if (vertex > static_cast<long long>(points.size()))
      damaged("line {}: a face refers to vertex {} of {}", line, vertex, points.size());
  return points;
}

}  // namespace

MeshData read_obj(std::string_view content) {
  const std::string plain = plain_lines(content);
  MeshData mesh{read_vertices(plain), {}};
  tinyobj::attrib_t attributes;
  std::vector<tinyobj::shape_t> shapes;
  std::vector<tinyobj::material_t> materials;
  std::string warnings, errors;
  std::istringstream stream(plain);
  const bool read = tinyobj::LoadObj(&attributes, &shapes, &materials, &warnings, &errors, &stream, nullptr, true);
  while (!errors.empty() && errors.find_last_not_of(" \n\r") != errors.size() - 1) errors.pop_back();
  if (!read || !errors.empty()) damaged("{}", errors.empty() ? "it cannot be parsed" : errors);
  // Polygons with such indices are left out.
  if (warnings.find("Vertex indices out of bounds") != std::string::npos)
    damaged("faces refer to vertices that it does not have");

  const std::size_t count = mesh.points.size();
  if (count != attributes.vertices.size() / 3) damaged("its lines cannot be told apart");
  for (const tinyobj::shape_t& shape : shapes)
    for (const tinyobj::index_t& corner : shape.mesh.indices) {
      if (corner.vertex_index < 0 || std::size_t(corner.vertex_index) >= count)
        damaged("a face refers to vertex {} of {}", std::int64_t(corner.vertex_index) + 1, count);
      mesh.indices.push_back(corner.vertex_index);
    }
  return mesh;
}

std::string write_obj(const MeshData& mesh) {
  std::string text;
  for (const vec3& p : mesh.points) text += fmt::format("v {} {} {}\n", p.x, p.y, p.z);
  for (std::size_t t = 0; t < mesh.indices.size(); t += 3)
    text += fmt::format("f {} {} {}\n", mesh.indices[t] + 1, mesh.indices[t + 1] + 1, mesh.indices[t + 2] + 1);
  return text;
}

}  // namespace mesh_formats

namespace {

enum class Format { obj, ply, stl };
Format format_of(const std::string& path) {
  const std::size_t dot = path.find_last_of("./\\");
  std::string ending = dot == path.npos || path[dot] != '.' ? "" : path.substr(dot);
  for (char& c : ending)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  if (ending == ".obj") return Format::obj;
  if (ending == ".ply") return Format::ply;
  if (ending == ".stl") return Format::stl;
  throw Error(ErrorKind::invalid_argument, fmt::format("{}: a mesh file ends with .obj, .ply or .stl", path));
}

/// The first point with a coordinate that is not finite, or the number of points.
std::size_t first_bad(const MeshData& mesh) {
  const auto bad = std::find_if_not(mesh.points.begin(), mesh.points.end(), [](const vec3& p) {
    return std::isfinite(p.x) && std::isfinite(p.y) && std::isfinite(p.z);
  });
  return std::size_t(bad - mesh.points.begin());
}

}  // namespace

MeshData load_mesh(const std::string& path) {
  const Format format = format_of(path);
  auto fail = [&](const std::string& reason) { throw Error(ErrorKind::io, fmt::format("{}: {}", path, reason)); };
  std::ifstream file(path, std::ios::binary);
  if (!file) fail("the file cannot be opened");
  std::ostringstream stream;
  stream << file.rdbuf();
  const std::string all = std::move(stream).str();
  if (all.empty()) fail("the file is empty or cannot be read");
  // Editors put a mark of UTF-8 before a text. The length of a binary STL file counts all bytes of its header.
  std::string_view content = all;
  constexpr std::string_view mark = "\xef\xbb\xbf";
  if (content.starts_with(mark) && (format != Format::stl || content.substr(mark.size()).starts_with("solid")))
    content.remove_prefix(mark.size());
  MeshData mesh;
  try {
    mesh = format == Format::obj   ? mesh_formats::read_obj(content)
           : format == Format::ply ? mesh_formats::read_ply(content)
                                   : mesh_formats::read_stl(content);
  } catch (const mesh_formats::Damaged& e) {
    fail(fmt::format("the file is damaged: {}", e.what()));
  }
  if (const std::size_t i = first_bad(mesh); i < mesh.points.size())
    fail(fmt::format("the coordinates of point {} are not finite: {}, {}, {}", i, mesh.points[i].x, mesh.points[i].y,
                     mesh.points[i].z));
  if (mesh.indices.empty()) fail("the file has no triangles");
  if (mesh.indices.size() > std::size_t((std::numeric_limits<int>::max)()))
    fail(fmt::format("{} triangles are more than 32-bit indices reach", mesh.indices.size() / 3));
  return mesh;
}

void save_mesh(const std::string& path, const MeshData& mesh) {
  const Format format = format_of(path);
  auto refuse = [&](const std::string& reason) {
    throw Error(ErrorKind::invalid_argument, fmt::format("save_mesh to {}: {}", path, reason));
  };
  if (mesh.indices.empty()) refuse("a mesh has no triangles");
  if (mesh.indices.size() % 3 != 0)
    refuse(fmt::format("{} indices are not three for each triangle", mesh.indices.size()));
  for (std::size_t k = 0; k < mesh.indices.size(); ++k)
    if (mesh.indices[k] < 0 || std::size_t(mesh.indices[k]) >= mesh.points.size())
      refuse(fmt::format("triangle {} refers to point {} of {}", k / 3, mesh.indices[k], mesh.points.size()));
  if (const std::size_t i = first_bad(mesh); i < mesh.points.size())
    refuse(fmt::format("the coordinates of point {} are not finite", i));
  const std::string content = format == Format::obj   ? mesh_formats::write_obj(mesh)
                              : format == Format::ply ? mesh_formats::write_ply(mesh)
                                                      : mesh_formats::write_stl(mesh);
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), std::streamsize(content.size()));
  file.close();
  if (!file) throw Error(ErrorKind::io, fmt::format("{}: the file cannot be written", path));
}

}  // namespace weft

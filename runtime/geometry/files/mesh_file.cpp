// The parts of mesh files that all formats share.
#include "../mesh_file.h"

#include <fast_float/fast_float.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <new>

#include "../../../frontend/support/error.h"
#include "../../../frontend/support/invalid.h"
#include "../../../frontend/support/platform.h"
#include "mesh_formats.h"
#include "mesh_text.h"
#include "polygon_cut.h"

namespace weft {

namespace {

/// The index of the first point with a coordinate that is not finite, or the number of points.
std::size_t first_bad(std::span<const vec3> points) {
  const auto bad = std::find_if_not(points.begin(), points.end(), [](const vec3& p) {
    return std::isfinite(p.x) && std::isfinite(p.y) && std::isfinite(p.z);
  });
  return std::size_t(bad - points.begin());
}

}  // namespace

namespace mesh_formats {

bool parse_number(std::string_view word, double& value) {
  if (word.starts_with('+')) word.remove_prefix(1);
  // Parses like std::from_chars, which libc++ lacks for reals. Tiny numbers become 0 and huge ones infinite, which is
  // no coordinate; newer versions of std::from_chars call both an error.
  const auto [end, error] = fast_float::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() && error != std::errc::result_out_of_range) return false;
  return !word.empty() && end == word.data() + word.size();
}

bool is_word(std::string_view word, std::string_view lower) {
  return std::equal(word.begin(), word.end(), lower.begin(), lower.end(),
                    [](char c, char l) { return (c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c) == l; });
}

void Faces::add(std::span<const int> corners, const char* what, std::uint64_t place) {
  if (corners.size() < 3) return;
  if (corners.size() > 3) polygons_.push_back({corners_.size(), corners.size(), what, place});
  corners_.insert(corners_.end(), corners.begin(), corners.end());
}

std::vector<int> Faces::triangles(std::span<const vec3> points) && {
  for (const int corner : corners_)
    if (std::size_t(corner) >= points.size()) damaged("a face refers to vertex {} of {}", corner, points.size());
  if (polygons_.empty()) return std::move(corners_);
  std::vector<int> indices;
  polygons::Cutter cutter;
  const std::span<const int> corners = corners_;
  std::size_t done = 0;
  for (const Polygon& p : polygons_) {
    indices.insert(indices.end(), corners_.begin() + std::ptrdiff_t(done), corners_.begin() + std::ptrdiff_t(p.first));
    if (!cutter.cut(points, corners.subspan(p.first, p.count), indices))
      no_mesh("{} {} is a polygon of {} corners that crosses itself", p.what, p.place, p.count);
    done = p.first + p.count;
  }
  indices.insert(indices.end(), corners_.begin() + std::ptrdiff_t(done), corners_.end());
  return indices;
}

MeshData read_mesh(Format format, std::string_view content) {
  if (content.empty()) no_mesh("the file is empty");
  // Editors put a mark at the start of UTF-8 text. The length of a binary STL file counts all bytes of its header.
  constexpr std::string_view mark = "\xef\xbb\xbf";
  if (content.starts_with(mark) && (format != Format::stl || is_word(content.substr(mark.size(), 5), "solid")))
    content.remove_prefix(mark.size());
  if (format != Format::stl && (content.starts_with("\xff\xfe") || content.starts_with("\xfe\xff")))
    no_mesh("the text is in UTF-16; it has to be in ASCII or UTF-8");
  Content read = format == Format::obj   ? read_obj(content)
                 : format == Format::ply ? read_ply(content)
                                         : read_stl(content);
  MeshData mesh{std::move(read.points), {}};
  if (const std::size_t i = first_bad(mesh.points); i < mesh.points.size())
    no_mesh("the coordinates of point {} are not finite: {}, {}, {}", i, mesh.points[i].x, mesh.points[i].y,
            mesh.points[i].z);
  constexpr std::size_t most = (std::numeric_limits<int>::max)();
  if (mesh.points.size() > most) no_mesh("{} points are more than 32-bit indices reach", mesh.points.size());
  mesh.indices = std::move(read.faces).triangles(mesh.points);
  if (mesh.indices.empty()) no_mesh("the file has no triangles");
  if (mesh.indices.size() > most) no_mesh("{} triangles are more than 32-bit indices reach", mesh.indices.size() / 3);
  return mesh;
}

}  // namespace mesh_formats

namespace {

using mesh_formats::Format;

Format format_of(const std::string& path) {
  const std::size_t dot = path.find_last_of("./\\");
  std::string ending = dot == path.npos || path[dot] != '.' ? "" : path.substr(dot);
  for (char& c : ending)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  if (ending == ".obj") return Format::obj;
  if (ending == ".ply") return Format::ply;
  if (ending == ".stl") return Format::stl;
  invalid("{}: a mesh file ends with .obj, .ply or .stl", path);
}

/// Calls f(), and gives a lack of memory an error message.
template <class F>
auto with_memory(const std::string& path, F f) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  throw Error(ErrorKind::out_of_memory, path + ": there is not enough memory for the mesh");
}

}  // namespace

MeshData load_mesh(const std::string& path, Loc loc) {
  return detail::called_from(loc, [&] {
    return with_memory(path, [&] {
      const Format format = format_of(path);
      auto fail = [&](const std::string& reason) { throw Error(ErrorKind::io, fmt::format("{}: {}", path, reason)); };
      std::string why;
      const auto content = platform::read_file(path, ~0ull, &why);
      if (!content) fail(fmt::format("the file cannot be read: {}", why));
      MeshData mesh;
      try {
        mesh = mesh_formats::read_mesh(format, {reinterpret_cast<const char*>(content->data()), content->size()});
      } catch (const mesh_formats::NoMesh& e) {
        fail(e.what());
      }
      return mesh;
    });
  });
}

void save_mesh(const std::string& path, const MeshData& mesh, Loc loc) {
  detail::called_from(loc, [&] {
    const Format format = format_of(path);
    auto refuse = [&](const std::string& reason) { invalid("save_mesh to {}: {}", path, reason); };
    if (mesh.indices.empty()) refuse("a mesh has no triangles");
    if (mesh.indices.size() % 3 != 0)
      refuse(fmt::format("{} indices are not three for each triangle", mesh.indices.size()));
    for (std::size_t k = 0; k < mesh.indices.size(); ++k)
      if (mesh.indices[k] < 0 || std::size_t(mesh.indices[k]) >= mesh.points.size())
        refuse(fmt::format("triangle {} refers to point {} of {}", k / 3, mesh.indices[k], mesh.points.size()));
    if (const std::size_t i = first_bad(mesh.points); i < mesh.points.size())
      refuse(fmt::format("the coordinates of point {} are not finite", i));
    with_memory(path, [&] {
      const std::string content = format == Format::obj   ? mesh_formats::write_obj(mesh)
                                  : format == Format::ply ? mesh_formats::write_ply(mesh)
                                                          : mesh_formats::write_stl(mesh);
      std::string why;
      if (!platform::write_file(path, std::as_bytes(std::span(content)), &why))
        throw Error(ErrorKind::io, fmt::format("{}: the file cannot be written: {}", path, why));
    });
  });
}

}  // namespace weft

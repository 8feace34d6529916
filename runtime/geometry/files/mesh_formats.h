// The formats of mesh files, one function each; load_mesh() and save_mesh() open the file and check what all formats
// share.
#pragma once
#include <fmt/core.h>

#include <bit>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "../mesh_data.h"

namespace weft::mesh_formats {

/// Says why a file's content is no mesh; load_mesh() puts the file's name in front.
struct NoMesh : std::runtime_error {
  using std::runtime_error::runtime_error;
};
template <class... A>
[[noreturn]] void no_mesh(fmt::format_string<A...> text, A&&... values) {
  throw NoMesh(fmt::format(text, std::forward<A>(values)...));
}
template <class... A>
[[noreturn]] void damaged(fmt::format_string<A...> text, A&&... values) {
  no_mesh("the file is damaged: {}", fmt::format(text, std::forward<A>(values)...));
}

/// The faces of a file in its order; the points need not be known yet.
class Faces {
 public:
  Faces() = default;
  explicit Faces(std::vector<int> triangles) : corners_(std::move(triangles)) {}
  /// Adds a face. One of fewer than three corners has no triangle and is skipped, as other programs do.
  /// \param place  position in the file: "line 7", "face 3"
  void add(std::span<const int> corners, const char* what, std::uint64_t place);
  /// The indices of triangles. The points of polygons must be finite.
  std::vector<int> triangles(std::span<const vec3> points) &&;

 private:
  struct Polygon {
    std::size_t first, count;
    const char* what;
    std::uint64_t place;
  };
  std::vector<int> corners_;
  std::vector<Polygon> polygons_;  ///< faces that are not triangles
};

/// The content of a file. Coordinates are numbers, though perhaps not finite; indices are not negative.
struct Content {
  std::vector<vec3> points;
  Faces faces;
};
Content read_obj(std::string_view content);
Content read_ply(std::string_view content);
Content read_stl(std::string_view content);

enum class Format { obj, ply, stl };
/// Makes the mesh of a file's content, as load_mesh() promises it. Errors: NoMesh.
MeshData read_mesh(Format format, std::string_view content);

std::string write_obj(const MeshData& mesh);
std::string write_ply(const MeshData& mesh);
std::string write_stl(const MeshData& mesh);

/// Reads an unsigned number of `bytes` bytes.
inline std::uint64_t unsigned_at(const char* at, int bytes, bool big_endian) {
  std::uint64_t value = 0;
  for (int k = 0; k < bytes; ++k)
    value |= std::uint64_t(static_cast<unsigned char>(at[k])) << 8 * (big_endian ? bytes - 1 - k : k);
  return value;
}
inline float float_at(const char* at) { return std::bit_cast<float>(std::uint32_t(unsigned_at(at, 4, false))); }
inline void append_word(std::string& to, std::uint32_t word) {
  for (int k = 0; k < 4; ++k) to += char(word >> 8 * k & 255);
}
inline void append_float(std::string& to, float x) { append_word(to, std::bit_cast<std::uint32_t>(x)); }

}  // namespace weft::mesh_formats

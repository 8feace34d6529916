// STL files: a list of triangles, as text or in 50 bytes each. Equal points become one.
#include <cstring>
#include <unordered_map>

#include "mesh_formats.h"

namespace weft::mesh_formats {

namespace {

constexpr std::size_t kHeader = 84, kTriangle = 50;

/// Gives equal points one number.
class Merger {
 public:
  void add(float x, float y, float z) {
    const vec3 p{x + 0.f, y + 0.f, z + 0.f};  // -0 becomes 0
    const auto [entry, is_new] = numbers_.try_emplace(p, int(mesh.points.size()));
    if (is_new) mesh.points.push_back(p);
    mesh.indices.push_back(entry->second);
  }
  MeshData mesh;

 private:
  struct Same {
    // By bits: NaNs are refused later, and must not fill the table until then.
    bool operator()(const vec3& a, const vec3& b) const { return std::memcmp(&a, &b, sizeof a) == 0; }
  };
  struct Hash {
    std::size_t operator()(const vec3& p) const {
      std::uint64_t h = 0;
      for (int k = 0; k < 3; ++k) h = (h ^ std::bit_cast<std::uint32_t>(p[k])) * 0x9e3779b97f4a7c15u;
      return std::size_t(h ^ h >> 32);
    }
  };
  std::unordered_map<vec3, int, Hash, Same> numbers_;
};

MeshData read_text(std::string_view content) {
  Words words(content);
  Merger merger;
  int corners = 0;
  bool open = false;
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    const std::size_t triangle = merger.mesh.indices.size() / 3;
    if (word == "solid") {
      words.skip_line();  // a name may be any words
      open = true;
    } else if (word == "endsolid") {
      words.skip_line();
      open = false;
    } else if (word == "loop") {
      corners = 0;
    } else if (word == "vertex") {
      double p[3];
      for (double& x : p)
        if (!parse_number(words.next(), x)) damaged("triangle {} has a vertex without three numbers", triangle);
      if (++corners > 3) damaged("triangle {} has more than three vertices", triangle);
      merger.add(float(p[0]), float(p[1]), float(p[2]));
    } else if (word == "endloop") {
      if (corners != 3) damaged("triangle {} has {} vertices", triangle, corners);
    }
  }
  if (open || merger.mesh.indices.size() % 3 != 0)
    damaged("it ends early, after {} triangles", merger.mesh.indices.size() / 3);
  return std::move(merger.mesh);
}

}  // namespace

MeshData read_stl(std::string_view content) {
  // Binary files may begin with "solid", too: their length is what tells them.
  const std::uint64_t count = content.size() >= kHeader ? unsigned_at(content.data() + 80, 4, false) : 0;
  const std::uint64_t needed = kHeader + kTriangle * count;
  if (content.size() < kHeader || content.size() != needed) {
    const std::size_t first = content.find_first_not_of(" \t\r\n");
    if (first != content.npos && content.substr(first, 5) == "solid") return read_text(content);
    if (content.size() < kHeader) damaged("it has {} bytes, fewer than the header of an STL file", content.size());
    damaged("{} triangles take {} bytes, it has {}", count, needed, content.size());
  }
  Merger merger;
  for (std::uint64_t t = 0; t < count; ++t) {
    const char* at = content.data() + kHeader + kTriangle * t + 12;  // past the normal
    for (int k = 0; k < 3; ++k, at += 12) merger.add(float_at(at), float_at(at + 4), float_at(at + 8));
  }
  return std::move(merger.mesh);
}

std::string write_stl(const MeshData& mesh) {
  // Not "solid", with which the text form begins.
  std::string content = "binary STL";
  content.resize(80, ' ');
  append_word(content, std::uint32_t(mesh.indices.size() / 3));
  for (std::size_t t = 0; t < mesh.indices.size(); t += 3) {
    for (int k = 0; k < 3; ++k) append_float(content, 0);  // a zero normal: that of the points
    for (std::size_t k = 0; k < 3; ++k) {
      const vec3& p = mesh.points[std::size_t(mesh.indices[t + k])];
      for (int axis = 0; axis < 3; ++axis) append_float(content, p[axis]);
    }
    content.append(2, '\0');
  }
  return content;
}

}  // namespace weft::mesh_formats

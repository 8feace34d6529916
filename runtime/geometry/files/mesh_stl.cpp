// STL files: a list of triangles, as text or in 50 bytes each. Equal points become one.
#include <cstring>
#include <unordered_map>

#include "mesh_formats.h"
#include "mesh_text.h"

namespace weft::mesh_formats {

namespace {

constexpr std::size_t kHeader = 84, kTriangle = 50;

/// Gives equal points one number.
class Merger {
 public:
  void add(float x, float y, float z) {
    const vec3 p{x + 0.f, y + 0.f, z + 0.f};  // -0 becomes 0
    const auto [entry, is_new] = numbers_.try_emplace(p, int(points_.size()));
    if (is_new) points_.push_back(p);
    corners_.push_back(entry->second);
  }
  std::size_t corners() const { return corners_.size(); }
  Content content() && { return {std::move(points_), Faces(std::move(corners_))}; }

 private:
  struct Same {
    // Points are compared by bits: NaNs are refused only later, and must not fill the table before that.
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
  std::vector<vec3> points_;
  std::vector<int> corners_;
};

/// Skips the name of a solid, which may be any words up to the end of the line.
/// \return  whether the first facet is in the same line, as in files of one line
bool skip_name(Words& words) {
  const std::size_t line = words.line();
  for (;;) {
    Words ahead = words;
    const std::string_view word = ahead.next();
    if (word.empty() || ahead.line() != line) return false;
    if (is_word(word, "facet") && is_word(Words(ahead).next(), "normal")) return true;
    words = ahead;
  }
}

Content read_text(std::string_view content) {
  Words words(content);
  Merger merger;
  std::size_t in_loop = 0;
  bool open = false;
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    const std::size_t triangle = merger.corners() / 3;
    const auto need_three = [&] {
      if (in_loop != 3) damaged("line {}: triangle {} has {} vertices", words.line(), triangle, in_loop);
    };
    if (is_word(word, "solid")) {
      open = true;
      skip_name(words);
    } else if (is_word(word, "endsolid")) {
      // If a facet follows on the line, a further solid has begun after the name.
      open = skip_name(words);
    } else if (is_word(word, "loop")) {
      if (in_loop > 0) need_three();
      in_loop = 0;
    } else if (is_word(word, "vertex")) {
      double p[3];
      for (double& x : p)
        if (!parse_number(words.next(), x))
          damaged("line {}: triangle {} has a vertex without three numbers", words.line(), triangle);
      if (++in_loop > 3) damaged("line {}: triangle {} has more than three vertices", words.line(), triangle - 1);
      merger.add(float(p[0]), float(p[1]), float(p[2]));
    } else if (is_word(word, "endloop")) {
      need_three();
      in_loop = 0;
    }
  }
  if (open || merger.corners() % 3 != 0) damaged("it ends early, after {} triangles", merger.corners() / 3);
  return std::move(merger).content();
}

/// Whether a file is text, which begins with "solid". So do some binary headers, but their triangle count has a zero
/// byte.
bool is_text(std::string_view content) {
  Words words(content);
  return is_word(words.next().substr(0, 5), "solid") && content.substr(0, kHeader).find('\0') == content.npos;
}

}  // namespace

Content read_stl(std::string_view content) {
  const std::uint64_t count = content.size() >= kHeader ? unsigned_at(content.data() + 80, 4, false) : 0;
  const std::uint64_t needed = kHeader + kTriangle * count;
  // Only the length identifies binary files for certain.
  if (content.size() != needed && is_text(content)) return read_text(content);
  if (content.size() < kHeader) damaged("it has {} bytes, fewer than the header of an STL file", content.size());
  // Writers pad with zeros, or with less than a triangle after the last one.
  const bool is_whole = content.size() >= needed && (content.size() - needed < kTriangle ||
                                                     content.find_first_not_of('\0', needed) == content.npos);
  if (!is_whole) damaged("{} triangles take {} bytes, it has {}", count, needed, content.size());
  Merger merger;
  for (std::uint64_t t = 0; t < count; ++t) {
    const char* at = content.data() + kHeader + kTriangle * t + 12;  // past the normal
    for (int k = 0; k < 3; ++k, at += 12) merger.add(float_at(at), float_at(at + 4), float_at(at + 8));
  }
  return std::move(merger).content();
}

std::string write_stl(const MeshData& mesh) {
  // The header must not begin with "solid", as the text form does.
  std::string content = "binary STL";
  content.resize(80, ' ');
  append_word(content, std::uint32_t(mesh.indices.size() / 3));
  for (std::size_t t = 0; t < mesh.indices.size(); t += 3) {
    for (int k = 0; k < 3; ++k) append_float(content, 0);  // a zero normal: readers take that of the points
    for (std::size_t k = 0; k < 3; ++k) {
      const vec3& p = mesh.points[std::size_t(mesh.indices[t + k])];
      for (int axis = 0; axis < 3; ++axis) append_float(content, p[axis]);
    }
    content.append(2, '\0');
  }
  return content;
}

}  // namespace weft::mesh_formats

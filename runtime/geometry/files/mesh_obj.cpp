// OBJ files: text with points and faces, one statement a line. All other statements are skipped.
#include <algorithm>
#include <charconv>
#include <limits>

#include "mesh_formats.h"
#include "mesh_text.h"

namespace weft::mesh_formats {

namespace {

class ObjReader {
 public:
  explicit ObjReader(std::string_view content) : lines_(content) {}

  Content read() {
    for (std::string_view line; lines_.next(line);) {
      first_line_ = lines_.number();
      std::string_view statement = line;
      const bool goes_on = take_backslash(statement);
      Words words(statement);
      const std::string_view kind = words.next();
      // "fo" is the old word for a face. Only these lines continue: a backslash may also be the last letter of a name.
      const bool is_point = kind == "v", is_face = kind == "f" || kind == "fo";
      if (!is_point && !is_face) continue;
      if (goes_on) {
        joined_ = join(statement);
        words = Words(joined_);
        words.next();
      }
      is_point ? read_point(words) : read_face(words);
    }
    for (const auto& [line, vertex] : ahead_)
      if (vertex > static_cast<long long>(content_.points.size()))
        damaged("line {}: a face refers to vertex {} of {}", line, vertex, content_.points.size());
    return std::move(content_);
  }

 private:
  /// Removes a comment, in which a backslash means nothing, or the backslash that continues a statement.
  static bool take_backslash(std::string_view& line) {
    if (const std::size_t comment = line.find('#'); comment != line.npos) {
      line = line.substr(0, comment);
      return false;
    }
    const std::size_t last = line.find_last_not_of(" \t\v\f");
    if (last == line.npos || line[last] != '\\') return false;
    line = line.substr(0, last);
    return true;
  }
  std::string join(std::string_view first) {
    std::string all(first);
    for (std::string_view line; lines_.next(line);) {
      const bool goes_on = take_backslash(line);
      all.append(" ").append(line);
      if (!goes_on) break;
    }
    return all;
  }

  void read_point(Words& words) {
    vec3 p;
    for (int k = 0; k < 3; ++k) {
      double value = 0;
      if (!parse_number(words.next(), value)) damaged("line {} is not a vertex with three numbers", first_line_);
      p[k] = float(value);
    }
    content_.points.push_back(p);
  }

  /// Reads a face of corners such as "7", "7/1/3", or "-1" for the last vertex so far. What follows a slash is ignored.
  void read_face(Words& words) {
    const auto count = static_cast<long long>(content_.points.size());
    corners_.clear();
    for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
      word = word.substr(0, word.find('/'));
      if (word.starts_with('+')) word.remove_prefix(1);
      long long vertex = 0;
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), vertex);
      if (error != std::errc() || end != word.data() + word.size())
        damaged("line {}: \"{}\" in a face is no number of a vertex", first_line_, word);
      if (vertex == 0)
        damaged("line {}: a face refers to vertex 0; they count from 1, or from -1 backwards", first_line_);
      if (vertex < -count)
        damaged("line {}: a face refers to vertex {}, and there are {} before it", first_line_, vertex, count);
      if (vertex > count) ahead_.push_back({first_line_, vertex});
      const long long index = vertex < 0 ? count + vertex : vertex - 1;
      corners_.push_back(int(std::min<long long>(index, (std::numeric_limits<int>::max)())));
    }
    content_.faces.add(corners_, "line", first_line_);
  }

  Lines lines_;
  std::size_t first_line_ = 0;  ///< where the statement begins
  std::string joined_;
  Content content_;
  std::vector<int> corners_;
  std::vector<std::pair<std::size_t, long long>> ahead_;  ///< vertices that did not exist yet, with the line
};

}  // namespace

Content read_obj(std::string_view content) { return ObjReader(content).read(); }

std::string write_obj(const MeshData& mesh) {
  std::string text;
  for (const vec3& p : mesh.points) text += fmt::format("v {} {} {}\n", p.x, p.y, p.z);
  for (std::size_t t = 0; t < mesh.indices.size(); t += 3)
    text += fmt::format("f {} {} {}\n", mesh.indices[t] + 1, mesh.indices[t + 1] + 1, mesh.indices[t + 2] + 1);
  return text;
}

}  // namespace weft::mesh_formats

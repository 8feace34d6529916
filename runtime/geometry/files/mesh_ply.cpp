// PLY files: a header that describes tables, then the tables, as text or as binary of either byte order.
#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "mesh_formats.h"
#include "mesh_text.h"

namespace weft::mesh_formats {

namespace {

enum class Scalar { int8, uint8, int16, uint16, int32, uint32, float32, float64 };
std::optional<Scalar> scalar_named(std::string_view name) {
  constexpr std::pair<std::string_view, Scalar> names[] = {
      {"char", Scalar::int8},   {"uchar", Scalar::uint8},   {"short", Scalar::int16},     {"ushort", Scalar::uint16},
      {"int", Scalar::int32},   {"uint", Scalar::uint32},   {"float", Scalar::float32},   {"double", Scalar::float64},
      {"int8", Scalar::int8},   {"uint8", Scalar::uint8},   {"int16", Scalar::int16},     {"uint16", Scalar::uint16},
      {"int32", Scalar::int32}, {"uint32", Scalar::uint32}, {"float32", Scalar::float32}, {"float64", Scalar::float64}};
  for (const auto& [n, type] : names)
    if (n == name) return type;
  return {};
}
Scalar required_scalar(std::string_view name) {
  const auto type = scalar_named(name);
  if (!type) damaged("its header has no type \"{}\"", name);
  return *type;
}
int bytes_of(Scalar type) {
  constexpr int bytes[] = {1, 1, 2, 2, 4, 4, 4, 8};
  return bytes[int(type)];
}

struct Property {
  std::string name;
  Scalar type;
  std::optional<Scalar> count;  ///< the type of a list's length
};
struct Element {
  std::string name;
  std::uint64_t count;
  std::vector<Property> properties;
};
enum class Encoding { text, little, big };
struct Header {
  Encoding encoding = Encoding::text;
  std::vector<Element> elements;
  std::string_view body;
  std::size_t lines = 0;  ///< those of the header
};

/// The lines of a header. The first line decides how all lines end, because the bytes after the last one may be binary
/// numbers, whose first byte is no part of the line's end.
class HeaderLines {
 public:
  explicit HeaderLines(std::string_view content) : content_(content) {
    const std::size_t first = content.find_first_of("\r\n");
    if (first != content.npos && content[first] == '\r' && !content.substr(first + 1).starts_with('\n')) end_ = '\r';
  }
  std::string_view next() {
    const std::size_t end = content_.find(end_);
    if (end == content_.npos) damaged("{}", number_ == 0 ? "it is no PLY file" : "its header does not end");
    const std::string_view line = content_.substr(0, end);
    content_.remove_prefix(end + 1);
    ++number_;
    return line;
  }
  std::size_t number() const { return number_; }
  std::string_view rest() const { return content_; }

 private:
  std::string_view content_;
  char end_ = '\n';  // a CR before it is white space
  std::size_t number_ = 0;
};

Encoding encoding_named(std::string_view name) {
  if (name == "ascii") return Encoding::text;
  if (name == "binary_little_endian") return Encoding::little;
  if (name == "binary_big_endian") return Encoding::big;
  damaged("its header has no format \"{}\"", name);
}

Element read_element(Words& words) {
  Element e{std::string(words.next()), 0, {}};
  const std::string_view number = words.next();
  const auto [at, error] = std::from_chars(number.data(), number.data() + number.size(), e.count);
  if (error != std::errc() || at != number.data() + number.size())
    damaged("its header does not say how many of \"{}\" there are", e.name);
  return e;
}

Property read_property(Words& words) {
  Property p;
  std::string_view type = words.next();
  if (type == "list") {
    p.count = required_scalar(words.next());
    type = words.next();
  }
  p.type = required_scalar(type);
  p.name = words.next();
  return p;
}

Header read_header(std::string_view content) {
  Header header;
  HeaderLines lines(content);
  if (Words(lines.next()).next() != "ply") damaged("it is no PLY file");
  for (bool has_format = false;;) {
    Words words(lines.next());
    const std::string_view key = words.next();
    if (key == "format") {
      header.encoding = encoding_named(words.next());
      has_format = true;
    } else if (key == "element") {
      header.elements.push_back(read_element(words));
    } else if (key == "property") {
      if (header.elements.empty()) damaged("its header has a property of nothing");
      header.elements.back().properties.push_back(read_property(words));
    } else if (key == "end_header") {
      if (!has_format) damaged("its header names no format");
      break;
    } else if (key != "comment" && key != "obj_info" && !key.empty()) {
      damaged("line {}: its header has a line of \"{}\"", lines.number(), key);
    }
  }
  header.body = lines.rest();
  header.lines = lines.number();
  return header;
}

/// Reads the numbers of the tables one after another.
class Numbers {
 public:
  explicit Numbers(const Header& header)
      : body_(header.body), words_(header.body, header.lines + 1), encoding_(header.encoding) {}

  double next(Scalar type, const Element& element, std::uint64_t row) {
    if (encoding_ == Encoding::text) {
      const std::string_view word = next_word(element, row);
      double value = 0;
      if (!parse_number(word, value))
        damaged("line {}: \"{}\" in {} {} is no number", words_.line(), word, element.name, row);
      return value;
    }
    const std::size_t bytes = std::size_t(bytes_of(type));
    const std::uint64_t bits = unsigned_at(next_bytes(bytes, element, row), int(bytes), encoding_ == Encoding::big);
    switch (type) {
      case Scalar::int8: return std::int8_t(bits);
      case Scalar::int16: return std::int16_t(bits);
      case Scalar::int32: return std::int32_t(bits);
      case Scalar::float32: return double(std::bit_cast<float>(std::uint32_t(bits)));
      case Scalar::float64: return std::bit_cast<double>(bits);
      default: return double(bits);
    }
  }
  /// Skips a number, which need not be valid: programs write "1.#IND" and the like into fields that nobody reads.
  void skip(Scalar type, const Element& element, std::uint64_t row) {
    if (encoding_ == Encoding::text)
      next_word(element, row);
    else
      next_bytes(std::size_t(bytes_of(type)), element, row);
  }

 private:
  std::string_view next_word(const Element& element, std::uint64_t row) {
    const std::string_view word = words_.next();
    if (word.empty()) ends_early(element, row);
    return word;
  }
  const char* next_bytes(std::size_t bytes, const Element& element, std::uint64_t row) {
    if (body_.size() < bytes) ends_early(element, row);
    const char* const at = body_.data();
    body_.remove_prefix(bytes);
    return at;
  }
  [[noreturn]] static void ends_early(const Element& element, std::uint64_t row) {
    damaged("it ends early, at {} {} of {}", element.name, row, element.count);
  }
  std::string_view body_;
  Words words_;
  Encoding encoding_;
};

/// Converts a whole number from 0 to below `end`; nothing for any other.
std::optional<std::uint64_t> whole_below(double x, double end) {
  if (!(x >= 0 && x < end)) return {};
  const std::uint64_t n = std::uint64_t(x);
  if (double(n) != x) return {};
  return n;
}

bool is_surface(const Element& e) { return e.name == "face" || e.name == "tristrips"; }
bool has_corners(const Property& p) { return p.count && (p.name == "vertex_indices" || p.name == "vertex_index"); }

class Tables {
 public:
  explicit Tables(const Header& header) : header_(header), numbers_(header) {}

  Content read() {
    for (const Element& e : header_.elements) {
      if (is_surface(e) && e.count > 0 && std::none_of(e.properties.begin(), e.properties.end(), has_corners))
        damaged("its header gives {} no list \"vertex_indices\" or \"vertex_index\"", e.name);
      // Each row takes at least a byte of the file, so that no count keeps this loop running.
      for (std::uint64_t row = 0; row < e.count && !e.properties.empty(); ++row) {
        if (e.name == "vertex")
          read_vertex(e, row);
        else
          read_row(e, row);
      }
    }
    return std::move(content_);
  }

 private:
  void read_vertex(const Element& e, std::uint64_t row) {
    vec3 p;
    int found = 0;
    for (const Property& property : e.properties) {
      const std::size_t axis = property.name.size() == 1 ? std::string_view("xyz").find(property.name) : 3;
      if (property.count || axis >= 3) {
        skip(e, property, row);
        continue;
      }
      p[int(axis)] = float(numbers_.next(property.type, e, row));
      found |= 1 << axis;
    }
    if (found != 7) damaged("its vertices have no x, y and z");
    content_.points.push_back(p);
  }

  void read_row(const Element& e, std::uint64_t row) {
    for (const Property& property : e.properties) {
      if (!is_surface(e) || !has_corners(property))
        skip(e, property, row);
      else if (e.name == "face")
        read_face(e, property, row);
      else
        read_strips(e, property, row);
    }
  }

  std::uint64_t length_of(const Element& e, const Property& property, std::uint64_t row) {
    const double given = numbers_.next(*property.count, e, row);
    const auto length = whole_below(given, 0x1p32);
    if (!length) damaged("a list of {} {} has a length of {}", e.name, row, given);
    return *length;
  }
  void skip(const Element& e, const Property& property, std::uint64_t row) {
    for (std::uint64_t n = property.count ? length_of(e, property, row) : 1; n > 0; --n)
      numbers_.skip(property.type, e, row);
  }
  int index_of(double given, const Element& e, std::uint64_t row) {
    const auto index = whole_below(given, double((std::numeric_limits<int>::max)()));
    if (!index) damaged("{} {} refers to vertex {}", e.name, row, given);
    return int(*index);
  }

  void read_face(const Element& e, const Property& property, std::uint64_t row) {
    corners_.clear();
    for (std::uint64_t n = length_of(e, property, row); n > 0; --n)
      corners_.push_back(index_of(numbers_.next(property.type, e, row), e, row));
    content_.faces.add(corners_, "face", row);
  }
  /// Reads strips as Stanford's meshes have them: each further vertex makes a triangle with the two before it, every
  /// second one runs the other way round, and -1 ends a strip. Triangles with a repeated vertex only lead to the next
  /// place of a strip.
  void read_strips(const Element& e, const Property& property, std::uint64_t row) {
    int before = 0, last = 0;
    std::uint64_t place = 0;
    for (std::uint64_t n = length_of(e, property, row); n > 0; --n) {
      const double given = numbers_.next(property.type, e, row);
      if (given == -1 || (given == double(~std::uint32_t(0)) && property.type == Scalar::uint32)) {
        place = 0;
        continue;
      }
      const int index = index_of(given, e, row);
      if (place >= 2 && index != last && index != before && last != before) {
        const int even[] = {before, last, index}, odd[] = {last, before, index};
        content_.faces.add(place % 2 ? odd : even, "strip", row);
      }
      before = last;
      last = index;
      ++place;
    }
  }

  const Header& header_;
  Numbers numbers_;
  Content content_;
  std::vector<int> corners_;
};

}  // namespace

Content read_ply(std::string_view content) {
  const Header header = read_header(content);
  return Tables(header).read();
}

std::string write_ply(const MeshData& mesh) {
  std::string content = fmt::format(
      "ply\nformat binary_little_endian 1.0\nelement vertex {}\nproperty float x\nproperty float y\nproperty float z\n"
      "element face {}\nproperty list uchar int vertex_indices\nend_header\n",
      mesh.points.size(), mesh.indices.size() / 3);
  for (const vec3& p : mesh.points)
    for (int axis = 0; axis < 3; ++axis) append_float(content, p[axis]);
  for (std::size_t t = 0; t < mesh.indices.size(); t += 3) {
    content += char(3);
    for (std::size_t k = 0; k < 3; ++k) append_word(content, std::uint32_t(mesh.indices[t + k]));
  }
  return content;
}

}  // namespace weft::mesh_formats

// PLY files: a header that describes tables, then the tables, as text or binary of either byte order.
#include <charconv>
#include <limits>
#include <optional>

#include "mesh_formats.h"

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
  std::optional<Scalar> count;  ///< of a list: the type of its length
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
};

Header read_header(std::string_view content) {
  Header header;
  bool has_format = false;
  for (bool first = true;; first = false) {
    const std::size_t end = content.find('\n');
    if (end == content.npos) damaged("{}", first ? "it is no PLY file" : "its header does not end");
    Words words(content.substr(0, end));
    content.remove_prefix(end + 1);
    const std::string_view key = words.next();
    if (first) {
      if (key != "ply") damaged("it is no PLY file");
    } else if (key == "format") {
      const std::string_view name = words.next();
      if (name == "ascii")
        header.encoding = Encoding::text;
      else if (name == "binary_little_endian")
        header.encoding = Encoding::little;
      else if (name == "binary_big_endian")
        header.encoding = Encoding::big;
      else
        damaged("its header has no format \"{}\"", name);
      has_format = true;
    } else if (key == "element") {
      Element e{std::string(words.next()), 0, {}};
      const std::string_view number = words.next();
      const auto [at, error] = std::from_chars(number.data(), number.data() + number.size(), e.count);
      if (error != std::errc() || at != number.data() + number.size())
        damaged("its header does not say how many of \"{}\" there are", e.name);
      header.elements.push_back(std::move(e));
    } else if (key == "property") {
      if (header.elements.empty()) damaged("its header has a property of nothing");
      Property p;
      std::string_view type = words.next();
      if (type == "list") {
        p.count = required_scalar(words.next());
        type = words.next();
      }
      p.type = required_scalar(type);
      p.name = words.next();
      header.elements.back().properties.push_back(std::move(p));
    } else if (key == "end_header") {
      break;
    } else if (key != "comment" && key != "obj_info" && !key.empty()) {
      damaged("its header has a line of \"{}\"", key);
    }
  }
  if (!has_format) damaged("its header names no format");
  header.body = content;
  return header;
}

/// Takes the numbers of the tables one after another.
class Numbers {
 public:
  Numbers(std::string_view body, Encoding encoding) : body_(body), words_(body), encoding_(encoding) {}

  double next(Scalar type, const Element& element, std::uint64_t row) {
    if (encoding_ == Encoding::text) {
      const std::string_view word = words_.next();
      double value = 0;
      if (word.empty()) ends_early(element, row);
      if (!parse_number(word, value)) damaged("\"{}\" in {} {} is no number", word, element.name, row);
      return value;
    }
    const std::size_t bytes = std::size_t(bytes_of(type));
    if (body_.size() < bytes) ends_early(element, row);
    const std::uint64_t bits = unsigned_at(body_.data(), int(bytes), encoding_ == Encoding::big);
    body_.remove_prefix(bytes);
    switch (type) {
      case Scalar::int8: return std::int8_t(bits);
      case Scalar::int16: return std::int16_t(bits);
      case Scalar::int32: return std::int32_t(bits);
      case Scalar::float32: return double(std::bit_cast<float>(std::uint32_t(bits)));
      case Scalar::float64: return std::bit_cast<double>(bits);
      default: return double(bits);
    }
  }

 private:
  [[noreturn]] static void ends_early(const Element& element, std::uint64_t row) {
    damaged("it ends early, at {} {} of {}", element.name, row, element.count);
  }
  std::string_view body_;
  Words words_;
  Encoding encoding_;
};

/// The number as one from 0 below `end`.
std::optional<std::uint64_t> whole_below(double x, double end) {
  if (!(x >= 0 && x < end)) return {};
  const std::uint64_t n = std::uint64_t(x);
  if (double(n) != x) return {};
  return n;
}

class Tables {
 public:
  Tables(const Header& header) : header_(header), numbers_(header.body, header.encoding) {}

  MeshData read() {
    for (const Element& e : header_.elements)
      // Each row takes at least a byte of the file, so that no count keeps this running.
      for (std::uint64_t row = 0; row < e.count && !e.properties.empty(); ++row) {
        if (e.name == "vertex")
          read_vertex(e, row);
        else
          read_row(e, row);
      }
    for (std::size_t k = 0; k < mesh_.indices.size(); ++k)
      if (std::size_t(mesh_.indices[k]) >= mesh_.points.size())
        damaged("a face refers to vertex {} of {}", mesh_.indices[k], mesh_.points.size());
    return std::move(mesh_);
  }

 private:
  void read_vertex(const Element& e, std::uint64_t row) {
    vec3 p;
    int found = 0;
    for (const Property& property : e.properties) {
      if (property.count) {
        skip_list(e, property, row);
        continue;
      }
      const double value = numbers_.next(property.type, e, row);
      for (int k = 0; k < 3; ++k)
        if (property.name.size() == 1 && property.name[0] == "xyz"[k]) p[k] = float(value), found |= 1 << k;
    }
    if (found != 7) damaged("its vertices have no x, y and z");
    mesh_.points.push_back(p);
  }

  void read_row(const Element& e, std::uint64_t row) {
    for (const Property& property : e.properties) {
      const bool corners =
          e.name == "face" && property.count && (property.name == "vertex_indices" || property.name == "vertex_index");
      if (corners)
        read_face(e, property, row);
      else if (property.count)
        skip_list(e, property, row);
      else
        numbers_.next(property.type, e, row);
    }
  }

  std::uint64_t length_of(const Element& e, const Property& property, std::uint64_t row) {
    const double given = numbers_.next(*property.count, e, row);
    const auto length = whole_below(given, 0x1p32);
    if (!length) damaged("a list of {} {} has a length of {}", e.name, row, given);
    return *length;
  }
  void skip_list(const Element& e, const Property& property, std::uint64_t row) {
    for (std::uint64_t n = length_of(e, property, row); n > 0; --n) numbers_.next(property.type, e, row);
  }
  /// A polygon as a fan around its first corner.
  void read_face(const Element& e, const Property& property, std::uint64_t row) {
    const std::uint64_t length = length_of(e, property, row);
    if (length < 3) damaged("face {} has {} corners; it takes 3", row, length);
    int first = 0, last = 0;
    for (std::uint64_t k = 0; k < length; ++k) {
      const double given = numbers_.next(property.type, e, row);
      const auto index = whole_below(given, double((std::numeric_limits<int>::max)()));
      if (!index) damaged("face {} refers to vertex {}", row, given);
      if (k == 0) first = int(*index);
      if (k > 1) mesh_.indices.insert(mesh_.indices.end(), {first, last, int(*index)});
      last = int(*index);
    }
  }

  const Header& header_;
  Numbers numbers_;
  MeshData mesh_;
};

}  // namespace

MeshData read_ply(std::string_view content) {
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

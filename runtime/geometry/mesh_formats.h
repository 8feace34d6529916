// The formats of mesh files, one function each; load_mesh() and save_mesh() open the file and check what all have in
// common.
#pragma once
#include <fmt/core.h>

#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "mesh_data.h"

namespace weft::mesh_formats {

/// Why a file cannot be a mesh; load_mesh() puts the file's name in front.
struct Damaged : std::runtime_error {
  using std::runtime_error::runtime_error;
};
template <class... A>
[[noreturn]] void damaged(fmt::format_string<A...> text, A&&... values) {
  throw Damaged(fmt::format(text, std::forward<A>(values)...));
}

// Indices are in range and coordinates are numbers, though perhaps not finite ones.
MeshData read_obj(std::string_view content);
MeshData read_ply(std::string_view content);
MeshData read_stl(std::string_view content);

std::string write_obj(const MeshData& mesh);
std::string write_ply(const MeshData& mesh);
std::string write_stl(const MeshData& mesh);

/// The unsigned number in `bytes` bytes.
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

/// The words of a text, between white space.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}
  /// The next word; empty at the end.
  std::string_view next() {
    const std::size_t from = text_.find_first_not_of(" \t\r\n\v\f");
    if (from == text_.npos) return text_ = {};
    text_.remove_prefix(from);
    const std::string_view word = text_.substr(0, text_.find_first_of(" \t\r\n\v\f"));
    text_.remove_prefix(word.size());
    return word;
  }
  void skip_line() {
    const std::size_t end = text_.find('\n');
    text_.remove_prefix(end == text_.npos ? text_.size() : end + 1);
  }

 private:
  std::string_view text_;
};
/// Does the whole word stand for a number? Infinities and NaNs are numbers here.
bool parse_number(std::string_view word, double& value);

}  // namespace weft::mesh_formats

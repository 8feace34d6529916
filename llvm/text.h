// Text of LLVM's IR as it grows: lines, names of values and blocks, declarations; the spelling of types and literals.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../frontend/ir/type.h"

namespace weft::llvm {

/// The type of values in registers. A float16 is the i16 of its bits, because LLVM computes with `half` in ways of its
/// own.
std::string type_name(ir::Type type, std::uint32_t lanes = 1);
/// "<8 x ptr>"; the type itself for one lane.
std::string vector_of(std::string_view type, std::uint32_t lanes);
/// The type in names of intrinsics: "v8f32", "i32".
std::string type_suffix(ir::Type type, std::uint32_t lanes = 1);

/// The value with these bits, in every lane.
std::string literal(ir::Type type, std::uint64_t bits, std::uint32_t lanes = 1);
/// The nearest value of a real type, in every lane.
std::string real_literal(ir::Type type, double value, std::uint32_t lanes = 1);
/// first, first + step, first + 2 step, .. modulo the range of an integer type.
std::string sequence(ir::Type type, std::int64_t first, std::int64_t step, std::uint32_t lanes);
/// A vector constant from the texts of its lanes.
std::string lanes_of(std::string_view type, const std::vector<std::string>& lanes);

/// The body of a function while it is written.
class Text {
 public:
  template <class... Parts>
  void line(fmt::format_string<Parts...> format, Parts&&... parts) {
    lines_.push_back("  " + fmt::format(format, std::forward<Parts>(parts)...));
  }
  /// Writes an instruction that defines a value; returns the value's name.
  template <class... Parts>
  std::string def(fmt::format_string<Parts...> format, Parts&&... parts) {
    std::string name = fmt::format("%v{}", next_++);
    lines_.push_back(fmt::format("  {} = ", name) + fmt::format(format, std::forward<Parts>(parts)...));
    return name;
  }
  /// Makes a name for a block: "then12".
  std::string fresh(std::string_view stem) { return fmt::format("{}{}", stem, next_++); }
  /// Begins a block.
  void label(const std::string& name);
  /// The block that grows at present, and the number of its lines.
  const std::string& block() const { return block_; }
  std::size_t block_lines() const { return lines_.size() - block_begin_; }
  void jump(const std::string& to) { line("br label %{}", to); }
  void jump_if(const std::string& condition, const std::string& yes, const std::string& no) {
    line("br i1 {}, label %{}, label %{}", condition, yes, no);
  }

  /// A value whose definition is written later by fill(): a phi of what follows.
  struct Hole {
    std::string name;
    std::size_t line = 0;
  };
  Hole hole();
  void fill(const Hole& hole, const std::string& definition) {
    lines_[hole.line] = "  " + hole.name + " = " + definition;
  }

  /// Declares or defines, once, what the body names.
  void declare(const std::string& name, const std::string& text) { declarations_.try_emplace(name, text); }
  /// Calls an intrinsic whose name ends with the type of its result, and whose operands have this type.
  std::string intrinsic(std::string_view name, ir::Type type, std::uint32_t lanes,
                        const std::vector<std::string>& operands);

  std::string body() const;
  std::string declarations() const;
  const std::map<std::string, std::string>& declared() const { return declarations_; }

 private:
  std::vector<std::string> lines_;
  std::map<std::string, std::string> declarations_;
  std::string block_ = "entry";
  std::size_t block_begin_ = 0;
  std::uint64_t next_ = 0;
};

}  // namespace weft::llvm

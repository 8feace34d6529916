// The spelling of types, literals, blocks and declarations in LLVM's IR.
#include "text.h"

#include <bit>
#include <cmath>

#include "../frontend/ir/evaluate.h"

namespace weft::llvm {

using ir::Type;

namespace {

std::string scalar_name(Type type) {
  switch (type) {
    case Type::f16: return "i16";
    case Type::f32: return "float";
    case Type::f64: return "double";
    default: return fmt::format("i{}", ir::bits(type));
  }
}

/// A float as LLVM spells it: the digits of the double of that value. A NaN keeps its bits only as a cast of them.
std::string float_literal(std::uint32_t bits) {
  const float value = std::bit_cast<float>(bits);
  if (std::isnan(value)) return fmt::format("bitcast (i32 {} to float)", bits);
  return fmt::format("0x{:016X}", std::bit_cast<std::uint64_t>(static_cast<double>(value)));
}

std::string scalar_literal(Type type, std::uint64_t bits) {
  switch (type) {
    case Type::b1: return bits ? "true" : "false";
    case Type::f16: return fmt::format("{}", static_cast<std::int16_t>(bits));
    case Type::f32: return float_literal(static_cast<std::uint32_t>(bits));
    case Type::f64: return fmt::format("0x{:016X}", bits);
    default: {
      const int unused = 64 - ir::bits(type);
      return fmt::format("{}", static_cast<std::int64_t>(bits << unused) >> unused);
    }
  }
}

}  // namespace

std::string vector_of(std::string_view type, std::uint32_t lanes) {
  return lanes == 1 ? std::string(type) : fmt::format("<{} x {}>", lanes, type);
}

std::string type_name(Type type, std::uint32_t lanes) { return vector_of(scalar_name(type), lanes); }

std::string type_suffix(Type type, std::uint32_t lanes) {
  const std::string name = type == Type::f32 ? "f32" : type == Type::f64 ? "f64" : scalar_name(type);
  return lanes == 1 ? name : fmt::format("v{}{}", lanes, name);
}

std::string lanes_of(std::string_view type, const std::vector<std::string>& lanes) {
  std::string text = "<";
  for (const std::string& lane : lanes) text += fmt::format("{}{} {}", text.size() > 1 ? ", " : "", type, lane);
  return text + ">";
}

std::string literal(Type type, std::uint64_t bits, std::uint32_t lanes) {
  if (lanes == 1) return scalar_literal(type, bits);
  if (bits == 0) return "zeroinitializer";
  return lanes_of(scalar_name(type), std::vector<std::string>(lanes, scalar_literal(type, bits)));
}

std::string real_literal(Type type, double value, std::uint32_t lanes) {
  return literal(type, ir::from_double(type, value), lanes);
}

std::string sequence(Type type, std::int64_t first, std::int64_t step, std::uint32_t lanes) {
  std::vector<std::string> each;
  for (std::uint32_t k = 0; k < lanes; ++k) {
    const std::uint64_t value = static_cast<std::uint64_t>(first) + k * static_cast<std::uint64_t>(step);
    each.push_back(scalar_literal(type, value & ir::mask(type)));
  }
  return lanes_of(scalar_name(type), each);
}

void Text::label(const std::string& name) {
  lines_.push_back(name + ":");
  block_begin_ = lines_.size();
  block_ = name;
}

Text::Hole Text::hole() {
  lines_.emplace_back();
  return {fmt::format("%v{}", next_++), lines_.size() - 1};
}

std::string Text::intrinsic(std::string_view name, Type type, std::uint32_t lanes,
                            const std::vector<std::string>& operands) {
  const std::string full = fmt::format("@llvm.{}.{}", name, type_suffix(type, lanes)), of = type_name(type, lanes);
  std::string types, values;
  for (const std::string& operand : operands) {
    types += (types.empty() ? "" : ", ") + of;
    values += fmt::format("{}{} {}", values.empty() ? "" : ", ", of, operand);
  }
  declare(full, fmt::format("declare {} {}({})", of, full, types));
  return def("call {} {}({})", of, full, values);
}

std::string Text::body() const {
  std::size_t size = 0;
  for (const std::string& line : lines_) size += line.size() + 1;
  std::string text;
  text.reserve(size);
  for (const std::string& line : lines_) (text += line) += '\n';
  return text;
}

std::string Text::declarations() const {
  std::string text;
  for (const auto& [name, declaration] : declarations_) (text += declaration) += '\n';
  return text;
}

}  // namespace weft::llvm

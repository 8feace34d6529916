// Declares types, constants and decorations, each once.
#include "writer.h"

#include <algorithm>

#include "../frontend/support/error.h"

namespace weft::spirv {

using ir::Type;

void Section::emit_text(spv::Op op, std::initializer_list<Word> before, const std::string& text,
                        const std::vector<Word>& after) {
  // A zero inside the text would end it early, so the text is cut there.
  std::size_t length = std::min(text.find('\0'), text.size());
  // The word count has 16 bits, so longer names are cut.
  length = std::min(length, std::size_t(4096));
  std::vector<Word> words(before);
  std::size_t first = words.size();
  words.resize(first + length / 4 + 1, 0);
  for (std::size_t k = 0; k < length; ++k) {
    words[first + k / 4] |= Word(static_cast<unsigned char>(text[k])) << (8 * (k % 4));
  }
  words.insert(words.end(), after.begin(), after.end());
  emit(op, words.data(), words.size());
}

std::pair<Word, bool> Writer::intern(const Key& key) {
  auto [it, fresh] = interned_.try_emplace(key, next_);
  if (fresh) ++next_;
  return {it->second, fresh};
}

Word Writer::void_type() {
  if (!void_) declarations.emit(spv::Op::OpTypeVoid, {void_ = id()});
  return void_;
}

Word Writer::function_type(Word result, const std::vector<Word>& parameters) {
  std::vector<Word> operands{0, result};
  operands.insert(operands.end(), parameters.begin(), parameters.end());
  Word& known = functions_[operands];
  if (!known) {
    operands[0] = known = id();
    declarations.emit(spv::Op::OpTypeFunction, operands.data(), operands.size());
  }
  return known;
}

Word Writer::type(Type t) {
  Word& known = scalars_[std::size_t(t)];
  if (known) return known;
  if (t == Type::none) internal_error("an instruction without a value has no type to declare");
  known = id();
  if (ir::is_bool(t)) {
    declarations.emit(spv::Op::OpTypeBool, {known});
  } else if (ir::is_float(t)) {
    declarations.emit(spv::Op::OpTypeFloat, {known, Word(ir::bits(t))});
  } else {
    declarations.emit(spv::Op::OpTypeInt, {known, Word(ir::bits(t)), Word(ir::is_signed(t))});
  }
  return known;
}

Word Writer::vector_type(Type t, int width) {
  if (width == 1) return type(t);
  Word& known = vectors_[std::size_t(t)][std::size_t(width)];
  if (!known) {
    Word part = type(t);
    known = id();
    declarations.emit(spv::Op::OpTypeVector, {known, part, Word(width)});
  }
  return known;
}

Word Writer::pointer_type(spv::StorageClass storage, Word pointee) {
  auto [word, fresh] = intern({Word(spv::Op::OpTypePointer), Word(storage), pointee, 0});
  if (fresh) declarations.emit(spv::Op::OpTypePointer, {word, Word(storage), pointee});
  return word;
}

Word Writer::ray_query_type() {
  auto [word, fresh] = intern({Word(spv::Op::OpTypeRayQueryKHR), 0, 0, 0});
  if (fresh) declarations.emit(spv::Op::OpTypeRayQueryKHR, {word});
  return word;
}

Word Writer::ray_structure_type() {
  auto [word, fresh] = intern({Word(spv::Op::OpTypeAccelerationStructureKHR), 0, 0, 0});
  if (fresh) declarations.emit(spv::Op::OpTypeAccelerationStructureKHR, {word});
  return word;
}

Word Writer::struct_type(const std::vector<Word>& members) {
  std::vector<Word> operands{id()};
  operands.insert(operands.end(), members.begin(), members.end());
  declarations.emit(spv::Op::OpTypeStruct, operands.data(), operands.size());
  return operands[0];
}

Word Writer::pair_type(Type t) {
  Word part = type(t);
  auto [word, fresh] = intern({Word(spv::Op::OpTypeStruct), part, part, 0});
  if (fresh) declarations.emit(spv::Op::OpTypeStruct, {word, part, part});
  return word;
}

Word Writer::constant(Type t, std::uint64_t bits) {
  Word of = type(t);
  bits &= ir::mask(t);
  auto [word, fresh] = intern({Word(spv::Op::OpConstant), Word(t), Word(bits), Word(bits >> 32)});
  if (!fresh) return word;
  if (ir::is_bool(t)) {
    declarations.emit(bits ? spv::Op::OpConstantTrue : spv::Op::OpConstantFalse, {of, word});
  } else if (ir::bits(t) == 64) {
    declarations.emit(spv::Op::OpConstant, {of, word, Word(bits), Word(bits >> 32)});
  } else {
    // A narrow signed literal fills its word with its sign bit.
    bool negative = ir::is_signed(t) && (bits >> (ir::bits(t) - 1) & 1);
    declarations.emit(spv::Op::OpConstant, {of, word, Word(negative ? bits | ~ir::mask(t) : bits)});
  }
  return word;
}

Word Writer::variable(Word pointer_type, spv::StorageClass storage) {
  Word word = id();
  declarations.emit(spv::Op::OpVariable, {pointer_type, word, Word(storage)});
  return word;
}

void Writer::decorate(Word target, spv::Decoration decoration, std::initializer_list<Word> operands) {
  Word words[4] = {target, Word(decoration)};
  std::copy(operands.begin(), operands.end(), words + 2);
  annotations.emit(spv::Op::OpDecorate, words, operands.size() + 2);
}

void Writer::decorate_member(Word target, Word member, spv::Decoration decoration,
                             std::initializer_list<Word> operands) {
  Word words[5] = {target, member, Word(decoration)};
  std::copy(operands.begin(), operands.end(), words + 3);
  annotations.emit(spv::Op::OpMemberDecorate, words, operands.size() + 3);
}

}  // namespace weft::spirv

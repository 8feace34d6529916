// Words of a SPIR-V module under construction: its sections, its ids, and one id for each type and constant.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <spirv/unified1/spirv.hpp11>
#include <string>
#include <unordered_map>
#include <vector>

#include "../frontend/ir/type.h"

namespace weft::spirv {

using Word = std::uint32_t;

/// One section of a module: a sequence of instructions.
class Section {
 public:
  void emit(spv::Op op, std::initializer_list<Word> operands) { emit(op, operands.begin(), operands.size()); }
  void emit(spv::Op op, const Word* operands, std::size_t count) {
    words_.push_back(Word(count + 1) << spv::WordCountShift | Word(op));
    words_.insert(words_.end(), operands, operands + count);
  }
  /// Emits `before`, then the string (zero-terminated, padded to whole words), then `after`.
  void emit_text(spv::Op op, std::initializer_list<Word> before, const std::string& text,
                 const std::vector<Word>& after = {});

  std::size_t size() const { return words_.size(); }
  Word& operator[](std::size_t at) { return words_[at]; }
  const std::vector<Word>& words() const { return words_; }
  void reserve(std::size_t n) { words_.reserve(n); }

 private:
  std::vector<Word> words_;
};

/// Hands out ids and keeps the sections to which all parts of the emitter append.
///
/// Types and constants get their ids in the order of first use, so equal modules give equal words.
class Writer {
 public:
  Word id() { return next_++; }
  Word bound() const { return next_; }

  Word void_type();
  Word type(ir::Type t);
  /// Gives the scalar type for width 1.
  Word vector_type(ir::Type t, int width);
  Word pointer_type(spv::StorageClass storage, Word pointee);
  /// Makes a new structure type in each call; the caller decorates its members.
  Word struct_type(const std::vector<Word>& members);
  /// The result type of an extended multiplication.
  Word pair_type(ir::Type t);
  /// OpTypeRayQueryKHR and OpTypeAccelerationStructureKHR.
  Word ray_query_type();
  Word ray_structure_type();
  Word function_type(Word result, const std::vector<Word>& parameters);

  /// A literal from the bits of an IR constant.
  Word constant(ir::Type t, std::uint64_t bits);
  Word u32(std::uint32_t value) { return constant(ir::Type::u32, value); }

  Word variable(Word pointer_type, spv::StorageClass storage);

  void decorate(Word target, spv::Decoration decoration, std::initializer_list<Word> operands = {});
  void decorate_member(Word target, Word member, spv::Decoration decoration, std::initializer_list<Word> operands = {});

  Section annotations, declarations;

 private:
  struct Key {
    Word op, a, b, c;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& k) const {
      std::uint64_t h = (std::uint64_t(k.op) << 32 | k.a) * 0x9e3779b97f4a7c15ull;
      h = (h ^ (h >> 29) ^ (std::uint64_t(k.b) << 32 | k.c)) * 0xff51afd7ed558ccdull;
      return std::size_t(h ^ (h >> 32));
    }
  };
  /// The id stored under the key, and whether it must be declared now.
  std::pair<Word, bool> intern(const Key& key);

  Word next_ = 1;
  Word void_ = 0;
  std::map<std::vector<Word>, Word> functions_;
  std::array<Word, ir::kTypeCount> scalars_{};
  std::array<std::array<Word, 5>, ir::kTypeCount> vectors_{};
  std::unordered_map<Key, Word, KeyHash> interned_;
};

}  // namespace weft::spirv

// The argument block, and memory at 64-bit addresses.
#include <algorithm>
#include <utility>

#include "../frontend/support/error.h"
#include "emit.h"
#include "emitter.h"

namespace weft::spirv {

using ir::Id;
using ir::Inst;
using ir::Op;
using ir::Type;

// ---- Arguments

// The block has one member per 32- or 64-bit piece that the kernel reads. Narrower values are extracted from their
// word, which needs no 8- or 16-bit access.
void Emitter::declare_arguments() {
  std::vector<Field>& fields = shader_.fields;
  fields.push_back({0, Type::u32});
  for (const auto& [type, offset] : needs_.arguments) {
    bool narrow = ir::bits(type) < 32;
    if (offset % std::uint32_t(ir::bytes(type))) internal_error("an argument is not aligned");
    fields.push_back({narrow ? offset & ~3u : offset, narrow ? Type::u32 : type});
  }
  // At one offset the widest comes first, and among equally wide ones the first that was used.
  std::stable_sort(fields.begin(), fields.end(), [](const Field& a, const Field& b) {
    return a.offset != b.offset ? a.offset < b.offset : ir::bits(a.type) > ir::bits(b.type);
  });
  std::uint32_t end = 0;
  std::erase_if(fields, [&](const Field& f) {
    if (f.offset < end) return true;
    end = f.offset + std::uint32_t(ir::bytes(f.type));
    return false;
  });

  const bool in_memory = shader_.arguments_in_memory();
  std::vector<Word> members;
  for (const Field& f : fields) members.push_back(w_.type(f.type));
  Word block = w_.struct_type(members);
  w_.decorate(block, spv::Decoration::Block);
  for (Word k = 0; k < fields.size(); ++k) {
    w_.decorate_member(block, k, spv::Decoration::Offset, {fields[k].offset});
    if (in_memory) w_.decorate_member(block, k, spv::Decoration::NonWritable);
  }
  if (!in_memory) {
    shader_.push =
        w_.variable(w_.pointer_type(spv::StorageClass::PushConstant, block), spv::StorageClass::PushConstant);
    shader_.common.interface.push_back(shader_.push);
    return;
  }
  shader_.arguments = w_.pointer_type(spv::StorageClass::PhysicalStorageBuffer, block);
  if (shader_.common.launch) return;
  Word holder = w_.struct_type({w_.type(Type::u64)});
  w_.decorate(holder, spv::Decoration::Block);
  w_.decorate_member(holder, 0, spv::Decoration::Offset, {0});
  shader_.push = w_.variable(w_.pointer_type(spv::StorageClass::PushConstant, holder), spv::StorageClass::PushConstant);
  shader_.common.interface.push_back(shader_.push);
}

Word Emitter::load_field(std::size_t number) {
  Word& loaded = fields_[number];
  if (loaded) return loaded;
  const Field& field = shader_.fields[number];
  const bool in_memory = shader_.arguments_in_memory();
  const spv::StorageClass storage =
      in_memory ? spv::StorageClass::PhysicalStorageBuffer : spv::StorageClass::PushConstant;
  Section* before = std::exchange(out_, &entry_);
  Word base = shader_.push;
  if (in_memory) {
    BaseKey key{ir::kNone, shader_.arguments, 0};
    auto [it, fresh] = bases_.try_emplace(key, 0);
    if (fresh) {
      Word at = shader_.common.launch;
      if (!at) {
        Word to_address = w_.pointer_type(spv::StorageClass::PushConstant, w_.type(Type::u64));
        at = make(spv::Op::OpAccessChain, to_address, {shader_.push, w_.u32(0)});
      }
      it->second = make(spv::Op::OpConvertUToPtr, shader_.arguments, {make(spv::Op::OpLoad, Type::u64, {at})});
    }
    base = it->second;
  }
  Word member = w_.u32(Word(number));
  Word pointer = make(spv::Op::OpAccessChain, w_.pointer_type(storage, w_.type(field.type)), {base, member});
  if (in_memory) {
    Word aligned = Word(spv::MemoryAccessMask::Aligned);
    loaded = make(spv::Op::OpLoad, field.type, {pointer, aligned, Word(ir::bytes(field.type))});
  } else {
    loaded = make(spv::Op::OpLoad, field.type, {pointer});
  }
  out_ = before;
  return loaded;
}

// The 32-bit word that contains an offset.
Word Emitter::read_word(std::uint32_t offset) {
  const std::vector<Field>& fields = shader_.fields;
  auto it = std::upper_bound(fields.begin(), fields.end(), offset,
                             [](std::uint32_t at, const Field& f) { return at < f.offset; });
  const Field& field = *--it;
  Word x = load_field(std::size_t(it - fields.begin()));
  if (ir::bits(field.type) == 32) return reinterpret(field.type, Type::u32, x);
  Word all = reinterpret(field.type, Type::u64, x);
  if (offset != field.offset) {
    all = make(spv::Op::OpShiftRightLogical, Type::u64, {all, w_.u32(8 * (offset - field.offset))});
  }
  return make(spv::Op::OpUConvert, Type::u32, {all});
}

Word Emitter::argument(Type t, std::uint32_t offset) {
  Section* before = std::exchange(out_, &entry_);
  Word x;
  if (ir::bits(t) >= 32) {
    const std::vector<Field>& fields = shader_.fields;
    auto it = std::lower_bound(fields.begin(), fields.end(), offset,
                               [](const Field& f, std::uint32_t at) { return f.offset < at; });
    bool whole = it != fields.end() && it->offset == offset && ir::bits(it->type) == ir::bits(t);
    x = whole ? reinterpret(it->type, t, load_field(std::size_t(it - fields.begin())))
              : reinterpret(Type::u32, t, read_word(offset));
  } else if (t == Type::f16) {
    // The word is read as a pair of halves: a cast from a 16-bit integer would need that capability too.
    Word pair = make(spv::Op::OpBitcast, w_.vector_type(t, 2), {read_word(offset & ~3u)});
    x = make(spv::Op::OpCompositeExtract, t, {pair, offset % 4 / 2});
  } else {
    x = read_word(offset & ~3u);
    if (offset % 4) x = make(spv::Op::OpShiftRightLogical, Type::u32, {x, w_.u32(8 * (offset % 4))});
    if (t == Type::b1) {
      x = make(spv::Op::OpBitwiseAnd, Type::u32, {x, w_.u32(0xff)});
      x = make(spv::Op::OpINotEqual, Type::b1, {x, w_.u32(0)});
    } else {
      x = integer_to_integer(Type::u32, t, x);
    }
  }
  out_ = before;
  return x;
}

// ---- Addresses

const Emitter::PlaceTypes& Emitter::place_types(const Place& place) {
  auto [it, fresh] = shader_.places.try_emplace(place);
  if (!fresh) return it->second;
  Word value_type = w_.vector_type(place.type, place.width);
  // Structures and their pointers are distinguished by decorations, so each place has its own.
  Word block = w_.struct_type({value_type});
  w_.decorate(block, spv::Decoration::Block);
  w_.decorate_member(block, 0, spv::Decoration::Offset, {place.offset});
  if (place.coherent) w_.decorate_member(block, 0, spv::Decoration::Coherent);
  it->second.to_block = w_.pointer_type(spv::StorageClass::PhysicalStorageBuffer, block);
  if (place.stride) w_.decorate(it->second.to_block, spv::Decoration::ArrayStride, {place.stride});
  it->second.to_value = w_.pointer_type(spv::StorageClass::PhysicalStorageBuffer, value_type);
  return it->second;
}

// base + added as a pointer; computed once in the entry block if the base is known there.
Word Emitter::base_pointer(Id base, std::uint64_t added, Word pointer_type) {
  const bool once = is_uniform_entry(base);
  if (once) {
    auto it = bases_.find({base, pointer_type, added});
    if (it != bases_.end()) return it->second;
  }
  Word address = value(base);
  Section* before = once ? std::exchange(out_, &entry_) : out_;
  if (added) address = make(spv::Op::OpIAdd, Type::u64, {address, w_.constant(Type::u64, added)});
  Word pointer = make(spv::Op::OpConvertUToPtr, pointer_type, {address});
  out_ = before;
  if (once) bases_.emplace(BaseKey{base, pointer_type, added}, pointer);
  return pointer;
}

// Indices of pointers are signed, so an unsigned 32-bit one needs the wider type.
Word Emitter::index_word(Id index, bool to_64_bits) {
  Type t = module_[index].type;
  if (!ir::is_int(t)) internal_error("an index that is no integer");
  Word x = value(index);
  if (ir::bits(t) == 64) return x;
  if (ir::is_signed(t)) {
    if (to_64_bits) return make(spv::Op::OpSConvert, Type::i64, {x});
    return ir::bits(t) == 32 ? x : make(spv::Op::OpSConvert, Type::i32, {x});
  }
  if (ir::bits(t) < 32 && !to_64_bits) return make(spv::Op::OpUConvert, Type::u32, {x});
  if (module_[index].op != Op::thread_id) return make(spv::Op::OpUConvert, Type::u64, {x});
  if (!wide_thread_) {
    Section* before = std::exchange(out_, &entry_);
    wide_thread_ = make(spv::Op::OpUConvert, Type::u64, {x});
    out_ = before;
  }
  return wide_thread_;
}

Word Emitter::pointer(const Inst& inst, Id base, Id index, Type t, std::uint8_t width) {
  const std::uint32_t part = std::uint32_t(ir::bytes(t)), stride = inst.stride;
  const Inst& by = module_[index];
  Place place{t, width, inst.offset, 0, is_coherent(inst, base) && !shader_.common.within_workgroup};
  std::uint64_t added = 0;
  // Members are at multiples of their size; the remainder of such an offset compensates for an odd base.
  if (inst.offset % part) {
    added = inst.offset;
    place.offset = 0;
  }
  Word block;
  if (by.op == Op::constant || stride == 0) {
    std::uint64_t k = by.op == Op::constant ? by.imm : 0;
    if (by.op == Op::constant && ir::is_signed(by.type) && (k >> (ir::bits(by.type) - 1) & 1)) k |= ~ir::mask(by.type);
    block = base_pointer(base, added + k * stride, place_types(place).to_block);
  } else if (target_.pointer_steps && stride % part == 0 && !added && place.offset % stride + part * width <= stride) {
    // Whole strides in the offset move to the base, so that the access is inside one element.
    place.offset = inst.offset % stride;
    place.stride = stride;
    Word first = base_pointer(base, inst.offset - place.offset, place_types(place).to_block);
    return make(spv::Op::OpPtrAccessChain, place_types(place).to_value, {first, index_word(index, false), w_.u32(0)});
  } else {
    Word steps = index_word(index, true);
    if (stride != 1) steps = make(spv::Op::OpIMul, Type::u64, {steps, w_.constant(Type::u64, stride)});
    Word address = make(spv::Op::OpIAdd, Type::u64, {value(base), steps});
    if (added) address = make(spv::Op::OpIAdd, Type::u64, {address, w_.constant(Type::u64, added)});
    block = make(spv::Op::OpConvertUToPtr, place_types(place).to_block, {address});
  }
  return make(spv::Op::OpAccessChain, place_types(place).to_value, {block, w_.u32(0)});
}

// ---- Accesses

namespace {
Word alignment(const Inst& inst) { return inst.align ? inst.align : Word(ir::bytes(inst.type)); }
}  // namespace

// Appends the words after an access's operands, three at most; returns their number.
std::size_t Emitter::access_words(const Inst& inst, Id base, spv::MemoryAccessMask sees, Word* to) {
  using Mask = spv::MemoryAccessMask;
  const bool handed_over = shader_.common.within_workgroup && is_coherent(inst, base);
  to[0] = Word(handed_over ? Mask::Aligned | Mask::NonPrivatePointer | sees : Mask::Aligned);
  to[1] = alignment(inst);
  if (handed_over) to[2] = w_.u32(Word(spv::Scope::Workgroup));
  return handed_over ? 3 : 2;
}

// Whether other threads may see the access. Threads may exchange what they write, after a barrier or fences: in memory
// that the kernel both reads and writes, caches of single threads cannot be trusted.
bool Emitter::is_coherent(const Inst& inst, Id base) const {
  if (is_atomic(inst.op)) return false;
  if (shader_.common.launch) return true;  // later launches of the chain read what earlier ones write
  if (!shader_.group_use.hands_over()) return false;
  const ir::Param* array = module_.array_of(base);
  if (!array || array->access == ir::Access::none) return true;
  return any(array->access, ir::Access::read) && any(array->access, ir::kChanges);
}

// Whether a vector of 32-bit components is accessed as 64-bit words. CPU drivers split an access component by component
// and lane by lane: two components in one word cost half.
bool Emitter::in_words(const Inst& inst) const {
  return target_.pairs_in_words && ir::bits(inst.type) == 32 && inst.width % 2 == 0 && alignment(inst) % 8 == 0;
}

Word Emitter::load(Id id) {
  const Inst& inst = module_[id];
  const bool words = in_words(inst);
  const Type lies = words ? Type::u64 : inst.type;
  const std::uint8_t width = words ? inst.width / 2 : inst.width;
  Word from = pointer(inst, module_.arg(id, 0), module_.arg(id, 1), lies, width);
  const Word x = w_.id();
  Word read[6] = {w_.vector_type(lies, width), x, from};
  const std::size_t rest = access_words(inst, module_.arg(id, 0), spv::MemoryAccessMask::MakePointerVisible, read + 3);
  out_->emit(spv::Op::OpLoad, read, 3 + rest);
  return words ? make(spv::Op::OpBitcast, w_.vector_type(inst.type, inst.width), {x}) : x;
}

void Emitter::store(Id id) {
  const Inst& inst = module_[id];
  Word words[6] = {};
  for (int k = 0; k < inst.width; ++k) words[k + 2] = value(module_.arg(id, k + 2));
  Word what = words[2];
  if (inst.width > 1) {
    words[0] = w_.vector_type(inst.type, inst.width);
    words[1] = what = w_.id();
    body_.emit(spv::Op::OpCompositeConstruct, words, std::size_t(inst.width) + 2);
  }
  Type lies = inst.type;
  std::uint8_t width = inst.width;
  if (in_words(inst)) {
    lies = Type::u64;
    width /= 2;
    what = make(spv::Op::OpBitcast, w_.vector_type(lies, width), {what});
  }
  Word to = pointer(inst, module_.arg(id, 0), module_.arg(id, 1), lies, width);
  Word written[5] = {to, what};
  const std::size_t rest =
      access_words(inst, module_.arg(id, 0), spv::MemoryAccessMask::MakePointerAvailable, written + 2);
  body_.emit(spv::Op::OpStore, written, 2 + rest);
}

}  // namespace weft::spirv

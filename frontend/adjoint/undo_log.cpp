// The undo log: what stores overwrite while code runs forward again, so that the way back finds memory as it was.
//
// An entry of 16 bytes is the address and the bits that were there; the highest byte of the address says of which type,
// where there are several. Entry e of a lane lies at e * lanes + lane: neighbours write side by side.
#include <algorithm>

#include "../support/error.h"
#include "reverser.h"

namespace weft::ir {

namespace {
constexpr int kKindShift = 56;

/// The bits of a value as u64, by operations that every device has.
Id to_bits(Builder& b, Type type, Id value) {
  if (type == Type::f16) {
    value = b.pure(Op::convert, Type::f32, {value});
    type = Type::f32;
  }
  if (type == Type::f32) value = b.pure(Op::bitcast, Type::u32, {value});
  if (type == Type::f64 || type == Type::i64) return b.pure(Op::bitcast, Type::u64, {value});
  if (is_signed(type)) return b.pure(Op::bitcast, Type::u64, {b.pure(Op::convert, Type::i64, {value})});
  return b.pure(Op::convert, Type::u64, {value});
}

Id from_bits(Builder& b, Type type, Id bits) {
  if (type == Type::f64 || type == Type::i64) return b.pure(Op::bitcast, type, {bits});
  if (type == Type::u64) return bits;
  // The conversion keeps what fits, and it fits.
  if (is_signed(type)) return b.pure(Op::convert, type, {b.pure(Op::bitcast, Type::i64, {bits})});
  if (is_unsigned(type)) return b.pure(Op::convert, type, {bits});
  const Id word = b.pure(Op::convert, Type::u32, {bits});
  const Id real = b.pure(Op::bitcast, Type::f32, {word});
  return type == Type::f16 ? b.pure(Op::convert, type, {real}) : real;
}
}  // namespace

std::uint8_t Reverser::log_kind(Type type) {
  return static_cast<std::uint8_t>(std::ranges::find(log_kinds_, type) - log_kinds_.begin());
}

void Reverser::push_store(Id id) {
  const Inst& inst = from_[id];
  const MemoryRef ref = primal_ref(id, 0);
  if (counting_) {
    set(log_height_, pure(Op::add, Type::u32, {get(log_height_), u32(inst.width)}));
  } else {
    const Id loaded = builder_.load(inst.type, inst.width, ref, inst.loc());
    const Type index_type = builder_.module()[ref.index].type;
    Id step = ref.index;
    if (is_signed(index_type)) {
      if (index_type != Type::i64) step = pure(Op::convert, Type::i64, {step});
      step = pure(Op::bitcast, Type::u64, {step});
    } else {
      step = pure(Op::convert, Type::u64, {step});
    }
    step = pure(Op::mul, Type::u64, {step, constant(Type::u64, inst.stride)});
    const Id element = pure(Op::add, Type::u64, {ref.base, step});
    Id height = get(log_height_);
    for (std::uint32_t k = 0; k < inst.width; ++k) {
      const std::uint64_t offset = ref.offset + k * static_cast<std::uint32_t>(bytes(inst.type));
      Id address = pure(Op::add, Type::u64, {element, builder_.constant(Type::u64, offset)});
      if (const std::uint64_t kind = log_kind(inst.type); kind != 0)
        address = pure(Op::bit_or, Type::u64, {address, builder_.constant(Type::u64, kind << kKindShift)});
      const Id old = inst.width == 1 ? loaded : builder_.result(loaded, k, inst.type);
      const Id entry[] = {address, to_bits(builder_, inst.type, old)};
      const Id at = pure(Op::add, Type::u32, {pure(Op::mul, Type::u32, {height, lanes_}), lane_});
      builder_.store(Type::u64, entry, {array_base(extra_.log), at, 16, 0, 16}, inst.loc());
      height = pure(Op::add, Type::u32, {height, u32(1)});
    }
    set(log_height_, height);
  }
  std::vector<Id> values;
  for (std::uint32_t k = 2; k < inst.num_args; ++k) values.push_back(value(from_.arg(id, static_cast<int>(k))));
  builder_.store(inst.type, values, ref, inst.loc());
}

void Reverser::rollback(Id height) {
  builder_.open_loop();
  builder_.loop_body(pure(Op::lt, Type::b1, {height, get(log_height_)}));
  const Id top = pure(Op::sub, Type::u32, {get(log_height_), u32(1)});
  set(log_height_, top);
  const Id at = pure(Op::add, Type::u32, {pure(Op::mul, Type::u32, {top, lanes_}), lane_});
  const Id entry = builder_.load(Type::u64, 2, {array_base(extra_.log), at, 16, 0, 16});
  const Id address = builder_.result(entry, 0, Type::u64), bits = builder_.result(entry, 1, Type::u64);
  const auto restore = [&](Type type, Id to) {
    const Id old[] = {from_bits(builder_, type, bits)};
    builder_.store(type, old, {to, u32(0), 1, 0, static_cast<std::uint32_t>(bytes(type))});
  };
  if (log_kinds_.size() == 1) {
    restore(log_kinds_[0], address);
  } else {
    const Id kind = pure(Op::shr, Type::u64, {address, constant(Type::u64, kKindShift)});
    const Id plain = pure(Op::bit_and, Type::u64, {address, builder_.constant(Type::u64, (1ull << kKindShift) - 1)});
    for (std::size_t k = 0; k < log_kinds_.size(); ++k) {
      builder_.open_if(pure(Op::eq, Type::b1, {kind, builder_.constant(Type::u64, k)}));
      restore(log_kinds_[k], plain);
      builder_.close_if();
    }
  }
  builder_.close_loop();
}

}  // namespace weft::ir

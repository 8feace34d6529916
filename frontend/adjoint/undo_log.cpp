// The undo log: the elements that stores overwrite while code runs forward again, so that the way back finds memory as
// it was.
//
// An entry of 16 bytes is the address and the bits that were there. If numbers of several types are logged, the highest
// byte of the address tells the type. Entry e of a lane lies at e * lanes + lane, so that neighbours write side by
// side.
#include "undo_log.h"

#include <algorithm>

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
  // The conversion keeps the number, because it was of this type before.
  if (is_signed(type)) return b.pure(Op::convert, type, {b.pure(Op::bitcast, Type::i64, {bits})});
  if (is_unsigned(type)) return b.pure(Op::convert, type, {bits});
  const Id word = b.pure(Op::convert, Type::u32, {bits});
  const Id real = b.pure(Op::bitcast, Type::f32, {word});
  return type == Type::f16 ? b.pure(Op::convert, type, {real}) : real;
}
}  // namespace

UndoLog::UndoLog(AdjointCode& code, bool counting)
    : code_(code), counting_(counting), heights_(code.from.insts.size(), kNone), old_(code.from.insts.size()) {
  for (Id id = 0; id < code.from.insts.size(); ++id) {
    const Inst& inst = code.from[id];
    if (inst.op != Op::store || !code.analysis.replays(id)) continue;
    if (std::ranges::find(kinds_, inst.type) == kinds_.end()) kinds_.push_back(inst.type);
  }
}

void UndoLog::open() {
  if (!code_.analysis.has_log()) return;
  height_ = code_.builder.local(Type::u32);
  code_.set(height_, code_.u32(0));
}

std::uint8_t UndoLog::kind(Type type) const {
  return static_cast<std::uint8_t>(std::ranges::find(kinds_, type) - kinds_.begin());
}

void UndoLog::store(Id id, bool direct) {
  const Inst& inst = code_.from[id];
  const MemoryRef ref = code_.place(id, 0);
  if (direct)
    old_[id] = code_.load(inst.type, inst.width, ref, inst.loc());
  else
    push(id, ref);
  code_.builder.store(inst.type, code_.values(id, 2), ref, inst.loc());
}

void UndoLog::put_back(Id store) {
  const Inst& inst = code_.from[store];
  if (!old_[store].empty()) code_.builder.store(inst.type, old_[store], code_.place(store, 0), inst.loc());
}

void UndoLog::push(Id store, const MemoryRef& ref) {
  const Inst& inst = code_.from[store];
  Builder& b = code_.builder;
  const auto u32 = [&](Op op, Id x, Id y) { return code_.pure(op, Type::u32, {x, y}); };
  const auto u64 = [&](Op op, Id x, Id y) { return code_.pure(op, Type::u64, {x, y}); };
  if (counting_) return code_.set(height_, u32(Op::add, height(), code_.u32(inst.width)));
  const std::vector<Id> old = code_.load(inst.type, inst.width, ref, inst.loc());
  const Id element = u64(Op::add, ref.base, u64(Op::mul, code_.unsigned_index(ref.index), code_.u64(inst.stride)));
  Id now = height();
  for (std::uint32_t k = 0; k < inst.width; ++k) {
    const std::uint64_t offset = ref.offset + k * static_cast<std::uint32_t>(bytes(inst.type));
    Id address = u64(Op::add, element, code_.u64(offset));
    if (const std::uint64_t of = kind(inst.type); of != 0)
      address = u64(Op::bit_or, address, code_.u64(of << kKindShift));
    const Id entry[] = {address, to_bits(b, inst.type, old[k])};
    const Id at = u32(Op::add, u32(Op::mul, now, code_.lanes), code_.lane);
    b.store(Type::u64, entry, {code_.array_base(code_.extra.log), at, 16, 0, 16}, inst.loc());
    now = u32(Op::add, now, code_.u32(1));
  }
  code_.set(height_, now);
}

void UndoLog::roll_back(Id to) {
  Builder& b = code_.builder;
  const auto u32 = [&](Op op, Id x, Id y) { return code_.pure(op, Type::u32, {x, y}); };
  b.open_loop();
  b.loop_body(code_.pure(Op::lt, Type::b1, {to, height()}));
  const Id top = u32(Op::sub, height(), code_.u32(1));
  code_.set(height_, top);
  const Id at = u32(Op::add, u32(Op::mul, top, code_.lanes), code_.lane);
  const std::vector<Id> entry = code_.load(Type::u64, 2, {code_.array_base(code_.extra.log), at, 16, 0, 16}, {});
  const Id address = entry[0], old_bits = entry[1];
  const auto restore = [&](Type type, Id at) {
    const Id old[] = {from_bits(b, type, old_bits)};
    b.store(type, old, {at, code_.u32(0), 1, 0, static_cast<std::uint32_t>(bytes(type))});
  };
  if (kinds_.size() == 1) {
    restore(kinds_[0], address);
  } else {
    const Id kind = code_.pure(Op::shr, Type::u64, {address, code_.u64(kKindShift)});
    const Id plain = code_.pure(Op::bit_and, Type::u64, {address, code_.u64((1ull << kKindShift) - 1)});
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
      b.open_if(code_.pure(Op::eq, Type::b1, {kind, code_.u64(k)}));
      restore(kinds_[k], plain);
      b.close_if();
    }
  }
  b.close_loop();
}

}  // namespace weft::ir

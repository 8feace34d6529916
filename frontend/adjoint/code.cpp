// Values, threads and places in memory of an adjoint.
#include "code.h"

#include <algorithm>

#include "../support/error.h"

namespace weft::ir {

void AdjointCode::enter() {
  lane = thread = builder.thread_id();
  if (extra.first_thread != kNone)
    thread = pure(Op::add, Type::u32, {lane, builder.arg(Type::u32, out.params[extra.first_thread].offset)});
  if (extra.lanes != kNone) {
    lanes = builder.arg(Type::u32, out.params[extra.lanes].offset);
    lanes64 = pure(Op::convert, Type::u64, {lanes});
  }
}

Id AdjointCode::value(Id old) {
  const Inst& inst = from[old];
  switch (inst.op) {
    case Op::constant: return builder.constant(inst.type, inst.imm);
    case Op::arg: return builder.arg(inst.type, static_cast<std::uint32_t>(inst.imm));
    case Op::thread_id: return thread;
    case Op::local_id: return pure(Op::rem, Type::u32, {thread, u32(from.block)});
    case Op::workgroup_id: return pure(Op::div, Type::u32, {thread, u32(from.block)});
    default: break;
  }
  if (is_global(inst.op))
    throw Error(ErrorKind::not_differentiable,
                "what it computes depends on subgroups, which an adjoint cannot form again", from.name, inst.loc());
  if (map_[old] == kNone) internal_error("an adjoint needs a value that was not computed again", inst.loc());
  return map_[old];
}

std::vector<Id> AdjointCode::values(Id old, std::uint32_t first) {
  std::vector<Id> all;
  for (std::uint32_t k = first; k < from[old].num_args; ++k) all.push_back(value(from.arg(old, static_cast<int>(k))));
  return all;
}

std::vector<Id> AdjointCode::load(Type type, std::uint32_t width, const MemoryRef& at, Loc loc) {
  const Id loaded = builder.load(type, width, at, loc);
  if (width == 1) return {loaded};
  std::vector<Id> parts;
  for (std::uint32_t k = 0; k < width; ++k) parts.push_back(builder.result(loaded, k, type));
  return parts;
}

MemoryRef AdjointCode::place(Id memory, std::uint32_t part) {
  const Inst& inst = from[memory];
  const auto width = static_cast<std::uint32_t>(bytes(inst.type));
  // A later part of a wide access is aligned like a scalar.
  const std::uint32_t align = part == 0 ? inst.align : std::min<std::uint32_t>(inst.align, width);
  return {value(from.arg(memory, 0)), value(from.arg(memory, 1)), inst.stride, inst.offset + part * width, align};
}

Id AdjointCode::unsigned_index(Id index) {
  const Type type = out[index].type;
  if (!is_signed(type)) return pure(Op::convert, Type::u64, {index});
  if (type != Type::i64) index = pure(Op::convert, Type::i64, {index});
  return pure(Op::bitcast, Type::u64, {index});
}

}  // namespace weft::ir

// Threads that work together in subgroups: a subgroup is the lanes of one vector, all of which are there.
//
// Reductions and scans take log2(lanes) steps, each a shuffle and an operation on the whole vector:
//   %y = shufflevector <8 x i32> %x, <8 x i32> poison, <8 x i32> <i32 4, i32 5, i32 6, i32 7, i32 0, ..>
//   %x = add <8 x i32> %x, %y                                  then by 2, by 1: the sum is in every lane
#include <limits>

#include "../frontend/ir/evaluate.h"
#include "../frontend/support/error.h"
#include "emitter.h"

namespace weft::llvm {

using ir::Id;
using ir::Inst;
using ir::Op;
using ir::Type;

std::string Emitter::running_lanes() {
  const std::string bits = mask_word();
  out_.declare("@llvm.ctpop.i64", "declare i64 @llvm.ctpop.i64(i64)");
  return cast("trunc", Type::u64, Type::u32, out_.def("call i64 @llvm.ctpop.i64(i64 {})", bits), 1);
}

void Emitter::subgroup(Id id) {
  const Inst& inst = kernel_[id];
  if (inst.op == Op::subgroup_barrier) return;  // the lanes are in step
  const Id operand = kernel_.arg(id, 0);
  const Type t = kernel_[operand].type;
  const std::string x = vector(operand);
  switch (inst.op) {
    case Op::subgroup_reduce: return put_scalar(id, reduce(Op(inst.imm), t, x));
    case Op::subgroup_inclusive: return put_vector(id, scan(Op(inst.imm), t, x));
    case Op::subgroup_exclusive: {
      const std::uint64_t filler = neutral(Op(inst.imm), t);
      return put_vector(id, shifted(t, scan(Op(inst.imm), t, x), 1, literal(t, filler, lanes_)));
    }
    case Op::subgroup_ballot: {
      if (inst.imm * 32 >= lanes_) return put_scalar(id, "0");
      std::string bits = mask_bits(x);
      if (lanes_ == 32) return put_scalar(id, bits);
      if (lanes_ < 32) return put_scalar(id, out_.def("zext i{} {} to i32", lanes_, bits));
      if (inst.imm == 1) bits = out_.def("lshr i64 {}, 32", bits);
      return put_scalar(id, out_.def("trunc i64 {} to i32", bits));
    }
    case Op::subgroup_broadcast: {
      const std::string lane = out_.def("and i32 {}, {}", scalar(kernel_.arg(id, 1)), lanes_ - 1);
      return put_scalar(id, out_.def("extractelement {} {}, i32 {}", type_name(t, lanes_), x, lane));
    }
    case Op::subgroup_shuffle: return put_vector(id, shuffle(t, x, vector(kernel_.arg(id, 1))));
    default: internal_error("llvm: an operation of subgroups that the emitter lacks", inst.loc());
  }
}

std::uint64_t Emitter::neutral(Op op, Type t) const {
  switch (op) {
    case Op::mul: return ir::from_double(t, 1);
    case Op::min: return ir::from_double(t, std::numeric_limits<double>::infinity());
    case Op::max: return ir::from_double(t, -std::numeric_limits<double>::infinity());
    case Op::bit_and: return ir::mask(t);
    default: return 0;
  }
}

std::string Emitter::reduce(Op op, Type t, std::string x) {
  if (t == Type::b1) return reduce_bools(op, x);
  const std::string of = type_name(t, lanes_);
  for (std::uint32_t by = lanes_ / 2; by > 0; by /= 2) {
    Texts from;
    for (std::uint32_t k = 0; k < lanes_; ++k) from.push_back(std::to_string(k ^ by));
    const std::string y =
        out_.def("shufflevector {} {}, {} poison, {} {}", of, x, of, vector_of("i32", lanes_), lanes_of("i32", from));
    x = compute(op, t, t, Texts{x, y}, lanes_);
  }
  return out_.def("extractelement {} {}, i64 0", of, x);
}

std::string Emitter::reduce_bools(Op op, const std::string& x) {
  const std::string bits = mask_bits(x);
  if (op == Op::bit_and) return out_.def("icmp eq i{} {}, -1", lanes_, bits);
  if (op == Op::bit_or) return out_.def("icmp ne i{} {}, 0", lanes_, bits);
  const std::string name = fmt::format("@llvm.ctpop.i{}", lanes_), type = fmt::format("i{}", lanes_);
  out_.declare(name, fmt::format("declare {} {}({})", type, name, type));
  return out_.def("trunc {} {} to i1", type, out_.def("call {} {}({} {})", type, name, type, bits));
}

std::string Emitter::shifted(Type t, const std::string& x, std::uint32_t by, const std::string& filler) {
  Texts from;
  for (std::uint32_t k = 0; k < lanes_; ++k) from.push_back(std::to_string(k < by ? lanes_ + k : k - by));
  const std::string of = type_name(t, lanes_);
  return out_.def("shufflevector {} {}, {} {}, {} {}", of, x, of, filler, vector_of("i32", lanes_),
                  lanes_of("i32", from));
}

// Lanes that have all of their neighbours already keep what they have. A neutral value does so for integers; of reals
// it would turn -0 into 0.
std::string Emitter::scan(Op op, Type t, std::string x) {
  for (std::uint32_t by = 1; by < lanes_; by *= 2) {
    if (ir::is_int(t)) {
      x = compute(op, t, t, Texts{shifted(t, x, by, literal(t, neutral(op, t), lanes_)), x}, lanes_);
      continue;
    }
    const std::string sum = compute(op, t, t, Texts{shifted(t, x, by, x), x}, lanes_);
    Texts grows;
    for (std::uint32_t k = 0; k < lanes_; ++k) grows.push_back(k < by ? "false" : "true");
    x = choose(t, lanes_of("i1", grows), sum, x, lanes_);
  }
  return x;
}

// Lane by lane: LLVM finds the instruction for it where the processor has one.
std::string Emitter::shuffle(Type t, const std::string& x, const std::string& from) {
  const std::string lanes = binary("and", Type::u32, from, literal(Type::u32, lanes_ - 1, lanes_), lanes_);
  const std::string of = type_name(t, lanes_), one = type_name(t);
  std::string made = "zeroinitializer";
  for (std::uint32_t k = 0; k < lanes_; ++k) {
    const std::string lane = out_.def("extractelement {} {}, i64 {}", type_name(Type::u32, lanes_), lanes, k);
    const std::string value = out_.def("extractelement {} {}, i32 {}", of, x, lane);
    made = out_.def("insertelement {} {}, {} {}, i64 {}", of, made, one, value, k);
  }
  return made;
}

}  // namespace weft::llvm

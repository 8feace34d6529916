// Contracts products and sums to fma, and marks those that stay.
#include <unordered_map>

#include "../ir/evaluate.h"
#include "rewrite.h"

namespace weft::ir {
namespace {

/// Contracts one body in place. Decisions are made on the body as it was, in whatever order its regions are taken.
class Contractor {
 public:
  explicit Contractor(const Module& from) : from_(from), out_(from) {}

  Module run() {
    for (Region& region : out_.regions) {
      std::vector<Id> insts;
      insts.reserve(region.insts.size());
      negated_.clear();
      for (const Id id : region.insts) instruction(id, insts);
      region.insts = std::move(insts);
    }
    return contracted_ ? sweep_body(out_) : std::move(out_);
  }

 private:
  void instruction(Id id, std::vector<Id>& insts) {
    const Inst& inst = from_[id];
    if (is_contractible(inst.op, inst.type)) {
      const int product = product_of(id);
      if (product >= 0)
        contract(id, product, insts);
      else
        out_.insts[id].imm = kRounded;
    }
    insts.push_back(id);
  }

  /// The operand of a sum or difference that is fused with it, 0 or 1; -1 if none is.
  int product_of(Id sum) const {
    const Inst& inst = from_[sum];
    if (!from_.contracts || inst.op == Op::mul || inst.imm == kRounded) return -1;
    if (source_of(from_.arg(sum, 0)) == source_of(from_.arg(sum, 1))) return -1;
    for (int k = 0; k < 2; ++k)
      if (const Inst& operand = from_[from_.arg(sum, k)]; operand.op == Op::mul && operand.imm == inst.imm) return k;
    return -1;
  }

  /// The value that an operand is but for its sign, and for being detached.
  Id source_of(Id id) const {
    while (from_[id].op == Op::neg || from_[id].op == Op::detach) id = from_.arg(id, 0);
    return id;
  }

  void contract(Id sum, int product, std::vector<Id>& insts) {
    const Id factors = from_.arg(sum, product);
    Id args[3] = {from_.arg(factors, 0), from_.arg(factors, 1), from_.arg(sum, 1 - product)};
    if (from_[sum].op == Op::sub) {
      Id& operand = product == 0 ? args[2] : args[factor_to_negate(args)];
      operand = negated(operand, from_[sum].loc(), insts);
    }
    Inst& inst = out_.insts[sum];
    inst.op = Op::fma;
    inst.imm = 0;
    inst.num_args = 3;
    inst.first_arg = static_cast<std::uint32_t>(out_.operands.size());
    out_.operands.insert(out_.operands.end(), args, args + 3);
    contracted_ = true;
  }

  /// The factor whose negation costs nothing, if there is one.
  std::size_t factor_to_negate(const Id* factors) const {
    const Op second = from_[factors[1]].op;
    return second == Op::constant || second == Op::neg ? 1 : 0;
  }

  /// The negative of a value, which is appended to a region if nothing there has computed it yet.
  Id negated(Id value, Loc loc, std::vector<Id>& insts) {
    const Inst& inst = from_[value];
    if (inst.op == Op::neg) return from_.arg(value, 0);
    Id& made = negated_.try_emplace(value, kNone).first->second;
    if (made != kNone) return made;
    if (inst.op == Op::constant)
      return made = out_.add(
                 ir::instruction(Op::constant, inst.type, evaluate(Op::neg, inst.type, inst.type, {&inst.imm, 1})), {});
    made = out_.add(ir::instruction(Op::neg, inst.type, 0, loc), {&value, 1});
    insts.push_back(made);
    return made;
  }

  const Module& from_;
  Module out_;
  bool contracted_ = false;
  std::unordered_map<Id, Id> negated_;  ///< by value: its negative, computed before in this region
};

}  // namespace

Module contract(const Module& module) {
  return for_each_body(module, [](const Module& body) { return Contractor(body).run(); });
}

}  // namespace weft::ir

// The pass that turns addresses of an array's gradient, and of its state after the launch, into those of parameters.
#include "array_states.h"

#include "../support/error.h"

namespace weft::ir {

namespace {

/// The array parameter from whose address, and a number of bytes, an address is computed; kNone without one.
std::uint32_t parameter_of(const Module& m, Id base) {
  if (const Param* param = m.array_of(base)) return static_cast<std::uint32_t>(param - m.params.data());
  if (m[base].op != Op::add) return kNone;
  for (Id arg : m.args(base))
    if (const std::uint32_t found = parameter_of(m, arg); found != kNone) return found;
  return kNone;
}

bool is_after(const Module& m, Id base) {
  if (m[base].op == Op::after_base) return true;
  if (m[base].op != Op::add) return false;
  return is_after(m, m.arg(base, 0)) || is_after(m, m.arg(base, 1));
}

std::uint32_t named_parameter(const Module& m, Id state) {
  const std::uint32_t param = parameter_of(m, m.arg(state, 0));
  if (param == kNone)
    refuse(ErrorKind::not_differentiable, m,
           "a function with derivatives of its own works on an array that an element of another array holds, or of "
           "which it depends on a condition which array it is",
           m[state].loc());
  return param;
}

class Resolver {
 public:
  Resolver(Module& module, const std::vector<std::uint32_t>& gradient, const std::vector<std::uint32_t>& after)
      : m_(module), gradient_(gradient), after_(after), with_(module.insts.size(), kNone) {}

  void run() {
    region(0);
    for (Id& operand : m_.operands)
      while (operand < with_.size() && with_[operand] != kNone) operand = with_[operand];
  }

 private:
  Id add(Op op, Type type, std::uint64_t imm, std::initializer_list<Id> args = {}) {
    return m_.add(ir::instruction(op, type, imm), {args.begin(), args.size()});
  }
  Id base(std::uint32_t param) { return add(Op::arg, Type::u64, m_.params[param].offset); }

  void region(RegionId number) {
    std::vector<Id> kept;
    for (Id id : std::vector<Id>(m_.regions[number].insts)) {
      if (!instruction(id, kept)) kept.push_back(id);
      // A copy, because region() adds instructions.
      const std::array<RegionId, 3> regions = m_.insts[id].regions;
      for (RegionId inner : regions)
        if (inner != kNone) region(inner);
    }
    m_.regions[number].insts = std::move(kept);
  }

  /// Resolves an instruction. Returns whether it is to be dropped, because a value in `with_` or nothing replaces it.
  /// \param before  receives instructions that go in before it
  bool instruction(Id id, std::vector<Id>& before) {
    const Inst inst = m_.insts[id];
    if (inst.op == Op::gradient_base || inst.op == Op::after_base) {
      const std::uint32_t of = named_parameter(m_, id);
      const std::uint32_t to = (inst.op == Op::gradient_base ? gradient_ : after_)[of];
      if (to == kNone && inst.op == Op::after_base) internal_error("an adjoint lacks an array's state", inst.loc());
      if (to == kNone) {
        absent(id);
        return true;
      }
      const Id operand = m_.arg(id, 0);
      if (m_[operand].op == Op::arg) {
        with_[id] = base(to);
      } else {
        const Id distance = add(Op::sub, Type::u64, 0, {operand, base(of)});
        const Id address = add(Op::add, Type::u64, 0, {base(to), distance});
        before.insert(before.end(), {distance, address});
        with_[id] = address;
      }
      return true;
    }
    if ((inst.op == Op::store || is_atomic(inst.op)) && is_after(m_, m_.arg(id, 0)))
      refuse(ErrorKind::not_differentiable, m_,
             "a replay or gradient function writes to an array that its function has written to; it may change "
             "gradients only",
             inst.loc());
    if (inst.num_args == 0 || !is_absent(m_.arg(id, 0))) {
      // An address that is computed from an absent one is absent too.
      if (info(inst.op).effect != Effect::pure) return false;
      for (Id arg : m_.args(id))
        if (is_absent(arg)) return absent(id), true;
      return false;
    }
    if (inst.op == Op::store) return true;
    if (is_wide(inst.op, inst.width)) return absent(id), true;
    if (inst.op == Op::load || is_atomic(inst.op) || inst.op == Op::result) {
      with_[id] = add(Op::constant, inst.type, 0);
      return true;
    }
    return absent(id), true;
  }

  void absent(Id id) {
    absent_.resize(m_.insts.size(), 0);
    absent_[id] = 1;
  }
  bool is_absent(Id id) const { return id < absent_.size() && absent_[id]; }

  Module& m_;
  const std::vector<std::uint32_t>& gradient_;
  const std::vector<std::uint32_t>& after_;
  std::vector<Id> with_;      ///< by instruction: the value that replaces it, or kNone
  std::vector<char> absent_;  ///< by instruction: it is an address in a gradient that does not exist
};

}  // namespace

std::vector<char> named_states(const Module& module, Op op) {
  std::vector<char> named(module.params.size(), 0);
  for (const Region& region : module.regions)
    for (Id id : region.insts)
      if (module[id].op == op) named[named_parameter(module, id)] = 1;
  return named;
}

void resolve_states(Module& module, const std::vector<std::uint32_t>& gradient,
                    const std::vector<std::uint32_t>& after) {
  Resolver(module, gradient, after).run();
}

}  // namespace weft::ir

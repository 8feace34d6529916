// Decides how a thread that fails goes on where others wait for it.
#include <algorithm>

#include "passes.h"
#include "uniformity.h"

namespace weft::ir {
namespace {

class Survivors {
 public:
  explicit Survivors(Module& module) : module_(module), parts_(failures_that_part(module)) {}

  void region(RegionId id, bool in_loop) {
    std::vector<Id>& insts = module_.regions[id].insts;
    std::erase_if(insts, [&](Id inst) { return forget(inst); });
    for (std::size_t k = 0; k < insts.size(); ++k) {
      Inst& inst = module_.insts[insts[k]];
      if (inst.op == Op::return_ && inst.imm == 1) {
        // A loop may wait for what the failure prevented, so it ends, unless other threads count on this one there.
        if (in_loop && !parts_[insts[k]]) {
          inst.op = Op::break_;
          inst.imm = 0;
        } else {
          insts.resize(k);
        }
        return;
      }
      const bool is_loop = inst.op == Op::loop;
      for (int r = 0; r < 3; ++r) {
        if (const RegionId inner = module_[insts[k]].regions[std::size_t(r)]; inner != kNone)
          region(inner, is_loop ? r == 1 : in_loop);
      }
    }
  }

 private:
  /// Removes the question whether a thread has failed from a condition by which threads would diverge.
  bool forget(Id id) {
    Inst& inst = module_.insts[id];
    if (inst.op != Op::local_get || !parts_[id]) return false;
    inst.op = Op::constant;
    inst.imm = 0;
    return true;
  }

  Module& module_;
  std::vector<char> parts_;
};

}  // namespace

void outlive_failures(Module& module) {
  const auto fails = [](const Inst& inst) { return inst.op == Op::return_ && inst.imm == 1; };
  if (std::ranges::none_of(module.insts, fails) && std::ranges::none_of(module.locals, &Local::failure)) return;
  if (needs_agreement(module)) {
    Survivors(module).region(0, false);
    module = forward(module);
  } else {
    for (Inst& inst : module.insts)
      if (fails(inst)) inst.imm = 0;
  }
}

}  // namespace weft::ir

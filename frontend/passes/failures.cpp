// What becomes of a thread that fails where others wait for it.
#include <algorithm>

#include "passes.h"

namespace weft::ir {
namespace {

class Survivors {
 public:
  explicit Survivors(Module& module) : module_(module) {}
  void region(RegionId id, Id loop) {
    std::vector<Id>& insts = module_.regions[id].insts;
    for (std::size_t k = 0; k < insts.size(); ++k) {
      Inst& inst = module_.insts[insts[k]];
      if (inst.op == Op::if_) {
        for (RegionId r : inst.regions)
          if (r != kNone) region(r, loop);
      } else if (inst.op == Op::loop) {
        for (RegionId r : inst.regions)
          if (r != kNone) region(r, r == inst.regions[1] && !meets(inst) ? insts[k] : kNone);
      } else if (inst.op == Op::return_ && inst.imm == 1) {
        // A loop may wait for what the failure kept from happening: it ends, unless others count on this thread there.
        if (loop != kNone) {
          inst.op = Op::break_;
          inst.imm = 0;
        } else {
          insts.resize(k);
        }
        return;
      }
    }
  }

 private:
  /// Do threads meet inside this instruction?
  bool meets(const Inst& inst) const {
    if (inst.op == Op::barrier || is_subgroup(inst.op)) return true;
    return std::any_of(inst.regions.begin(), inst.regions.end(), [&](RegionId r) {
      return r != kNone && std::any_of(module_.regions[r].insts.begin(), module_.regions[r].insts.end(),
                                       [&](Id id) { return meets(module_[id]); });
    });
  }

  Module& module_;
};

}  // namespace

void outlive_failures(Module& module) {
  const bool meet = std::any_of(module.insts.begin(), module.insts.end(),
                                [](const Inst& inst) { return inst.op == Op::barrier || is_subgroup(inst.op); });
  if (meet) Survivors(module).region(0, kNone);
}

}  // namespace weft::ir

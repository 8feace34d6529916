// Parameters by value, and the one run of a kernel's function.
#include "kernel.h"

#include <algorithm>

#include "../passes/passes.h"
#include "../support/error.h"

namespace weft::detail {

std::uint32_t add_value_param(ir::Type scalar, int count, std::string type_name) {
  ir::Param p;
  p.kind = ir::Param::Kind::value;
  p.type_name = std::move(type_name);
  p.element_bytes = std::uint32_t(bytes(scalar));
  p.element_align = p.element_bytes;
  p.bytes = p.element_bytes * std::uint32_t(count);
  return Trace::current().add_param(std::move(p)).offset;
}

trace::Id value_param(ir::Type type, std::uint32_t at) { return Trace::current().builder().arg(type, at); }

namespace {
// What the kernel does to each array, as it stands after dead code is gone.
void mark_accesses(ir::Module& m) {
  std::vector<ir::RegionId> open{0};
  while (!open.empty()) {
    const ir::RegionId r = open.back();
    open.pop_back();
    for (ir::Id id : m.regions[r].insts) {
      const ir::Inst& inst = m[id];
      for (ir::RegionId inner : inst.regions)
        if (inner != ir::kNone) open.push_back(inner);
      ir::Access access = inst.op == ir::Op::load         ? ir::Access::read
                          : inst.op == ir::Op::store      ? ir::Access::write
                          : inst.op == ir::Op::atomic_add ? ir::Access::atomic
                                                          : ir::Access::none;
      if (access == ir::Access::none) continue;
      if (const ir::Param* p = m.array_of(m.arg(id, 0))) {
        ir::Param& param = m.params[std::size_t(p - m.params.data())];
        param.access = param.access | access;
      }
    }
  }
}

// Reports that stood in code which never runs are forgotten, and the kernel needs no buffer for them.
void drop_unused_messages(ir::Module& m) {
  const auto reads = [&](const ir::Inst& inst) { return inst.op == ir::Op::arg && inst.imm == m.report_offset; };
  if (std::ranges::any_of(m.insts, reads)) return;
  m.report_offset = 0;
  m.messages.clear();
}
}  // namespace

ir::Module KernelCore::trace(const ir::Variant& variant) const {
  ir::Module module;
  module.name = name_;
  module.loc = loc_;
  Trace trace(module, variant);
  body_();
  trace.finish();
  ir::Module clean = ir::forward(module);
  mark_accesses(clean);
  if (clean.report_offset != 0) drop_unused_messages(clean);
  ir::verify(clean);
  return clean;
}

}  // namespace weft::detail

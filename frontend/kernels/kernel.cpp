// Makes parameters by value, runs a kernel's function, and keeps the list of all kernels.
#include "kernel.h"

#include <algorithm>
#include <map>

#include "../passes/passes.h"
#include "../support/error.h"
#include "../support/platform.h"

namespace weft::detail {

void make_value_param(std::uint32_t bytes, std::uint32_t align, std::string type_name, std::span<const Leaf> leaves,
                      tracing::Id* out) {
  ir::Param p;
  p.kind = ir::Param::Kind::value;
  p.type_name = std::move(type_name);
  p.element_bytes = align;
  p.element_align = align;
  p.bytes = bytes;
  tracing::Trace& t = tracing::Trace::current();
  const std::uint32_t at = t.add_param(std::move(p)).offset;
  for (std::size_t i = 0; i < leaves.size(); ++i) out[i] = t.builder().arg(leaves[i].type, at + leaves[i].offset);
}

namespace {
// Drops the messages of reports in code that never runs, so that the kernel needs no buffer for them.
void drop_unused_messages(ir::Module& m) {
  const auto reads = [&](const ir::Inst& inst) { return inst.op == ir::Op::arg && inst.imm == m.report_offset; };
  if (std::ranges::any_of(m.insts, reads)) return;
  for (const auto& function : m.functions)
    if (std::ranges::any_of(function->insts, reads)) return;
  m.report_offset = 0;
  m.messages.clear();
}
}  // namespace

namespace {
/// All existing kernels, in the order in which they were made. Never destroyed: a static container that is older than
/// the first kernel would be destroyed after a list made with that kernel, and its kernels still need the list.
struct AllKernels {
  std::mutex mutex;
  std::map<std::uint64_t, KernelCore*> by_serial;
  std::uint64_t last = 0;

  static AllKernels& get() {
    static AllKernels* const all = new AllKernels;
    return *all;
  }
};
}  // namespace

KernelCore::KernelCore(std::string name, Loc loc, const KernelOptions& options, std::function<void()> body)
    : name_(std::move(name)), loc_(loc), options_(options), body_(std::move(body)) {
  AllKernels& all = AllKernels::get();
  std::lock_guard lock(all.mutex);
  serial_ = ++all.last;
  all.by_serial.emplace(serial_, this);
}

KernelCore::~KernelCore() {
  AllKernels& all = AllKernels::get();
  std::lock_guard lock(all.mutex);
  all.by_serial.erase(serial_);
}

std::vector<std::shared_ptr<KernelCore>> KernelCore::all() {
  std::vector<std::shared_ptr<KernelCore>> kernels;
  AllKernels& all = AllKernels::get();
  std::lock_guard lock(all.mutex);
  // A kernel whose last handle goes at this moment waits for the lock to leave the list.
  for (const auto& [serial, kernel] : all.by_serial)
    if (auto alive = kernel->weak_from_this().lock()) kernels.push_back(std::move(alive));
  return kernels;
}

ir::Module KernelCore::trace(const ir::Variant& variant, std::uint32_t max_block) const {
  const platform::FloatMode mode;  // for what the library computes on the host
  ir::Module module;
  module.name = name_;
  module.loc = loc_;
  module.block = options_.block ? options_.block : std::min(module.block, max_block);
  module.contracts = options_.contract && platform::environment_flag("WEFT_CONTRACT", true);
  tracing::Trace trace(module, variant);
  body_();
  trace.finish();
  ir::Module clean = ir::contract(ir::forward(module));
  ir::outlive_failures(clean);
  ir::mark_accesses(clean);
  if (clean.report_offset != 0) drop_unused_messages(clean);
  ir::verify(clean);
  ir::check_uniform(clean);
  return clean;
}

}  // namespace weft::detail

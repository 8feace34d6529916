// The module as a whole: the entry function, and what it names.
#include "emit.h"

#include <optional>
#include <utility>

#include "../frontend/passes/passes.h"
#include "../frontend/support/error.h"
#include "emitter.h"

namespace weft::llvm {

using ir::Id;
using ir::Inst;
using ir::kNone;
using ir::Op;
using ir::RegionId;

namespace {
/// Exits in a row that nest, see normalise(): LLVM's passes take time by the square of the depth.
constexpr unsigned kChain = 32;
/// The most levels of control flow: each takes the emitter's stack.
constexpr unsigned kDepth = 256;
}  // namespace

Code emit(const ir::Module& kernel, const Target& target, bool by_rows) {
  const ir::Module normal = ir::normalise(ir::inline_calls(kernel), kChain);
  const std::optional<ir::Module> flat = ir::limit_nesting(normal, kDepth);
  const ir::Module form = ir::promote(flat ? *flat : normal);
  return Emitter(form, target, ir::find_shapes(form, target.lanes, by_rows)).run();
}

Emitter::Emitter(const ir::Module& kernel, const Target& target, ir::Shapes shapes)
    : kernel_(kernel),
      target_(target),
      lanes_(target.lanes),
      shapes_(std::move(shapes)),
      group_use_(ir::group_use(kernel)),
      scalar_(kernel.insts.size()),
      vector_(kernel.insts.size()),
      wide_(kernel.insts.size()),
      results_(kernel.insts.size()),
      is_used_(kernel.insts.size(), 0),
      is_placed_(kernel.insts.size(), 0),
      all_lanes_(literal(ir::Type::b1, 1, target.lanes)),
      group_vectors_((kernel.block + target.lanes - 1) / target.lanes) {
  for (Id id : shapes_.row) is_placed_[id] = 1;
  for (Id id : shapes_.column) is_placed_[id] = 1;
  survey(0);
  find_barriers();
  lay_out_arrays();
  plan_records();
  plan_again();
  plan_blocks();
  plan_pieces();
}

void Emitter::survey(RegionId region) {
  const std::vector<Id>& insts = kernel_.regions[region].insts;
  // From the last to the first, so that an operation comes after all that use it, but for a loop's next values.
  for (auto at = insts.rbegin(); at != insts.rend(); ++at) {
    const Inst& inst = kernel_[*at];
    if (inst.op == Op::result) results_[kernel_.arg(*at, 0)].insert(results_[kernel_.arg(*at, 0)].begin(), *at);
    const bool is_pure = ir::info(inst.op).effect == ir::Effect::pure && inst.op != Op::result;
    if (is_placed_[*at] || (is_pure && !is_used_[*at])) continue;
    for (Id operand : kernel_.args(*at)) is_used_[operand] = 1;
    for (RegionId inner : {inst.regions[2], inst.regions[1], inst.regions[0]})
      if (inner != kNone) survey(inner);
  }
}

void Emitter::lay_out_arrays() {
  for (const ir::KernelArray& array : kernel_.arrays) {
    std::uint64_t& end = array.is_private ? private_bytes_ : shared_bytes_;
    array_offsets_.push_back(end);
    end += (array.bytes() * (array.is_private ? private_lanes() : 1) + 63) / 64 * 64;
  }
}

Code Emitter::run() {
  Code code;
  is_entry_ = true;
  sources();
  arrays();
  out_.declare("@llvm.smin.i64", "declare i64 @llvm.smin.i64(i64, i64)");
  const std::string count = out_.def("load i32, ptr %args, align 4");
  out_.line("%threads = zext i32 {} to i64", count);
  if (shapes_.groups) {
    code.split = Split::groups;
    run_groups();
  } else if (shapes_.rows) {
    code.split = Split::rows;
    run_rows();
  } else {
    run_threads();
  }
  out_.line("ret void");
  if (further_ != 0) {
    out_.label("never");
    out_.line("ret void");
  }
  code.arena_bytes = arena_bytes_;
  const std::string entry = fmt::format(
      "\ndefine void @{}(ptr noalias nocapture readonly %args, ptr noalias nocapture readonly %worker, i64 %begin, "
      "i64 %end) #0 {{\nentry:\n{}{}{}}}\n\nattributes #0 = {{ nounwind \"no-trapping-math\"=\"true\" "
      "\"prefer-vector-width\"=\"{}\" }}\n",
      kEntryName, has_nowhere_ ? "  %nowhere = alloca [16 x i8], align 16\n" : "",
      has_places_ ? fmt::format("  %places = alloca [{} x i64], align 64\n", lanes_) : "", out_.body(),
      target_.mask_registers ? 512 : 256);
  code.text = out_.declarations() + entry;
  for (const auto& [name, text] : out_.declared()) {
    const auto called = called_.find(name);
    if (called != called_.end())
      code.own += called->second + "\n";
    else if (text.starts_with("declare"))
      code.own += text + "\n";
  }
  code.own += entry;
  code.functions = functions_;
  return code;
}

}  // namespace weft::llvm

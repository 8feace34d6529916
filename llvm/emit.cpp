// The module as a whole: the entry function, and what it names.
#include "emit.h"

#include <algorithm>

#include "../frontend/passes/passes.h"
#include "../frontend/support/error.h"
#include "emitter.h"

namespace weft::llvm {

using ir::Id;
using ir::kNone;
using ir::Op;
using ir::RegionId;

Code emit(const ir::Module& kernel, const Target& target, bool by_rows) {
  const ir::Module normal = ir::promote(ir::normalise(ir::inline_calls(kernel)));
  return Emitter(normal, target, by_rows).run();
}

Emitter::Emitter(const ir::Module& kernel, const Target& target, bool by_rows)
    : kernel_(kernel),
      target_(target),
      lanes_(target.lanes),
      shapes_(ir::find_shapes(kernel, target.lanes, by_rows)),
      group_use_(ir::group_use(kernel)),
      scalar_(kernel.insts.size()),
      vector_(kernel.insts.size()),
      results_(kernel.insts.size()),
      is_used_(kernel.insts.size(), 0),
      is_placed_(kernel.insts.size(), 0),
      all_lanes_(literal(ir::Type::b1, 1, target.lanes)),
      group_vectors_((kernel.block + target.lanes - 1) / target.lanes) {
  survey(0);
  for (Id id : shapes_.row) is_placed_[id] = 1;
  for (Id id : shapes_.column) is_placed_[id] = 1;
  find_barriers();
  lay_out_arrays();
  plan_pieces();
}

void Emitter::survey(RegionId region) {
  for (Id id : kernel_.regions[region].insts) {
    for (Id operand : kernel_.args(id)) is_used_[operand] = 1;
    if (kernel_[id].op == Op::result) results_[kernel_.arg(id, 0)].push_back(id);
    for (RegionId inner : kernel_[id].regions)
      if (inner != kNone) survey(inner);
  }
}

void Emitter::lay_out_arrays() {
  for (const ir::KernelArray& array : kernel_.arrays) {
    std::uint64_t& end = array.is_private ? private_bytes_ : shared_bytes_;
    array_offsets_.push_back(end);
    end += (array.bytes() * (array.is_private ? lanes_ : 1) + 63) / 64 * 64;
  }
}

Code Emitter::run() {
  Code code;
  arguments();
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
  code.arena_bytes = arena_bytes_;
  code.text = fmt::format(
      "{}\ndefine void @{}(ptr noalias nocapture readonly %args, ptr noalias nocapture readonly %worker, i64 %begin, "
      "i64 %end) #0 {{\nentry:\n{}}}\n\nattributes #0 = {{ nounwind \"no-trapping-math\"=\"true\" "
      "\"prefer-vector-width\"=\"{}\" }}\n",
      out_.declarations(), kEntryName, out_.body(), target_.mask_registers ? 512 : 256);
  return code;
}

}  // namespace weft::llvm

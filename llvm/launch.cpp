// Which threads the entry function runs: a range of threads, of rows, or of workgroups.
//
// Vectors over positions begin to end - 1, with code of its own for full vectors:
// loop: %i = phi i64 [ begin, before ], [ %next, latch ]
//   %next = add i64 %i, W
//   br (%next <= end), body, tail
// body: ..                                            all lanes are active
//   br loop
// tail: br (%i < end), part, after
// part: ..                                            with the mask %i + lane < end
//   br after
// Large kernels have one code, with a mask in every vector.
#include <bit>

#include "../frontend/support/error.h"
#include "emitter.h"

namespace weft::llvm {

using ir::Id;
using ir::Inst;
using ir::Op;
using ir::Type;

namespace {
/// The most instructions of a kernel that is written twice, those that only name results and parameters apart. Larger
/// ones compute so much that masks cost them nothing that could be measured, and would take half as long again to
/// compile.
constexpr std::size_t kTwoBodies = 64;
}  // namespace

Emitter::Tail Emitter::tail() const {
  std::size_t size = 0;
  for (const ir::Region& region : kernel_.regions)
    for (Id id : region.insts) size += kernel_[id].op != Op::result && kernel_[id].op != Op::param ? 1 : 0;
  return size <= kTwoBodies ? Tail::apart : Tail::masked;
}

void Emitter::sources() {
  for (Id id = 0; id < kernel_.insts.size(); ++id) {
    const Inst& inst = kernel_[id];
    switch (inst.op) {
      case Op::subgroup_size: scalar_[id] = std::to_string(lanes_); break;
      case Op::thread_id: numbers_[kThread].push_back(id); break;
      case Op::local_id: numbers_[kLocal].push_back(id); break;
      case Op::workgroup_id: numbers_[kWorkgroup].push_back(id); break;
      case Op::subgroup_id: numbers_[kSubgroup].push_back(id); break;
      case Op::subgroup_lane: numbers_[kLane].push_back(id); break;
      default: break;
    }
    if (inst.op != Op::arg) continue;
    const std::string from = out_.def("getelementptr i8, ptr %args, i64 {}", inst.imm);
    if (inst.type == Type::b1) {
      const std::string byte = out_.def("load i8, ptr {}, align 1", from);
      scalar_[id] = out_.def("icmp ne i8 {}, 0", byte);
    } else {
      scalar_[id] = out_.def("load {}, ptr {}, align {}", type_name(inst.type), from, ir::bytes(inst.type));
    }
  }
}

// The worker's memory: shared arrays, then the private ones of a vector (of each vector of a workgroup where barriers
// part it), then values that live across barriers.
void Emitter::arrays() {
  slot_begin_ = shared_bytes_ + private_bytes_ * (has_barriers_ ? group_vectors_ : 1);
  arena_bytes_ = slot_begin_ + slot_bytes_ * group_vectors_;
  if (arena_bytes_ == 0) return;
  out_.line("%arena = load ptr, ptr %worker, align 8");
  if (private_bytes_ != 0) private_base_ = moved("%arena", static_cast<std::int64_t>(shared_bytes_));
  for (Id id = 0; id < kernel_.insts.size(); ++id) {
    const Inst& inst = kernel_[id];
    if (inst.op != Op::kernel_array || kernel_.arrays[inst.imm].is_private) continue;
    scalar_[id] = out_.def("ptrtoint ptr {} to i64", moved("%arena", std::int64_t(array_offsets_[inst.imm])));
  }
}

std::string Emitter::lanes_before(const std::string& position, const std::string& end) {
  const std::string left = out_.def("sub i64 {}, {}", end, position);
  out_.declare("@llvm.umin.i64", "declare i64 @llvm.umin.i64(i64, i64)");
  const std::string few = out_.def("call i64 @llvm.umin.i64(i64 {}, i64 {})", left, lanes_);
  const std::string count = spread(Type::i32, out_.def("trunc i64 {} to i32", few));
  return out_.def("icmp ult {} {}, {}", type_name(Type::i32, lanes_), sequence(Type::i32, 0, 1, lanes_), count);
}

void Emitter::vectors(const std::string& begin, const std::string& end, Tail tail,
                      const std::function<void(const std::string&)>& body) {
  const std::string before = out_.block(), head = out_.fresh("vectors"), run = out_.fresh("vector"),
                    after = out_.fresh("after");
  auto write = [&](const std::string& position, bool masked) {
    const Scope scope(*this);
    mask_ = masked ? lanes_before(position, end) : "";
    body(position);
    mask_.clear();
  };
  out_.jump(head);
  out_.label(head);
  const Text::Hole position = out_.hole();
  const std::string next = out_.def("add i64 {}, {}", position.name, lanes_);
  const std::string rest = tail == Tail::apart ? out_.fresh("rest") : after;
  const bool masked = tail == Tail::masked;
  const std::string more =
      masked ? out_.def("icmp slt i64 {}, {}", position.name, end) : out_.def("icmp sle i64 {}, {}", next, end);
  out_.jump_if(more, run, rest);
  out_.label(run);
  write(position.name, masked);
  out_.fill(position, fmt::format("phi i64 [ {}, %{} ], [ {}, %{} ]", begin, before, next, out_.block()));
  out_.jump(head);
  if (tail == Tail::apart) {
    const std::string part = out_.fresh("part");
    out_.label(rest);
    out_.jump_if(out_.def("icmp slt i64 {}, {}", position.name, end), part, after);
    out_.label(part);
    is_rest_ = true;
    write(position.name, true);
    is_rest_ = false;
    out_.jump(after);
  }
  out_.label(after);
}

void Emitter::set_number(std::span<const Id> ids, const std::string& number) {
  const std::string narrow = out_.def("trunc i64 {} to i32", number);
  for (Id id : ids) {
    put_scalar(id, narrow);
    wide_[id] = number;
  }
}

void Emitter::run_threads() {
  const std::string last = out_.def("call i64 @llvm.smin.i64(i64 %end, i64 %threads)");
  vectors("%begin", last, tail(), [&](const std::string& first) {
    set_number(numbers_[kThread], first);
    region(0);
  });
}

// Rows of the launch's last dimension: %row is one number, and the columns of a row are vectors.
void Emitter::run_rows() {
  const std::uint32_t at = kernel_.extent_offset(int(kernel_.tid_rank) - 1);
  const std::string from = out_.def("getelementptr i8, ptr %args, i64 {}", at);
  const std::string columns = out_.def("zext i32 {} to i64", out_.def("load i32, ptr {}, align 4", from));
  const std::string before = out_.block(), head = out_.fresh("rows"), run = out_.fresh("row"),
                    done = out_.fresh("done");
  out_.jump(head);
  out_.label(head);
  const Text::Hole row = out_.hole();
  out_.jump_if(out_.def("icmp slt i64 {}, %end", row.name), run, done);
  out_.label(run);
  const std::string first = out_.def("mul i64 {}, {}", row.name, columns);
  const std::string left = out_.def("sub i64 %threads, {}", first);
  const std::string end = out_.def("call i64 @llvm.smin.i64(i64 {}, i64 {})", columns, left);
  vectors("0", end, tail(), [&](const std::string& column) {
    set_number(numbers_[kThread], out_.def("add i64 {}, {}", first, column));
    set_number(shapes_.row, row.name);
    set_number(shapes_.column, column);
    region(0);
  });
  const std::string next = out_.def("add i64 {}, 1", row.name);
  out_.fill(row, fmt::format("phi i64 [ %begin, %{} ], [ {}, %{} ]", before, next, out_.block()));
  out_.jump(head);
  out_.label(done);
}

// Workgroups one after the other; the vectors of a workgroup in turn, up to a barrier or to the end.
void Emitter::run_groups() {
  const std::uint32_t block = kernel_.block;
  const std::string before = out_.block(), head = out_.fresh("groups"), run = out_.fresh("group"),
                    done = out_.fresh("done");
  out_.jump(head);
  out_.label(head);
  const Text::Hole group = out_.hole();
  const std::string first = out_.def("mul i64 {}, {}", group.name, block);
  const std::string in_group = out_.def("icmp slt i64 {}, %end", group.name);
  const std::string in_launch = out_.def("icmp slt i64 {}, %threads", first);
  out_.jump_if(out_.def("and i1 {}, {}", in_group, in_launch), run, done);
  out_.label(run);
  group_first_ = first;
  group_number_ = group.name;
  group_end_ = std::to_string(block);
  if (!group_use_.together) {
    const std::string left = out_.def("sub i64 %threads, {}", first);
    group_end_ = out_.def("call i64 @llvm.smin.i64(i64 {}, i64 {})", block, left);
  }
  {
    const Scope scope(*this);
    if (has_barriers_)
      for (const Piece& each : pieces_) piece(each);
    else
      vectors_of_group([&] { region(0); });
  }
  const std::string next = out_.def("add i64 {}, 1", group.name);
  out_.fill(group, fmt::format("phi i64 [ %begin, %{} ], [ {}, %{} ]", before, next, out_.block()));
  out_.jump(head);
  out_.label(done);
}

void Emitter::vectors_of_group(const std::function<void()>& body) {
  const bool whole = group_use_.together && kernel_.block % lanes_ == 0;
  const auto one = [&](const std::string& local) {
    vector_number_ = out_.def("lshr i64 {}, {}", local, std::countr_zero(lanes_));
    if (has_barriers_ && private_bytes_ != 0)
      private_base_ = out_.def("getelementptr i8, ptr {}, i64 {}", moved("%arena", std::int64_t(shared_bytes_)),
                               out_.def("mul i64 {}, {}", vector_number_, private_bytes_));
    if (slot_bytes_ != 0)
      slot_base_ = out_.def("getelementptr i8, ptr {}, i64 {}", moved("%arena", std::int64_t(slot_begin_)),
                            out_.def("mul i64 {}, {}", vector_number_, slot_bytes_));
    set_number(numbers_[kThread], out_.def("add i64 {}, {}", group_first_, local));
    set_number(numbers_[kLocal], local);
    set_number(numbers_[kWorkgroup], group_number_);
    set_number(numbers_[kSubgroup], vector_number_);
    set_number(numbers_[kLane], "0");
    body();
  };
  if (kernel_.block == 1) return lone_vector(one);
  vectors("0", group_end_, whole ? Tail::none : tail(), one);
}

// A workgroup of one thread, which every launch that has the group has.
void Emitter::lone_vector(const std::function<void(const std::string&)>& body) {
  const Scope scope(*this);
  mask_ = lanes_before("0", "1");
  body("0");
  mask_.clear();
}

}  // namespace weft::llvm

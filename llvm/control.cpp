// Branches and loops: scalar where all lanes agree, by masks where they do not.
//
// A branch whose condition differs among lanes:
//   %then = and <W x i1> %mask, %condition        the lanes that take this side
//   br (any %then), on, off                       skipped when there are none
// on:  ..                                         with the mask %then
// off: %a = phi [ 0, before ], [ %value, on's end ]
//   the same for the other side, with not %condition, then
//   %result = select <W x i1> %condition, %a, %b
// Without mask registers, a short side that accesses memory is written once more, without a mask, for vectors whose
// lanes all take it.
//
// A loop whose condition differs among lanes:
// head: %live = phi [ %mask, before ], [ %act, latch ]
//   %x = phi [ initial, before ], [ %next, latch ]
//   ..  the condition, with the mask %live
//   %act = and %live, %condition
//   br (any %act), body, exit
// body: ..  with the mask %act
//   %next = select %act, new, %x                  lanes that have left keep what they left with
// A carried value that agrees in all lanes that are still in the loop stays scalar there; a second phi, as above, keeps
// what each lane left with. On processors without mask registers, vectors of i1 cross from block to block as <W x i32>,
// because they would be packed and unpacked each time.
#include "../frontend/support/error.h"
#include "emitter.h"
#include "real.h"

namespace weft::llvm {

using ir::Id;
using ir::Inst;
using ir::kNone;
using ir::Op;
using ir::RegionId;
using ir::Type;

namespace {
/// The lines of a block that is parted.
constexpr std::size_t kLongBlock = 512;
/// The most instructions of a side that is written twice.
constexpr std::size_t kTwoSides = 32;
/// The most sides and stores of a kernel that are.
constexpr std::uint32_t kMostTwofold = 64;
}  // namespace

Id Emitter::region(RegionId region) {
  for (Id id : kernel_.regions[region].insts) {
    if (kernel_[id].op == Op::yield) return id;
    instruction(id);
  }
  return kNone;
}

Id Emitter::yielded(RegionId region, std::uint64_t k) const {
  return kernel_.arg(kernel_.regions[region].insts.back(), static_cast<int>(k));
}

// LLVM's schedulers take time by the square of the accesses in a block. A branch ends one that is always taken, which
// LLVM does not know: %begin is not negative. Each has a number of its own, or LLVM would see that one implies another.
void Emitter::part_block() {
  const std::string taken = out_.def("icmp ne i64 %begin, {}", --further_), further = out_.fresh("further");
  out_.jump_if(taken, further, "never");
  out_.label(further);
}

void Emitter::instruction(Id id) {
  const Inst& inst = kernel_[id];
  if (is_placed_[id]) return;  // put by run_rows()
  if (out_.block_lines() >= kLongBlock && is_entry_) part_block();
  if (ir::is_atomic(inst.op)) return atomic(id);
  if (ir::is_subgroup(inst.op)) return subgroup(id);
  switch (inst.op) {
    case Op::if_: return branch(id);
    case Op::loop: return loop(id);
    case Op::load: return load(id);
    case Op::store: return store(id);
    case Op::fence: return out_.line("fence seq_cst");
    case Op::running_lanes: return put_scalar(id, running_lanes());
    case Op::result:  // put by what it is a result of
    case Op::param: return;
    case Op::trace_ray: ir::refuse(ErrorKind::unsupported, kernel_, "the device lacks ray queries", inst.loc());
    case Op::barrier: internal_error("llvm: a barrier inside a piece", inst.loc());
    case Op::local_get:
    case Op::local_set:
    case Op::break_:
    case Op::continue_:
    case Op::return_:
    case Op::call: internal_error("llvm: an operation that normal form lacks", inst.loc());
    case Op::gradient_base:
    case Op::after_base: internal_error("llvm: a state of an array that only an adjoint knows", inst.loc());
    default:
      if (is_used_[id]) pure(id);
      return;
  }
}

// ---- Values across blocks

bool Emitter::crosses_wide(Type type, std::uint32_t lanes) const {
  return type == Type::b1 && lanes > 1 && !target_.mask_registers;
}

std::string Emitter::crossing_type(Type type, std::uint32_t lanes) const {
  return type_name(crosses_wide(type, lanes) ? Type::i32 : type, lanes);
}

std::string Emitter::to_cross(Type type, const std::string& value, std::uint32_t lanes) {
  return crosses_wide(type, lanes) ? widened(value) : value;
}

std::string Emitter::crossed(Type type, const std::string& value, std::uint32_t lanes) {
  return crosses_wide(type, lanes) ? narrowed(value) : value;
}

std::string Emitter::widened(const std::string& mask) { return cast("sext", Type::b1, Type::i32, mask, lanes_); }

std::string Emitter::narrowed(const std::string& mask) {
  return out_.def("icmp slt {} {}, zeroinitializer", type_name(Type::i32, lanes_), mask);
}

// ---- Branches

void Emitter::branch(Id id) {
  const bool divergent = shapes_.divergent[id] || !shape(kernel_.arg(id, 0)).is_uniform();
  divergent ? divergent_branch(id) : uniform_branch(id);
}

void Emitter::uniform_branch(Id id) {
  const Inst& inst = kernel_[id];
  const bool has_else = inst.regions[1] != kNone && !kernel_.regions[inst.regions[1]].insts.empty();
  const std::string condition = scalar(kernel_.arg(id, 0));
  const std::string yes = out_.fresh("then"), no = out_.fresh("else"), join = out_.fresh("join");
  std::string ends[2] = {out_.block(), out_.block()};
  Texts values[2];
  out_.jump_if(condition, yes, has_else ? no : join);
  for (int k = 0; k < (has_else ? 2 : 1); ++k) {
    out_.label(k == 0 ? yes : no);
    const Scope scope(*this);
    region(inst.regions[k]);
    for (Id result : results(id)) {
      const Id from = yielded(inst.regions[k], kernel_[result].imm);
      values[k].push_back(
          to_cross(kernel_[result].type, varies(result) ? vector(from) : scalar(from), held_lanes(result)));
    }
    ends[k] = out_.block();
    out_.jump(join);
  }
  out_.label(join);
  Texts chosen;
  for (std::size_t k = 0; k < results(id).size(); ++k)
    chosen.push_back(out_.def("phi {} [ {}, %{} ], [ {}, %{} ]",
                              crossing_type(kernel_[results(id)[k]].type, held_lanes(results(id)[k])), values[0][k],
                              ends[0], values[1][k], ends[1]));
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    const Id result = results(id)[k];
    put(result, crossed(kernel_[result].type, chosen[k], held_lanes(result)), held_lanes(result));
  }
}

bool Emitter::is_light(RegionId region) const {
  const std::vector<Id>& insts = kernel_.regions[region].insts;
  if (insts.size() > 12) return false;
  for (Id id : insts) {
    const Inst& inst = kernel_[id];
    if (inst.op == Op::yield || inst.op == Op::result) continue;
    if (ir::info(inst.op).effect != ir::Effect::pure || inst.op == Op::param) return false;
    const Type type = kernel_[kernel_.arg(id, 0)].type;
    if (is_real_function(inst.op, type) || inst.op == Op::sqrt || inst.op == Op::rsqrt) return false;
    if ((inst.op == Op::div || inst.op == Op::rem) && type != Type::f32) return false;
  }
  return true;
}

std::size_t Emitter::size_of(RegionId region, bool& accesses) const {
  std::size_t size = 0;
  for (Id id : kernel_.regions[region].insts) {
    const Inst& inst = kernel_[id];
    ++size;
    accesses = accesses || inst.op == Op::load || inst.op == Op::store;
    for (const RegionId inner : inst.regions)
      if (inner != kNone) size += size_of(inner, accesses);
    if (size > kTwoSides) break;
  }
  return size;
}

// Masked accesses cost more than others where masks have no registers, and most vectors take one side as a whole.
bool Emitter::has_whole_side(RegionId region) const {
  bool accesses = false;
  return pays_twofold() && size_of(region, accesses) <= kTwoSides && accesses;
}

// Some passes of LLVM take time by the square of the blocks.
bool Emitter::pays_twofold() const {
  return !mask_.empty() && !target_.mask_registers && !is_rest_ && lanes_ > 1 && twofold_ < kMostTwofold;
}

Emitter::Texts Emitter::side(Id id, RegionId region_id, const std::string& mask, const Texts& before) {
  const std::string outer = mask_;
  const bool skips = !is_light(region_id);
  const std::string on = out_.fresh("on"), off = out_.fresh("off"), entry = out_.block();
  std::vector<std::pair<std::string, Texts>> ends;  // the blocks that end the side, and their values
  const auto write = [&](const std::string& running) {
    mask_ = running;
    const Scope scope(*this);
    region(region_id);
    Texts values;
    for (Id result : results(id)) {
      const Id from = yielded(region_id, kernel_[result].imm);
      const std::string value = varies(result) ? vector(from) : scalar(from);
      values.push_back(skips ? to_cross(kernel_[result].type, value, held_lanes(result)) : value);
    }
    ends.emplace_back(out_.block(), std::move(values));
  };
  if (skips) {
    out_.jump_if(any(mask), on, off);
    out_.label(on);
    mask_ = mask;
    if (has_whole_side(region_id)) {
      ++twofold_;
      const std::string whole = out_.fresh("whole"), parts = out_.fresh("parts");
      out_.jump_if(out_.def("icmp eq i{} {}, -1", lanes_, mask_bits(mask)), whole, parts);
      out_.label(whole);
      write("");
      out_.jump(off);
      out_.label(parts);
    }
  }
  write(mask);
  mask_ = outer;
  if (!skips) return ends[0].second;
  out_.jump(off);
  out_.label(off);
  Texts values;
  for (std::size_t k = 0; k < before.size(); ++k) {
    std::string from = fmt::format("[ {}, %{} ]", before[k], entry);
    for (const auto& [block, texts] : ends) from += fmt::format(", [ {}, %{} ]", texts[k], block);
    const Id result = results(id)[k];
    values.push_back(out_.def("phi {} {}", crossing_type(kernel_[result].type, held_lanes(result)), from));
  }
  for (std::size_t k = 0; k < values.size(); ++k) {
    const Id result = results(id)[k];
    values[k] = crossed(kernel_[result].type, values[k], held_lanes(result));
  }
  return values;
}

void Emitter::divergent_branch(Id id) {
  const Inst& inst = kernel_[id];
  const std::string condition = vector(kernel_.arg(id, 0));
  Texts zeros;
  for (Id result : results(id)) zeros.push_back(literal(kernel_[result].type, 0, held_lanes(result)));
  const Texts yes = side(id, inst.regions[0], both(mask_, condition), zeros);
  Texts no = zeros;
  if (inst.regions[1] != kNone && !kernel_.regions[inst.regions[1]].insts.empty()) {
    no = side(id, inst.regions[1], both(mask_, opposite(condition)), zeros);
  }
  for (std::size_t k = 0; k < results(id).size(); ++k) {
    const Id result = results(id)[k];
    if (!varies(result)) internal_error("llvm: a result that lanes agree on, of a branch that they do not", inst.loc());
    put_vector(result, choose(kernel_[result].type, condition, yes[k], no[k], lanes_));
  }
}

// ---- Loops

/// A loop that is being written.
struct Emitter::Loop {
  struct Carried {
    Id param = kNone, result = kNone;
    bool kept = false;  ///< a scalar, whose value each lane keeps when it leaves
    Text::Hole value, last;
    std::string initial, initial_last;
    std::string now, now_last;  ///< in the head and the body
  };
  Id id = kNone;
  bool divergent = false;
  std::string before, head, body, exit;
  std::string live_type, initial_live, live, act;
  Text::Hole live_hole;
  std::vector<Carried> carried;
};

void Emitter::loop(Id id) {
  const Inst& inst = kernel_[id];
  const Id condition = kernel_.regions[inst.regions[0]].insts.back();
  Loop loop;
  loop.id = id;
  loop.divergent = shapes_.divergent[id] || !shape(kernel_.arg(condition, 0)).is_uniform();
  const std::string outer = mask_;
  open_loop(loop);
  {
    const Scope scope(*this);
    for (Loop::Carried& c : loop.carried) put(c.param, c.now, held_lanes(c.param));
    if (loop.divergent) {
      mask_ = loop.live;
    }
    region(inst.regions[0]);
    const Id go = kernel_.arg(condition, 0);
    if (loop.divergent) {
      loop.act = both(loop.live, vector(go));
      out_.jump_if(any(loop.act), loop.body, loop.exit);
      mask_ = loop.act;
    } else {
      out_.jump_if(scalar(go), loop.body, loop.exit);
    }
    out_.label(loop.body);
    close_loop(loop, region(inst.regions[1]));
  }
  mask_ = outer;
  out_.label(loop.exit);
  for (const Loop::Carried& c : loop.carried) {
    if (c.result == kNone) continue;
    if (c.kept)
      put_vector(c.result, c.now_last);
    else
      put(c.result, c.now, held_lanes(c.param));
  }
}

void Emitter::open_loop(Loop& loop) {
  const Inst& inst = kernel_[loop.id];
  const std::vector<Id>& insts = kernel_.regions[inst.regions[0]].insts;
  loop.carried.resize(inst.num_args);
  for (Id result : results(loop.id)) loop.carried[kernel_[result].imm].result = result;
  for (std::uint32_t k = 0; k < inst.num_args; ++k) {
    Loop::Carried& c = loop.carried[k];
    c.param = insts[k];
    const Id from = kernel_.arg(loop.id, static_cast<int>(k));
    c.initial = to_cross(kernel_[from].type, varies(c.param) ? vector(from) : scalar(from), held_lanes(c.param));
    c.kept = c.result != kNone && !varies(c.param) && (loop.divergent || varies(c.result));
    if (c.kept) c.initial_last = to_cross(kernel_[from].type, vector(from), lanes_);
  }
  if (loop.divergent) {
    loop.live_type = type_name(target_.mask_registers ? Type::b1 : Type::i32, lanes_);
    loop.initial_live = target_.mask_registers ? mask_text(mask_) : widened(mask_text(mask_));
  }
  loop.before = out_.block();
  loop.head = out_.fresh("head");
  loop.body = out_.fresh("body");
  loop.exit = out_.fresh("exit");
  out_.jump(loop.head);
  out_.label(loop.head);
  for (Loop::Carried& c : loop.carried) {
    c.value = out_.hole();
    if (c.kept) c.last = out_.hole();
  }
  if (loop.divergent) loop.live_hole = out_.hole();
  for (Loop::Carried& c : loop.carried) {
    const Type type = kernel_[c.param].type;
    c.now = crossed(type, c.value.name, held_lanes(c.param));
    if (c.kept) c.now_last = crossed(type, c.last.name, lanes_);
  }
  if (loop.divergent) loop.live = target_.mask_registers ? loop.live_hole.name : narrowed(loop.live_hole.name);
}

void Emitter::close_loop(Loop& loop, Id yield) {
  std::vector<std::pair<std::string, std::string>> next;  // by carried value: the next one, and the last
  for (std::size_t k = 0; k < loop.carried.size(); ++k) {
    const Loop::Carried& c = loop.carried[k];
    const Id from = kernel_.arg(yield, static_cast<int>(k));
    const Type type = kernel_[c.param].type;
    std::string value = varies(c.param) ? vector(from) : scalar(from), last;
    const bool blends = loop.divergent && c.result != kNone;
    if (c.kept) {
      last = loop.divergent ? choose(type, loop.act, vector(from), c.now_last, lanes_) : vector(from);
      last = to_cross(type, last, lanes_);
    }
    if (blends && varies(c.param)) value = choose(type, loop.act, value, c.now, lanes_);
    next.emplace_back(to_cross(type, value, held_lanes(c.param)), last);
  }
  std::string live = loop.act;
  if (loop.divergent && !target_.mask_registers) live = widened(live);
  const std::string latch = out_.block();
  out_.jump(loop.head);
  auto phi = [&](const Text::Hole& hole, const std::string& type, const std::string& initial, const std::string& then) {
    out_.fill(hole, fmt::format("phi {} [ {}, %{} ], [ {}, %{} ]", type, initial, loop.before, then, latch));
  };
  for (std::size_t k = 0; k < loop.carried.size(); ++k) {
    const Loop::Carried& c = loop.carried[k];
    const Type type = kernel_[c.param].type;
    phi(c.value, crossing_type(type, held_lanes(c.param)), c.initial, next[k].first);
    if (c.kept) phi(c.last, crossing_type(type, lanes_), c.initial_last, next[k].second);
  }
  if (loop.divergent) phi(loop.live_hole, loop.live_type, loop.initial_live, live);
}

}  // namespace weft::llvm

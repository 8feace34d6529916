// Kernels with barriers. A barrier stands only where all threads of the workgroup come, so the control flow around it
// is the same for all of them: it becomes scalar control flow of the workgroup, and the runs of instructions between
// become loops over the vectors of the workgroup.
//   a; if (c) { b; barrier; d } e     becomes     for each vector: a
//                                                 if (c) { for each vector: b
//                                                          for each vector: d }
//                                                 for each vector: e
// A value that one run defines and another one uses goes through the worker's memory, with a place for each vector; so
// do what such branches give and such loops carry. What is quickly computed from arguments and the thread's numbers is
// computed again instead.
#include <algorithm>

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
constexpr std::uint64_t kNoSlot = ~0ull;
/// The most instructions that are repeated to save a place in memory.
constexpr std::uint32_t kRepeats = 6;
}  // namespace

// ---- The kernel as pieces

void Emitter::find_barriers() {
  region_has_barrier_.assign(kernel_.regions.size(), 0);
  for (const ir::Region& region : kernel_.regions)
    for (Id id : region.insts)
      if (kernel_[id].op == Op::barrier)
        for (auto r = static_cast<RegionId>(&region - kernel_.regions.data()); r != kNone;
             r = kernel_.regions[r].parent)
          region_has_barrier_[r] = 1;
  has_barriers_ = region_has_barrier_[0];
}

bool Emitter::has_barrier(Id id) const {
  for (RegionId r : kernel_[id].regions)
    if (r != kNone && region_has_barrier_[r]) return true;
  return false;
}

std::vector<Emitter::Piece> Emitter::pieces(RegionId region, Copies copies) {
  std::vector<Piece> made(1);
  auto end_run = [&] {
    if (!made.back().insts.empty() || !made.back().copies.empty()) {
      made.back().number = runs_++;
      made.emplace_back();
    }
  };
  auto add_control = [&](Piece::Kind kind, Id id) {
    end_run();
    made.back().kind = kind;
    made.back().control = id;
  };
  for (Id id : kernel_.regions[region].insts) {
    const Inst& inst = kernel_[id];
    const bool of_control = inst.op == Op::result && has_barrier(kernel_.arg(id, 0));
    if (inst.op == Op::yield || inst.op == Op::param || of_control) continue;
    if (inst.op == Op::barrier) {
      end_run();
    } else if (inst.op == Op::if_ && has_barrier(id)) {
      add_control(Piece::Kind::branch, id);
      Piece branch = std::move(made.back());
      branch.first = pieces(inst.regions[0], copies_to_results(id, inst.regions[0]));
      if (inst.regions[1] != kNone) branch.second = pieces(inst.regions[1], copies_to_results(id, inst.regions[1]));
      made.back() = std::move(branch);
      made.emplace_back();
    } else if (inst.op == Op::loop && has_barrier(id)) {
      const std::vector<Id>& head = kernel_.regions[inst.regions[0]].insts;
      Copies next;
      for (std::uint32_t k = 0; k < inst.num_args; ++k) {
        made.back().copies.emplace_back(head[k], kernel_.arg(id, static_cast<int>(k)));
        next.emplace_back(head[k], yielded(inst.regions[1], k));
      }
      for (Id result : results(id)) alias_[result] = head[kernel_[result].imm];
      add_control(Piece::Kind::loop, id);
      Piece loop = std::move(made.back());
      loop.first = pieces(inst.regions[0], {});
      loop.second = pieces(inst.regions[1], next);
      made.back() = std::move(loop);
      made.emplace_back();
    } else {
      made.back().insts.push_back(id);
    }
  }
  made.back().copies = std::move(copies);
  end_run();
  made.pop_back();
  return made;
}

Emitter::Copies Emitter::copies_to_results(Id id, RegionId region) const {
  Copies copies;
  for (Id result : results(id)) copies.emplace_back(result, yielded(region, kernel_[result].imm));
  return copies;
}

// ---- Values that live across runs

void Emitter::number(const std::vector<Piece>& pieces) {
  for (const Piece& each : pieces) {
    for (Id id : each.insts) number(id, each.number);
    number(each.first);
    number(each.second);
  }
}

void Emitter::number(Id id, std::uint32_t run) {
  home_[id] = run;
  for (RegionId r : kernel_[id].regions)
    if (r != kNone)
      for (Id inner : kernel_.regions[r].insts) number(inner, run);
}

void Emitter::cross(const std::vector<Piece>& pieces) {
  for (const Piece& each : pieces) {
    for (Id id : each.insts) cross(id, each.number);
    for (const auto& [to, from] : each.copies) {
      use(to, kNone);
      use(from, each.number);
    }
    if (each.kind == Piece::Kind::branch) use(kernel_.arg(each.control, 0), kNone);
    if (each.kind == Piece::Kind::loop) use(yielded(kernel_[each.control].regions[0], 0), kNone);
    cross(each.first);
    cross(each.second);
  }
}

void Emitter::cross(Id id, std::uint32_t run) {
  for (Id operand : kernel_.args(id)) use(operand, run);
  for (RegionId r : kernel_[id].regions)
    if (r != kNone)
      for (Id inner : kernel_.regions[r].insts) cross(inner, run);
}

/// A use in a run, or by the workgroup (kNone).
void Emitter::use(Id id, std::uint32_t run) {
  if (alias_[id] != kNone) id = alias_[id];
  const Inst& inst = kernel_[id];
  if (ir::is_global(inst.op) || (run != kNone && home_[id] == run) || slots_[id] != kNoSlot) return;
  if (run != kNone && is_repeated(id)) return;
  const std::uint64_t bytes = static_cast<std::uint64_t>(ir::bytes(inst.type)) * held_lanes(id);
  const std::uint64_t align = std::min<std::uint64_t>(bytes, 64);
  slots_[id] = (slot_bytes_ + align - 1) / align * align;
  slot_bytes_ = slots_[id] + bytes;
  slot_align_ = std::max(slot_align_, align);
}

/// Whether at most `left` instructions compute the value from arguments and the thread's numbers; takes them from
/// `left`.
bool Emitter::repeats(Id id, std::uint32_t& left) const {
  const Inst& inst = kernel_[id];
  if (ir::is_global(inst.op)) return true;
  if (ir::info(inst.op).effect != ir::Effect::pure || inst.num_args == 0 || inst.op == Op::result) return false;
  const Type type = kernel_[kernel_.arg(id, 0)].type;
  if (left == 0 || is_real_function(inst.op, type) || inst.op == Op::div || inst.op == Op::rem) return false;
  --left;
  for (Id operand : kernel_.args(id))
    if (!repeats(operand, left)) return false;
  return true;
}

bool Emitter::is_repeated(Id id) const {
  std::uint32_t left = kRepeats;
  return repeats(id, left);
}

void Emitter::plan_pieces() {
  home_.assign(kernel_.insts.size(), kNone);
  slots_.assign(kernel_.insts.size(), kNoSlot);
  alias_.assign(kernel_.insts.size(), kNone);
  if (!has_barriers_) return;
  pieces_ = pieces(0, {});
  number(pieces_);
  cross(pieces_);
  slot_bytes_ = (slot_bytes_ + slot_align_ - 1) / slot_align_ * slot_align_;
}

std::string Emitter::slot(Id id) { return moved(slot_base_, static_cast<std::int64_t>(slots_[id])); }

void Emitter::save(Id id) {
  if (slots_[id] != kNoSlot) save_as(id, held(id));
}

void Emitter::save_as(Id id, std::string value) {
  const Type t = kernel_[id].type, lies = t == Type::b1 ? Type::u8 : t;
  const std::uint32_t lanes = held_lanes(id);
  if (t == Type::b1) value = cast("zext", t, lies, value, lanes);
  out_.line("store {} {}, ptr {}, align {}", type_name(lies, lanes), value, slot(id), ir::bytes(t));
}

void Emitter::fetch(Id id) {
  const Inst& inst = kernel_[id];
  const std::uint32_t lanes = held_lanes(id);
  std::string value;
  if (alias_[id] != kNone) {
    value = lanes == 1 ? scalar(alias_[id]) : vector(alias_[id]);
  } else if (slots_[id] != kNoSlot) {
    const Type lies = inst.type == Type::b1 ? Type::u8 : inst.type;
    value = out_.def("load {}, ptr {}, align {}", type_name(lies, lanes), slot(id), ir::bytes(inst.type));
    if (inst.type == Type::b1) value = cast("trunc", lies, Type::b1, value, lanes);
  } else if (has_barriers_ && is_repeated(id)) {
    return pure(id);
  } else {
    internal_error("llvm: a value is used where it is not visible", inst.loc());
  }
  (lanes == 1 ? scalar_ : vector_)[id] = value;
  visible_.push_back({id, false});
}

// ---- The code

void Emitter::piece(const Piece& piece) {
  switch (piece.kind) {
    case Piece::Kind::run: return run_piece(piece);
    case Piece::Kind::branch: {
      const std::string yes = out_.fresh("then"), no = out_.fresh("else"), join = out_.fresh("join");
      out_.jump_if(group_condition(kernel_.arg(piece.control, 0)), yes, no);
      out_.label(yes);
      for (const Piece& each : piece.first) this->piece(each);
      out_.jump(join);
      out_.label(no);
      for (const Piece& each : piece.second) this->piece(each);
      out_.jump(join);
      return out_.label(join);
    }
    case Piece::Kind::loop: {
      const std::string head = out_.fresh("head"), body = out_.fresh("body"), exit = out_.fresh("exit");
      out_.jump(head);
      out_.label(head);
      for (const Piece& each : piece.first) this->piece(each);
      out_.jump_if(group_condition(yielded(kernel_[piece.control].regions[0], 0)), body, exit);
      out_.label(body);
      for (const Piece& each : piece.second) this->piece(each);
      out_.jump(head);
      return out_.label(exit);
    }
  }
}

void Emitter::run_piece(const Piece& piece) {
  vectors_of_group([&] {
    for (Id id : piece.insts) instruction(id);
    Texts values;
    for (const auto& [to, from] : piece.copies) values.push_back(varies(to) ? vector(from) : scalar(from));
    for (std::size_t k = 0; k < values.size(); ++k) save_as(piece.copies[k].first, values[k]);
  });
}

// What all threads of the workgroup agree on, as its first thread has it.
std::string Emitter::group_condition(Id id) {
  if (alias_[id] != kNone) id = alias_[id];
  if (ir::is_global(kernel_[id].op)) return scalar(id);
  const std::string at = moved("%arena", static_cast<std::int64_t>(slot_begin_ + slots_[id]));
  const std::string byte = out_.def("load i8, ptr {}, align 1", at);
  return out_.def("trunc i8 {} to i1", byte);
}

}  // namespace weft::llvm

// Copies modules through a Builder, and finds where locals are used.
#include "rewrite.h"

#include <algorithm>
#include <utility>

#include "../support/error.h"

namespace weft::ir {

// ---- Rewriter

Rewriter::Rewriter(const Module& from) : from_(from), builder_(out_), map_(from.insts.size(), kNone) {
  static_cast<Interface&>(out_) = from.as_interface();
  out_.insts.reserve(from.insts.size());
  out_.operands.reserve(from.operands.size());
  out_.regions.reserve(from.regions.size());
  out_.functions = from.functions;
  out_.function = from.function;
  out_.derivatives = from.derivatives;
  for (std::uint32_t k = 0; k < from.num_inputs; ++k) {
    const Id input = from.regions[0].insts[k];
    map(input, builder_.input(from[input].type, from[input].loc()));
  }
}

Id Rewriter::value(Id old) {
  if (map_[old] != kNone) return map_[old];
  const Inst& inst = from_[old];
  switch (inst.op) {
    case Op::constant: return map_[old] = builder_.constant(inst.type, inst.imm);
    case Op::arg: return map_[old] = builder_.arg(inst.type, static_cast<std::uint32_t>(inst.imm));
    default:
      if (!is_global(inst.op)) internal_error("a pass met a value before its definition", inst.loc());
      return map_[old] = builder_.source(inst.op, inst.type, inst.imm, inst.loc());
  }
}

std::span<const Id> Rewriter::values(Id old) {
  scratch_.clear();
  for (Id arg : from_.args(old)) scratch_.push_back(value(arg));
  return scratch_;
}

void Rewriter::copy(Id old) {
  const Inst& inst = from_[old];
  if (inst.op == Op::result) {
    if (auto found = inlined_.find(from_.arg(old, 0)); found != inlined_.end())
      return map(old, found->second[inst.imm]);
  }
  map(old, builder_.copy(inst, values(old)));
}

void Rewriter::inline_results(Id old, std::vector<Id> results) { inlined_.emplace(old, std::move(results)); }

void Rewriter::open_loop(Id old, std::span<const Id> initial) {
  const Inst& inst = from_[old];
  builder_.open_loop(initial, inst.loc());
  for (std::uint32_t k = 0; k < inst.num_args; ++k) {
    map(from_.regions[inst.regions[0]].insts[k], builder_.loop_param(k));
  }
}

int Rewriter::taken(Id branch) {
  const Inst& condition = out_[value(from_.arg(branch, 0))];
  if (condition.op != Op::constant) return -1;
  return condition.imm != 0 ? 0 : 1;
}

bool Rewriter::has_results(Id branch) const {
  const std::vector<Id>& insts = from_.regions[from_[branch].regions[0]].insts;
  return !insts.empty() && from_[insts.back()].op == Op::yield;
}

// ---- KeepingRewriter

KeepingRewriter::KeepingRewriter(const Module& from)
    : Rewriter(from),
      uses_left_(from.insts.size(), 0),
      kept_in_(from.insts.size(), kNone),
      is_address_(from.insts.size(), 0) {
  for (const Region& region : from.regions) {
    for (const Id id : region.insts) {
      for (const Id arg : from.args(id)) ++uses_left_[arg];
    }
  }
  find_addresses();
}

void KeepingRewriter::find_addresses() {
  std::vector<Id> found;
  const auto look = [&](Id id) {
    const Inst& inst = from_[id];
    if (inst.type != Type::u64 || is_global(inst.op) || info(inst.op).effect != Effect::pure || is_address_[id]) return;
    is_address_[id] = 1;
    found.push_back(id);
  };
  for (const Region& region : from_.regions) {
    for (const Id id : region.insts)
      if (is_memory(from_[id].op)) look(from_.arg(id, 0));
  }
  while (!found.empty()) {
    const Id id = found.back();
    found.pop_back();
    for (const Id arg : from_.args(id)) look(arg);
  }
}

Id KeepingRewriter::use(Id old) {
  --uses_left_[old];
  return value_here(old);
}

Id KeepingRewriter::value_here(Id old) {
  if (!is_kept(old)) return value(old);
  if (kept_in_[old] == kAgain) {
    std::vector<Id> args;
    for (const Id arg : from_.args(old)) args.push_back(value_here(arg));
    map(old, builder_.copy(from_[old], args));
  } else {
    map(old, builder_.local_get(kept_in_[old], from_[old].loc()));
  }
  return value(old);
}

void KeepingRewriter::use_all(Id inst) {
  for (const Id arg : from_.args(inst)) use(arg);
}

std::vector<Id> KeepingRewriter::used(Id inst) {
  std::vector<Id> made;
  for (const Id arg : from_.args(inst)) made.push_back(use(arg));
  return made;
}

void KeepingRewriter::keep(std::span<const Id> defined) {
  for (const Id old : defined) {
    const Inst& inst = from_[old];
    if (uses_left_[old] == 0 || inst.type == Type::none) continue;
    if (inst.op == Op::call || is_wide(inst.op, inst.width)) continue;  // its results are kept
    keep(old);
  }
}

void KeepingRewriter::keep(Id old) {
  const Inst& inst = from_[old];
  if (is_kept(old) || is_global(inst.op)) return;
  if (is_address_[old]) {
    kept_in_[old] = kAgain;
    for (const Id arg : from_.args(old)) keep(arg);
    return;
  }
  kept_in_[old] = builder_.local(inst.type);
  builder_.local_set(kept_in_[old], value(old), inst.loc());
}

// ---- Bodies

Module for_each_body(const Module& kernel, const std::function<Module(const Module&)>& pass) {
  if (kernel.functions.empty()) return pass(kernel);
  Module body = kernel;
  body.functions.clear();
  for (const auto& function : kernel.functions) {
    Module before = *function;
    before.functions = body.functions;
    auto after = std::make_shared<Module>(pass(before));
    after->functions.clear();
    body.functions.push_back(std::move(after));
  }
  return pass(body);
}

void drop_unused_functions(Module& kernel) {
  const std::size_t count = kernel.functions.size();
  std::vector<char> used(count, 0);
  std::vector<std::uint64_t> found;
  auto use = [&](std::uint64_t function) {
    if (!std::exchange(used[function], 1)) found.push_back(function);
  };
  auto mark = [&](const Module& body) {
    for (const Region& region : body.regions) {
      for (Id id : region.insts) {
        if (body[id].op == Op::call) use(body[id].imm);
      }
    }
    for (std::uint32_t linked : {body.derivatives.gradient, body.derivatives.replay}) {
      if (linked != kNone) use(linked);
    }
  };
  mark(kernel);
  while (!found.empty()) {
    const std::uint64_t function = found.back();
    found.pop_back();
    mark(*kernel.functions[function]);
  }
  std::vector<std::uint64_t> numbers;
  std::uint64_t next = 0;
  for (char is_used : used) numbers.push_back(is_used ? next++ : next);
  if (next == count) return;
  auto renumber = [&](Module& body) {
    for (Inst& inst : body.insts) {
      if (inst.op == Op::call) inst.imm = numbers[inst.imm];
    }
    for (std::uint32_t* linked : {&body.derivatives.gradient, &body.derivatives.replay}) {
      if (*linked != kNone) *linked = static_cast<std::uint32_t>(numbers[*linked]);
    }
  };
  std::vector<std::shared_ptr<const Module>> kept;
  for (std::size_t i = 0; i < count; ++i) {
    if (!used[i]) continue;
    auto function = std::make_shared<Module>(*kernel.functions[i]);
    renumber(*function);
    kept.push_back(std::move(function));
  }
  renumber(kernel);
  kernel.functions = std::move(kept);
}

// ---- LocalUses

LocalUses::LocalUses(const Module& module)
    : module_(module), ranges_(module.regions.size()), uses_(module.locals.size()) {
  walk(0);
}

void LocalUses::walk(RegionId region) {
  Range& range = ranges_[region];
  range.first = position_;
  range.set_first = static_cast<std::uint32_t>(all_sets_.size());
  for (Id id : module_.regions[region].insts) {
    const Inst& inst = module_[id];
    ++position_;
    if (inst.op == Op::local_get || inst.op == Op::local_set) {
      const bool set = inst.op == Op::local_set;
      uses_[inst.imm].push_back({position_, region, set});
      if (set) all_sets_.push_back(static_cast<std::uint32_t>(inst.imm));
    }
    for (RegionId inner : inst.regions) {
      if (inner != kNone) walk(inner);
    }
  }
  range.last = ++position_;
  range.set_last = static_cast<std::uint32_t>(all_sets_.size());
}

std::span<const std::uint32_t> LocalUses::sets(RegionId region) const {
  if (region == kNone) return {};
  const Range& range = ranges_[region];
  return {all_sets_.data() + range.set_first, range.set_last - range.set_first};
}

std::span<const std::uint32_t> LocalUses::sets(const Inst& inst) const {
  std::uint32_t first = ranges_[inst.regions[0]].set_first, last = first;
  for (RegionId region : inst.regions) {
    if (region != kNone) last = ranges_[region].set_last;
  }
  return {all_sets_.data() + first, last - first};
}

bool LocalUses::escapes_condition(Id loop) const {
  const Inst& inst = module_[loop];
  return std::ranges::any_of(sets(inst.regions[0]), [&](std::uint32_t local) { return escapes(local, inst); });
}

bool LocalUses::escapes(std::uint32_t local, const Inst& loop) const {
  const Range& condition = ranges_[loop.regions[0]];
  const RegionId end = loop.regions[2] != kNone ? loop.regions[2] : loop.regions[1];
  const std::uint32_t last = ranges_[end].last;
  const Use* definition = nullptr;
  for (const Use& use : uses_[local]) {
    const bool inside = use.position > condition.first && use.position < last;
    if (!inside) {
      if (!use.set) return true;
      continue;
    }
    if (definition == nullptr) {
      // The first use in an iteration must be an assignment in the condition region.
      if (!use.set || use.position > condition.last) return true;
      definition = &use;
    } else if (!use.set && definition->region != loop.regions[0] && use.position > ranges_[definition->region].last) {
      return true;  // the assignment may not have run before this read
    }
  }
  return false;
}

}  // namespace weft::ir

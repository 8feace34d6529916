// The flow of gradients through a kernel, and the refusal of kernels without an adjoint.
//
// A value is varied if it depends, through operations that have a derivative, on an element of an array with gradient
// storage; it is useful if such an array's elements depend on it. Only values that are both get code in the adjoint.
#include "analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "../support/error.h"
#include "rules.h"

namespace weft::ir {

Analysis::Analysis(const Module& module, const AdjointOptions& options)
    : module_(module),
      options_(options),
      owner_(module.insts.size(), kNone),
      arrays_(module.params.size()),
      varied_(module.insts.size(), 0),
      useful_(module.insts.size(), 0),
      replays_(module.insts.size(), 0),
      reverses_(module.insts.size(), 0),
      runs_(module.insts.size(), 0),
      needed_(module.insts.size(), 0),
      results_(module.insts.size()),
      outer_(module.insts.size()),
      loaded_groups_(module.insts.size()),
      held_reads_(module.insts.size(), 0),
      stored_groups_(module.insts.size()),
      plans_(module.insts.size()),
      replayed_groups_(module.params.size(), 0) {
  group_arrays();
  survey_functions();
  survey(0, kNone);
  while (flow_varied(0)) {
  }
  while (flow_useful(0)) {
  }
  check(0, group_accesses());
  find_reverses(0);
  find_outer();
  need_for_reverse();
  find_plans();
}

void Analysis::refuse(Id id, const std::string& what) const {
  ir::refuse(ErrorKind::not_differentiable, module_, what, module_[id].loc());
}

bool Analysis::is_inside(Id inner, Id control) const {
  for (Id at = owner_[inner]; at != kNone; at = owner_[at])
    if (at == control) return true;
  return false;
}

// ---- Survey of the kernel

void Analysis::group_arrays() {
  const std::vector<std::uint32_t>& groups = options_.groups;
  for (std::size_t k = 0; k < arrays_.size(); ++k) {
    arrays_[k].group = groups.empty() ? static_cast<std::uint32_t>(k) : groups[k];
    arrays_[k].overlaps = std::ranges::count(groups, arrays_[k].group) > 1;
    arrays_[k].gradient = module_.params[k].kind == Param::Kind::array && (options_.with_gradient >> k & 1) != 0;
  }
}

void Analysis::survey(RegionId region, Id owner) {
  for (Id id : module_.regions[region].insts) {
    const Inst& inst = module_[id];
    owner_[id] = owner;
    order_.push_back(id);
    if (is_memory(inst.op)) survey_memory(id);
    if (inst.op == Op::call) survey_call(id);
    if (inst.op == Op::result) results_[module_.arg(id, 0)].push_back(id);
    for (RegionId inner : inst.regions) {
      if (inner == kNone) continue;
      survey(inner, id);
      for (Id k : module_.regions[inner].insts) {
        for (auto [from, to] :
             {std::pair(&loaded_groups_[k], &loaded_groups_[id]), {&stored_groups_[k], &stored_groups_[id]}}) {
          for (std::uint32_t group : *from)
            if (std::ranges::find(*to, group) == to->end()) to->push_back(group);
        }
      }
    }
  }
}

void Analysis::survey_memory(Id id) {
  const Root at = root(module_.arg(id, 0));
  const Op op = module_[id].op;
  if (at.kind == Root::held) {
    if (op == Op::load) {
      held_reads_[id] = 1;
      // A replay reads an array as the launch has left it only if its function changes what the array's elements hold.
      held_changes_ = held_changes_ || is_found_after_launch(module_.arg(id, 0));
    } else {
      held_changes_ = true;
    }
  }
  if (at.kind != Root::array) return;
  ArrayUse& use = arrays_[at.param];
  use.narrow = use.narrow || module_[id].type == Type::f16;
  const std::vector<int> element = own_element(id);
  if (use.element.empty()) use.element = element;
  const bool own = !element.empty() && element == use.element;
  if (op == Op::load) loaded_groups_[id].push_back(use.group);
  if (op == Op::store) {
    use.stored = true;
    use.stores_own = use.stores_own && own;
    stored_groups_[id].push_back(use.group);
  }
  if (is_atomic(op)) use.atomic = true;
  use.own_element = use.own_element && own;
}

bool Analysis::is_found_after_launch(Id address) const {
  const Inst& inst = module_[address];
  if (inst.op == Op::add)
    return std::ranges::any_of(module_.args(address), [&](Id arg) { return is_found_after_launch(arg); });
  if (inst.op != Op::load || bits(inst.type) != 64) return false;
  const Id from = module_.arg(address, 0);
  const Root at = root(from);
  return at.kind == Root::after || (at.kind == Root::held && is_found_after_launch(from));
}

std::uint32_t Analysis::group_of(Id memory) const { return arrays_[root(module_.arg(memory, 0)).param].group; }

bool Analysis::stores_any(std::uint32_t group) const {
  return std::ranges::any_of(arrays_, [&](const ArrayUse& use) { return use.group == group && use.stored; });
}

Root Analysis::root(Id base) const {
  const Inst& inst = module_[base];
  if (inst.op == Op::kernel_array) return {Root::shared, static_cast<std::uint32_t>(inst.imm)};
  if (inst.op == Op::arg) {
    if (module_.report_offset != 0 && inst.imm == module_.report_offset) return {Root::report, 0};
    if (const Param* param = module_.array_of(base))
      return {Root::array, static_cast<std::uint32_t>(param - module_.params.data())};
    return {};
  }
  if (inst.op == Op::after_base) {
    const Root of = root(module_.arg(base, 0));
    return of.kind == Root::array ? Root{Root::after, of.param} : of;
  }
  // The address of a slice is an array's address plus a number of bytes.
  if (inst.op == Op::add) {
    for (Id arg : module_.args(base))
      if (const Root found = root(arg); found.kind != Root::held) return found;
  }
  return {};
}

// ---- Flow of gradients

bool Analysis::set(std::vector<char>& flags, Id id, bool value) {
  if (!value || flags[id]) return false;
  flags[id] = 1;
  return true;
}

bool Analysis::is_varying_load(Id id) const {
  if (module_[id].op != Op::load || !is_float(module_[id].type)) return false;
  const Root at = root(module_.arg(id, 0));
  // A number in an array that an element holds counts as varied, because it may have a gradient; check() refuses it.
  return at.kind == Root::held || ((at.kind == Root::array || at.kind == Root::after) && arrays_[at.param].gradient);
}

bool Analysis::is_gradient_store(Id id) const {
  const Inst& inst = module_[id];
  if ((inst.op != Op::store && !is_atomic(inst.op)) || !is_float(inst.type)) return false;
  const Root at = root(module_.arg(id, 0));
  return at.kind == Root::array && arrays_[at.param].gradient;
}

bool Analysis::is_extremum(Id id) const {
  const Op op = module_[id].op;
  return (op == Op::atomic_min || op == Op::atomic_max) && is_gradient_store(id);
}

std::vector<ExactSum> Analysis::exact_sums() const {
  std::vector<ExactSum> found;
  if (!options_.deterministic) return found;
  for (Id id : order_) {
    if (module_[id].op == Op::call && touches_gradients(id))
      refuse(id,
             fmt::format("the gradient function of func \"{}\" adds to the gradient of an array, in no order that a "
                         "deterministic tape could keep",
                         module_.functions[module_[id].imm]->function));
    if (module_[id].op != Op::load || !active(id)) continue;
    const ArrayUse& use = arrays_[root(module_.arg(id, 0)).param];
    if (use.own_element || stores_any(use.group)) continue;
    const ExactSum sum{root(module_.arg(id, 0)).param, module_[id].type};
    if (sum.type == Type::f16)
      refuse(id, fmt::format("{} holds float16 numbers, and a deterministic tape adds float32 and float64 ones",
                             module_.params[sum.of].name));
    const auto same = std::ranges::find(found, sum.of, &ExactSum::of);
    if (same == found.end())
      found.push_back(sum);
    else if (same->type != sum.type)
      refuse(id, fmt::format("{} holds real numbers of two types, and a deterministic tape adds those of one",
                             module_.params[sum.of].name));
  }
  return found;
}

std::vector<Extremum> Analysis::extrema() const {
  std::vector<Extremum> found;
  for (Id id : order_) {
    if (!is_extremum(id)) continue;
    const Extremum e{root(module_.arg(id, 0)).param, static_cast<std::uint32_t>(bytes(module_[id].type))};
    if (std::ranges::find(found, e) == found.end()) found.push_back(e);
  }
  return found;
}

bool Analysis::flow_varied(RegionId region) {
  bool changed = false;
  for (Id id : module_.regions[region].insts) {
    const Inst& inst = module_[id];
    bool varied = false;
    switch (inst.op) {
      case Op::load: varied = is_varying_load(id); break;
      case Op::result: {
        const Id source = module_.arg(id, 0);
        const Inst& from = module_[source];
        const auto k = static_cast<std::uint32_t>(inst.imm);
        if (!is_float(inst.type)) break;
        if (from.op == Op::load) varied = varied_[source];
        if (from.op == Op::call) varied = is_varied_call(source);
        if (from.op == Op::if_) varied = varied_[yielded(from.regions[0], k)] || varied_[yielded(from.regions[1], k)];
        if (from.op == Op::loop) varied = varied_[param(source, k)];
        break;
      }
      case Op::param: {
        const Id loop = owner_[id];
        const auto k = static_cast<std::uint32_t>(inst.imm);
        varied = is_float(inst.type) &&
                 (varied_[module_.arg(loop, static_cast<int>(k))] || varied_[yielded(module_[loop].regions[1], k)]);
        break;
      }
      default:
        if (is_atomic(inst.op) && is_float(inst.type)) {
          varied = is_gradient_store(id);
          break;
        }
        for (std::uint32_t k = 0; k < inst.num_args && !varied; ++k)
          varied = is_differentiable(module_, id, static_cast<int>(k)) && varied_[module_.arg(id, static_cast<int>(k))];
    }
    changed |= set(varied_, id, varied);
    for (RegionId inner : inst.regions)
      if (inner != kNone) changed |= flow_varied(inner);
  }
  return changed;
}

bool Analysis::flow_useful(RegionId region) {
  bool changed = false;
  const std::vector<Id>& insts = module_.regions[region].insts;
  const auto use = [&](Id id) { changed |= is_float(module_[id].type) && set(useful_, id, true); };
  for (std::size_t i = insts.size(); i-- > 0;) {
    const Id id = insts[i];
    const Inst& inst = module_[id];
    for (std::size_t r = inst.regions.size(); r-- > 0;)
      if (inst.regions[r] != kNone) changed |= flow_useful(inst.regions[r]);
    if (is_gradient_store(id) || (inst.op == Op::store && root(module_.arg(id, 0)).kind == Root::held)) {
      for (std::uint32_t k = 2; k < inst.num_args; ++k) use(module_.arg(id, static_cast<int>(k)));
    }
    if (inst.op == Op::call && is_useful_call(id)) {
      for (Id arg : module_.args(id)) use(arg);
    }
    if (!useful_[id]) continue;
    if (inst.op == Op::result) {
      const Id source = module_.arg(id, 0);
      const Inst& from = module_[source];
      const auto k = static_cast<std::uint32_t>(inst.imm);
      if (from.op == Op::load) use(source);
      if (from.op == Op::if_) use(yielded(from.regions[0], k)), use(yielded(from.regions[1], k));
      if (from.op == Op::loop) {
        use(param(source, k));
        use(module_.arg(source, static_cast<int>(k)));
        use(yielded(from.regions[1], k));
      }
    } else if (inst.op == Op::param) {
      const Id loop = owner_[id];
      const auto k = static_cast<std::uint32_t>(inst.imm);
      use(module_.arg(loop, static_cast<int>(k)));
      use(yielded(module_[loop].regions[1], k));
    } else {
      for (std::uint32_t k = 0; k < inst.num_args; ++k)
        if (is_differentiable(module_, id, static_cast<int>(k))) use(module_.arg(id, static_cast<int>(k)));
    }
  }
  return changed;
}

// ---- Refusals

bool Analysis::is_like(Id a, Id b) const {
  return module_[a].op == module_[b].op && module_[a].type == module_[b].type;
}

std::vector<GroupAccesses> Analysis::group_accesses() const {
  std::vector<GroupAccesses> uses(arrays_.size());
  for (Id id : order_) {
    const Inst& inst = module_[id];
    if (!is_memory(inst.op)) continue;
    const Root at = root(module_.arg(id, 0));
    if (at.kind != Root::array) continue;
    GroupAccesses& use = uses[arrays_[at.param].group];
    if (inst.op == Op::load) {
      if (use.load == kNone && is_float(inst.type) && active(id)) use.load = id;
    } else if (use.change == kNone) {
      use.change = id;
    } else if (use.other == kNone && !is_like(id, use.change)) {
      use.other = id;
    }
  }
  return uses;
}

void Analysis::check(RegionId region, const std::vector<GroupAccesses>& groups) {
  for (Id id : module_.regions[region].insts) {
    const Inst& inst = module_[id];
    if (inst.op == Op::barrier || inst.op == Op::fence || inst.op == Op::running_lanes || is_subgroup(inst.op))
      refuse(id, fmt::format("{} has no adjoint: threads that work together cannot be run backwards yet",
                             info(inst.op).name));
    if (is_memory(inst.op)) check_memory(id, groups);
    for (RegionId inner : inst.regions)
      if (inner != kNone) check(inner, groups);
  }
}

void Analysis::check_memory(Id id, const std::vector<GroupAccesses>& groups) {
  const Inst& inst = module_[id];
  const Root at = root(module_.arg(id, 0));
  if (at.kind == Root::report) return;
  if (at.kind == Root::after) {
    if (active(id))
      refuse(id,
             "a replay returns a number that it reads from an array, and with it the gradient: give the function a "
             "gradient of its own too, or detach() the number");
    if (inst.op != Op::load) refuse(id, "a replay writes to an array that its function has written to");
    return;
  }
  if (at.kind == Root::shared)
    refuse(id, module_.arrays[at.param].is_private
                   ? "an array of the thread's own has no adjoint; keep it in a func() with a gradient of its own"
                   : "memory that a workgroup shares has no adjoint");
  const bool value_varied = [&] {
    for (std::uint32_t k = 2; k < inst.num_args; ++k)
      if (varied_[module_.arg(id, static_cast<int>(k))]) return true;
    return false;
  }();
  if (at.kind == Root::held) {
    if (inst.op == Op::load && active(id))
      refuse(id,
             "a number is read from an array that an element of another array holds, or of which it depends on a "
             "condition which array it is: it has no gradient; pass the array as an argument, or detach() the number");
    if (inst.op != Op::load && value_varied)
      refuse(id, "a number with a gradient is written to an array that an element of another array holds");
    return;
  }
  const ArrayUse& use = arrays_[at.param];
  const std::string& name = module_.params[at.param].name;
  if (!is_atomic(inst.op) || !is_float(inst.type) || !use.gradient) return;
  if (active(id))
    refuse(id, fmt::format("the value that {} returns for {} is used, and has no gradient", info(inst.op).name, name));
  if (inst.op != Op::atomic_add && !is_extremum(id))
    refuse(id, fmt::format("{} of real numbers on {} has no adjoint", info(inst.op).name, name));
  const GroupAccesses& group = groups[use.group];
  const auto array_of = [&](Id memory) { return module_.params[root(module_.arg(memory, 0)).param].name; };
  const Id other = is_like(id, group.change) ? group.other : group.change;
  if (is_extremum(id) && other != kNone)
    refuse(other,
           fmt::format("{} is changed here and by {} in the same kernel: which of them an element was left by is "
                       "not known",
                       array_of(other), info(inst.op).name));
  if (group.load != kNone)
    refuse(group.load, fmt::format("{} is read here and changed by {} in the same kernel: what is read depends on the "
                                   "order of the threads, and has no gradient",
                                   array_of(group.load), info(inst.op).name));
}

// ---- Instructions with something to reverse

bool Analysis::find_reverses(RegionId region) {
  bool any = false;
  for (Id id : module_.regions[region].insts) {
    const Inst& inst = module_[id];
    bool here = active(id) || is_gradient_store(id) || (inst.op == Op::call && touches_gradients(id));
    for (RegionId inner : inst.regions)
      if (inner != kNone && find_reverses(inner)) here = true;
    for (Id result : results_[id]) here = here || active(result);
    reverses_[id] = here;
    any = any || here;
  }
  return any;
}

void Analysis::find_outer() {
  std::unordered_set<std::uint64_t> listed;  // control instruction and value
  const auto uses = [&](Id user, Id value) {
    if (!active(value) || is_global(module_[value].op)) return;
    // The value is from outside of every branch and loop between the user and the value's definition.
    for (Id at = owner_[user]; at != kNone && at != owner_[value]; at = owner_[at])
      if (listed.insert(std::uint64_t{at} << 32 | value).second) outer_[at].push_back(value);
  };
  for (Id id : order_) {
    const Inst& inst = module_[id];
    if (inst.op == Op::yield || inst.op == Op::store || inst.op == Op::call || is_atomic(inst.op)) {
      for (Id arg : module_.args(id)) uses(id, arg);
    } else {
      for (std::uint32_t k = 0; k < inst.num_args; ++k) {
        if (inst.op == Op::loop || is_differentiable(module_, id, static_cast<int>(k)))
          uses(id, module_.arg(id, static_cast<int>(k)));
      }
    }
  }
}

}  // namespace weft::ir

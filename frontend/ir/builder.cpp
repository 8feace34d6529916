// The builder's regions, the sharing of values, and the appending of instructions. Algebra is in simplify.cpp.
#include "builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "../support/error.h"
#include "evaluate.h"

namespace weft::ir {

namespace {

std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
  return h * 0xff51afd7ed558ccdull;
}

bool commutes(Op op, Type type) {
  switch (op) {
    // Real operands keep their order, because the gradient goes to the first of equal ones.
    case Op::min:
    case Op::max: return !is_float(type);
    case Op::add:
    case Op::mul:
    case Op::mul_hi:
    case Op::eq:
    case Op::ne:
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor: return true;
    default: return false;
  }
}

// The most pure operations for which a short-circuit operand is evaluated without a branch.
constexpr std::size_t kFlatOperations = 3;

}  // namespace

Builder::Builder(Module& module, std::size_t max_depth) : module_(module), max_depth_(max_depth) {
  if (!module.regions[0].insts.empty()) internal_error("a builder starts on an empty module");
  states_.resize(module.regions.size());
}

// ---- Making instructions

Id Builder::make(Inst inst, std::span<const Id> args) {
  if (module_.place) inst.set_loc(module_.place);
  home_.push_back(kNone);
  return module_.add(inst, args);
}

void Builder::push(RegionId region, Id id) {
  home_[id] = region;
  states_[region].last_if = module_[id].op == Op::if_ ? id : kNone;
  if (!states_[region].ended) module_.regions[region].insts.push_back(id);
}

void Builder::expect_visible(std::span<const Id> args, Loc loc) const {
  for (Id a : args)
    if (!is_visible(a)) fail(module_, loc, "a value is used outside the block in which it was computed");
}

Id Builder::append(const Inst& inst, std::span<const Id> args) {
  expect_visible(args, inst.loc());
  Id id = make(inst, args);
  push(region(), id);
  return id;
}

Id Builder::share(const Inst& inst, std::span<const Id> args) {
  std::uint64_t h = mix(mix(std::uint64_t(inst.op) << 8 | std::uint64_t(inst.type), inst.imm), args.size());
  for (Id a : args) h = mix(h, a);
  Id& latest = shared_.try_emplace(h, kNone).first->second;
  for (Id* link = &latest; *link != kNone;) {
    const Id other = *link;
    if (!is_visible(other)) {
      // The value of a closed block leaves the list, so that blocks side by side do not search each other's values.
      // If the block is opened again, for an Else or ElseIf, only sharing is lost.
      *link = next_shared_[other];
      continue;
    }
    const Inst& known = module_[other];
    if (known.op == inst.op && known.type == inst.type && known.imm == inst.imm &&
        std::ranges::equal(module_.args(other), args))
      return other;
    link = &next_shared_[other];
  }
  const bool everywhere = args.empty();
  const Id id = everywhere ? make(inst, args) : append(inst, args);
  next_shared_.resize(module_.insts.size(), kNone);
  next_shared_[id] = std::exchange(latest, id);
  return id;
}

Id Builder::constant(Type type, std::uint64_t bits) { return source(Op::constant, type, bits & mask(type)); }

Id Builder::constant_float(Type type, double value) { return constant(type, from_double(type, value)); }
Id Builder::constant_int(Type type, std::int64_t value) {
  return is_float(type) ? constant_float(type, double(value)) : constant(type, std::uint64_t(value));
}

Id Builder::arg(Type type, std::uint32_t byte_offset) { return source(Op::arg, type, byte_offset); }

Id Builder::source(Op op, Type type, std::uint64_t imm, Loc loc) { return share(instruction(op, type, imm, loc), {}); }

Id Builder::pure(Op op, Type type, std::initializer_list<Id> args, Loc loc) {
  return pure(op, type, std::span<const Id>(args.begin(), args.size()), loc);
}

Id Builder::pure(Op op, Type type, std::span<const Id> args, Loc loc) {
  return rounded(rounding_, op, type, args, loc);
}

/// \param rounding  the Inst::imm of a sum, difference or product
Id Builder::rounded(std::uint64_t rounding, Op op, Type type, std::span<const Id> given, Loc loc) {
  Id args[4];
  if (given.size() > 4) internal_error("a pure operation has at most four operands");
  std::copy(given.begin(), given.end(), args);
  std::span<const Id> ids(args, given.size());
  expect_visible(ids, loc);
  // Operands are put in order, constants to the right and others by number, so that expressions which were written in
  // another order are found equal. Sums with products stay as they are written: contract() fuses the first of two, and
  // other code that has computed the second one earlier (to print it) must not change the result.
  const auto is_product = [&](Id id) { return module_[id].op == Op::mul && is_contractible(Op::mul, type); };
  if (commutes(op, type) && !(op == Op::add && (is_product(args[0]) || is_product(args[1])))) {
    bool left = module_[args[0]].op == Op::constant, right = module_[args[1]].op == Op::constant;
    if (left > right || (left == right && args[0] > args[1])) std::swap(args[0], args[1]);
  }
  if (Id simpler = simplify(op, type, ids, loc); simpler != kNone) return simpler;
  return share(instruction(op, type, is_contractible(op, type) ? rounding : 0, loc), ids);
}

namespace {
Inst memory(Op op, Type type, int width, const MemoryRef& ref, Loc loc) {
  Inst inst = instruction(op, type, 0, loc);
  inst.width = static_cast<std::uint8_t>(width);
  inst.align = static_cast<std::uint8_t>(ref.align);
  inst.stride = ref.stride;
  inst.offset = ref.offset;
  return inst;
}
}  // namespace

Id Builder::load(Type type, int width, const MemoryRef& ref, Loc loc) {
  const Id args[] = {ref.base, ref.index};
  return append(memory(Op::load, type, width, ref, loc), args);
}

void Builder::store(Type type, std::span<const Id> values, const MemoryRef& ref, Loc loc) {
  Id args[6] = {ref.base, ref.index};
  std::copy(values.begin(), values.end(), args + 2);
  ++effects_;
  append(memory(Op::store, type, int(values.size()), ref, loc), {args, values.size() + 2});
}

Id Builder::atomic(Op op, Type type, std::span<const Id> values, const MemoryRef& ref, Loc loc) {
  if (!is_atomic(op) || values.size() > 2) internal_error("not an atomic operation");
  Id args[4] = {ref.base, ref.index};
  std::copy(values.begin(), values.end(), args + 2);
  ++effects_;
  return append(memory(op, type, 1, ref, loc), {args, values.size() + 2});
}

void Builder::gather(Type type, Id value, const MemoryRef& ref, Loc loc) {
  const Id args[] = {ref.base, ref.index, value};
  Inst inst = memory(Op::atomic_add, type, 1, ref, loc);
  inst.imm = kGather;
  ++effects_;
  append(inst, args);
}

Id Builder::trace_ray(bool any, std::span<const Id> operands, Loc loc) {
  Inst inst = instruction(Op::trace_ray, Type::u32, any, loc);
  inst.width = 4;
  return append(inst, operands);
}

// ---- Threads together

void Builder::barrier(Loc loc) { synchronization(Op::barrier, loc); }

void Builder::subgroup_barrier(Loc loc) { synchronization(Op::subgroup_barrier, loc); }

void Builder::fence(Loc loc) { synchronization(Op::fence, loc); }

Id Builder::running_lanes(Loc loc) { return append(instruction(Op::running_lanes, Type::u32, 0, loc), {}); }

void Builder::synchronization(Op op, Loc loc) {
  ++effects_;
  append(instruction(op, Type::none, 0, loc), {});
}

Id Builder::subgroup(Op op, Type type, std::span<const Id> args, std::uint64_t imm, Loc loc) {
  if (!is_subgroup(op)) internal_error("not an operation of subgroups");
  return append(instruction(op, type, imm, loc), args);
}

Id Builder::input(Type type, Loc loc) {
  if (depth() != 1 || module_.regions[0].insts.size() != module_.num_inputs) internal_error("an input comes too late");
  return append(instruction(Op::param, type, module_.num_inputs++, loc), {});
}

Id Builder::call(std::uint32_t function, std::span<const Id> args, Loc loc) {
  ++effects_;
  return append(instruction(Op::call, Type::none, function, loc), args);
}

Id Builder::result(Id inst, std::uint32_t k, Type type) {
  return share(instruction(Op::result, type, k, module_[inst].loc()), {&inst, 1});
}

// ---- Locals

std::uint32_t Builder::local(Type type) {
  module_.locals.push_back({type});
  return static_cast<std::uint32_t>(module_.locals.size() - 1);
}

Id Builder::local_get(std::uint32_t local, Loc loc) {
  return append(instruction(Op::local_get, module_.locals[local].type, local, loc), {});
}

void Builder::local_set(std::uint32_t local, Id value, Loc loc) { local_set_in(region(), local, value, loc); }

void Builder::local_set_in(RegionId where, std::uint32_t local, Id value, Loc loc) {
  where = resolve(where);
  const Id id = make(instruction(Op::local_set, Type::none, local, loc), {&value, 1});
  std::vector<Id>& insts = module_.regions[where].insts;
  if (states_[where].is_condition && !insts.empty() && module_[insts.back()].op == Op::yield) {
    // A variable of a loop's condition becomes a local when the body assigns to it. Its first value is set before the
    // condition yields.
    home_[id] = where;
    insts.insert(insts.end() - 1, id);
    return;
  }
  push(where, id);
}

// ---- Regions

RegionId Builder::open_region(RegionId parent) {
  if (stack_.size() > max_depth_) refuse_depth();
  RegionId r = static_cast<RegionId>(module_.regions.size());
  module_.regions.push_back({{}, parent});
  states_.emplace_back();
  stack_.push_back(r);
  return r;
}

// Refuses a deeper nesting. The usual cause is a function that calls itself under a traced condition: it is traced
// without end, because a trace takes both sides of a branch.
void Builder::refuse_depth() const {
  const auto alternatives = std::ranges::count_if(stack_, [&](RegionId r) { return states_[r].is_chain; });
  const Loc loc = module_[open_.back()].loc();
  if (max_depth_ != kMaxTracedDepth)
    fail(module_, loc,
         fmt::format("more than {} blocks are nested, where what follows a Return, Break or Continue counts as one",
                     max_depth_));
  if (std::size_t(alternatives) > max_depth_ / 2)
    fail(module_, loc, fmt::format("an If has more than {} alternatives", max_depth_));
  fail(
      module_, loc,
      fmt::format("more than {} blocks are nested: does a function call itself under a traced condition?", max_depth_));
}

void Builder::close_region() { stack_.pop_back(); }

RegionId Builder::resolve(RegionId region) const {
  while (states_[region].merged_into != kNone) region = states_[region].merged_into;
  return region;
}

bool Builder::is_open(RegionId region) const {
  return std::find(stack_.rbegin(), stack_.rend(), resolve(region)) != stack_.rend();
}

bool Builder::loop_since(RegionId region) const {
  region = resolve(region);
  for (auto it = stack_.rbegin(); it != stack_.rend() && *it != region; ++it)
    if (states_[*it].is_condition) return true;
  return false;
}

bool Builder::is_visible(Id id) const { return home_[id] == kNone || is_open(home_[id]); }

Id Builder::open_control(const Inst& inst, std::span<const Id> args) {
  const Id id = make(inst, args);
  home_[id] = region();
  open_.push_back(id);
  module_.insts[id].regions[0] = open_region(region());
  return id;
}

void Builder::open_if(Id condition, Loc loc) {
  if (!is_visible(condition)) fail(module_, loc, "a condition is used outside the block in which it was computed");
  const Id id = open_control(instruction(Op::if_, Type::none, 0, loc), {&condition, 1});
  if (known_side(id) == 1) mark_dead();
}

void Builder::open_else() {
  Id id = open_.back();
  close_region();
  module_.insts[id].regions[1] = open_region(region());
  if (known_side(id) == 0) mark_dead();
}

bool Builder::in_dead_block() const {
  return std::ranges::any_of(
      stack_, [&](RegionId r) { return states_[r].is_dead || (states_[r].ended && !states_[r].is_condition); });
}

int Builder::known_side(Id branch) const {
  const Inst& condition = module_[module_.arg(branch, 0)];
  if (condition.op != Op::constant) return -1;
  return condition.imm != 0 ? 0 : 1;
}

Id Builder::close_if() {
  Id id = open_.back();
  open_.pop_back();
  close_region();
  // No thread comes to the code after If (k == 0) { Continue(); } if k is a host number that is 0.
  if (const int side = known_side(id);
      side >= 0 && module_[id].regions[side] != kNone && states_[module_[id].regions[side]].ended)
    mark_dead();
  push(region(), id);
  return id;
}

bool Builder::reopen_else() {
  Id last = states_[region()].last_if;
  if (last == kNone || module_[last].regions[1] != kNone) return false;
  if (!states_[region()].ended) module_.regions[region()].insts.pop_back();
  open_.push_back(last);
  module_.insts[last].regions[1] = open_region(region());
  if (known_side(last) == 0) mark_dead();
  return true;
}

bool Builder::reopen_chain() {
  Id last = states_[region()].last_if;
  if (last == kNone || module_[last].regions[1] == kNone || !states_[module_[last].regions[1]].is_chain) return false;
  if (!states_[region()].ended) module_.regions[region()].insts.pop_back();
  open_.push_back(last);
  stack_.push_back(module_[last].regions[1]);
  return true;
}

void Builder::open_loop(std::span<const Id> initial, Loc loc) {
  for (Id v : initial)
    if (!is_visible(v)) internal_error("a loop starts from a value that is not visible");
  const Id id = open_control(instruction(Op::loop, Type::none, 0, loc), initial);
  states_[region()].is_condition = true;
  for (std::uint32_t k = 0; k < initial.size(); ++k)
    append(instruction(Op::param, module_[module_.arg(id, int(k))].type, k), {});
}

Id Builder::loop_param(std::uint32_t k) { return module_.regions[module_[open_.back()].regions[0]].insts[k]; }

void Builder::loop_body(Id condition) {
  Id id = open_.back();
  yield({&condition, 1});
  // The condition region stays on the stack, because its values are visible in body and step.
  module_.insts[id].regions[1] = open_region(module_.regions[region()].parent);
}

void Builder::loop_step() {
  Id id = open_.back();
  close_region();
  module_.insts[id].regions[2] = open_region(module_.regions[region()].parent);
}

Id Builder::close_loop() {
  Id id = open_.back();
  open_.pop_back();
  close_region();
  close_region();
  push(region(), id);
  return id;
}

bool Builder::in_condition() const {
  return std::ranges::any_of(open_,
                             [&](Id id) { return module_[id].op == Op::loop && module_[id].regions[1] == kNone; });
}

void Builder::leave(Op op, Loc loc, std::uint64_t imm) {
  append(instruction(op, Type::none, imm, loc), {});
  states_[region()].ended = true;
}

void Builder::yield(std::span<const Id> values) {
  append(instruction(Op::yield), values);
  states_[region()].ended = true;
}

Id Builder::copy(const Inst& inst, std::span<const Id> args) {
  switch (inst.op) {
    case Op::result: return result(args[0], static_cast<std::uint32_t>(inst.imm), inst.type);
    case Op::yield: yield(args); return kNone;
    default: break;
  }
  const Effect effect = info(inst.op).effect;
  if (effect == Effect::pure) return rounded(inst.imm, inst.op, inst.type, args, inst.loc());
  if (effect == Effect::control) internal_error("a pass copies what it should have rebuilt", inst.loc());
  return append(inst, args);
}

Id Builder::close_short_circuit(Id condition, Id value, bool or_else, Loc loc) {
  RegionId inner = region(), outer = stack_[stack_.size() - 2];
  const std::vector<Id>& insts = module_.regions[inner].insts;
  bool flat = !states_[inner].ended && insts.size() <= kFlatOperations && std::ranges::all_of(insts, [&](Id id) {
    return info(module_[id].op).effect == Effect::pure || module_[id].op == Op::local_get;
  });
  if (flat) {
    open_.pop_back();
    close_region();
    states_[inner].merged_into = outer;
    for (Id id : std::vector<Id>(insts)) push(outer, id);
    module_.regions[inner].insts.clear();
    return pure(or_else ? Op::bit_or : Op::bit_and, Type::b1, {condition, value}, loc);
  }
  std::uint32_t answer = local(Type::b1);
  local_set_in(outer, answer, constant(Type::b1, or_else), loc);
  local_set(answer, value, loc);
  close_if();
  return local_get(answer, loc);
}

}  // namespace weft::ir

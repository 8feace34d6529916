// The check of the rules that every module keeps, one by one.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "../support/error.h"
#include "module.h"

namespace weft::ir {
namespace {

/// Walks the tree of regions once, with the set of values that are visible at each place.
class Verifier {
 public:
  /// \param functions  those that the module may call: for a function, the ones before it in its kernel's table
  Verifier(const Module& module, std::span<const std::shared_ptr<const Module>> functions)
      : module_(module),
        functions_(functions),
        state_(module.insts.size(), State::unseen),
        region_seen_(module.regions.size(), 0) {}

  std::string run() {
    for (std::size_t i = 0; i < module_.functions.size() && ok(); ++i) {
      const Module& function = *module_.functions[i];
      if (!function.functions.empty()) return fmt::format("func {} has functions of its own", i);
      violation_ = Verifier(function, functions_.first(i)).run();
      if (!ok()) violation_ = fmt::format("func {}: ", i) + violation_;
    }
    for (std::size_t i = 0; i < module_.functions.size() && ok(); ++i) {
      violation_ = broken_derivatives(i);
      if (!ok()) violation_ = fmt::format("func {}: ", i) + violation_;
    }
    if (ok() && module_.function.empty()) {
      if (module_.derivatives.any()) broken("a kernel has derivatives of its own");
      if (names_gradients(module_)) broken("a kernel names gradients");
    }
    if (ok()) header();
    if (!ok()) return std::move(violation_);
    Context context;
    const bool is_function = !module_.function.empty();
    context.return_ok = !is_function;
    region(0, kNone, context, is_function && !module_.outputs().empty() ? Ending::values : Ending::none);
    if (list(0).size() < module_.num_inputs) broken("an input is missing");
    return std::move(violation_);
  }

 private:
  enum class State : std::uint8_t { unseen, visible, out_of_sight };
  /// The end that a region must have: nothing special, a condition's yield, or a yield of results.
  enum class Ending : std::uint8_t { none, condition, values };
  /// The surroundings of a region, which decide what exits it may hold.
  struct Context {
    bool in_body = false;   ///< in the body of a loop: break and continue have a target
    bool break_ok = true;   ///< that loop carries no values, and nothing with results lies between here and it
    bool return_ok = true;  ///< nothing with results and no condition or step region lies between here and the body
  };

  bool ok() const { return violation_.empty(); }

  void broken(const std::string& what) {
    if (ok()) violation_ = what;
  }

  template <typename... Args>
  void broken(Id id, fmt::format_string<Args...> text, Args&&... args) {
    if (!ok()) return;
    const Inst& inst = module_[id];
    const char* name = inst.op < Op::count ? info(inst.op).name : "?";
    std::string place = inst.file != nullptr ? fmt::format(", {}:{}", inst.file, inst.line) : std::string();
    violation_ =
        fmt::format("instruction {} ({}{}): ", id, name, place) + fmt::format(text, std::forward<Args>(args)...);
  }

  // ---- Derivatives that functions have of their own

  using Types = std::vector<Type>;

  static Types input_types(const Module& function) {
    Types types;
    for (std::uint32_t k = 0; k < function.num_inputs; ++k)
      types.push_back(function[function.regions[0].insts[k]].type);
    return types;
  }
  static Types output_types(const Module& function) {
    Types types;
    for (Id id : function.outputs()) types.push_back(function[id].type);
    return types;
  }
  static Types real(Types types) {
    std::erase_if(types, [](Type type) { return !is_float(type); });
    return types;
  }

  static bool names_gradients(const Module& body) {
    return std::ranges::any_of(body.regions, [&](const Region& region) {
      return std::ranges::any_of(region.insts,
                                 [&](Id id) { return id < body.insts.size() && body[id].op == Op::gradient_base; });
    });
  }

  /// Returns whether function `from` is function i or reaches it through calls. The replay of a function that is called
  /// counts too, because the adjoint calls it in place of the function.
  bool reaches(std::uint64_t from, std::size_t i, std::vector<char>& seen) const {
    if (from == i) return true;
    if (std::exchange(seen[from], 1)) return false;
    const Module& body = *module_.functions[from];
    if (body.derivatives.replay != kNone && reaches(body.derivatives.replay, i, seen)) return true;
    return std::ranges::any_of(body.insts, [&](const Inst& inst) {
      return inst.op == Op::call && inst.imm < module_.functions.size() && reaches(inst.imm, i, seen);
    });
  }

  /// The first broken rule about the derivatives of function i, or empty. All functions are right by themselves.
  std::string broken_derivatives(std::size_t i) const {
    const Module& function = *module_.functions[i];
    const Derivatives& own = function.derivatives;
    for (std::uint32_t number : {own.gradient, own.replay}) {
      if (number == kNone) continue;
      if (number >= module_.functions.size() || number == i) return "its derivative is no other function";
      if (module_.functions[number]->derivatives.any()) return "its derivative has derivatives";
    }
    const Types inputs = input_types(function), outputs = output_types(function);
    if (own.gradient != kNone) {
      const Module& gradient = *module_.functions[own.gradient];
      Types wanted = inputs;
      const Types given = real(outputs);
      wanted.insert(wanted.end(), given.begin(), given.end());
      if (input_types(gradient) != wanted) return "its gradient takes other inputs";
      if (output_types(gradient) != real(inputs)) return "its gradient returns other outputs";
    }
    if (own.replay != kNone) {
      const Module& replay = *module_.functions[own.replay];
      if (input_types(replay) != inputs || output_types(replay) != outputs) return "its replay has another signature";
      std::vector<char> seen(module_.functions.size(), 0);
      if (reaches(own.replay, i, seen)) return "its replay calls it";
    }
    const bool is_gradient =
        std::ranges::any_of(module_.functions, [&](const auto& f) { return f->derivatives.gradient == i; });
    return !is_gradient && names_gradients(function) ? "it names gradients and is no gradient function" : "";
  }

  // ---- The module as a whole

  void header() {
    if (module_.regions.empty()) return broken("there is no body");
    if (module_.regions[0].parent != kNone) return broken("the body has a parent");
    if (module_.args_bytes < 4) return broken("the argument block has no room for the number of threads");
    if (module_.block == 0) return broken("a workgroup has no threads");
    if (module_.num_inputs > 0 && module_.function.empty()) return broken("a kernel has inputs");
    if (module_.tid_rank > 4) return broken("tid has more than four dimensions");
    for (const Param& param : module_.params) {
      if (std::uint64_t{param.offset} + param.bytes > module_.args_bytes || param.offset < 4)
        return broken(fmt::format("parameter {} lies outside the argument block", param.name));
      if (param.kind == Param::Kind::array && (param.offset % 8 != 0 || param.ndim < 1 || param.ndim > 4))
        return broken(fmt::format("parameter {} is no well-formed array", param.name));
    }
    if (module_.report_offset % 8 != 0 ||
        (module_.report_offset != 0 && module_.report_offset + report::kArgumentBytes > module_.args_bytes))
      return broken("the address of its reports lies outside the argument block");
    for (const KernelArray& array : module_.arrays) {
      if (!is_type(array.type) || !is_numeric(array.type) || array.count == 0)
        return broken("an array of the kernel has no type or no elements");
      if (array.words && bits(array.type) >= 32) return broken("an array of words in words");
    }
    for (const Local& local : module_.locals) {
      if (!is_type(local.type) || local.type == Type::none) return broken("a local has no type");
    }
    // Instructions that no region holds are unused and go unchecked, except those that are visible everywhere.
    for (Id id = 0; id < module_.insts.size() && ok(); ++id) {
      const Inst& inst = module_[id];
      if (inst.op >= Op::count || !is_type(inst.type)) return broken(fmt::format("instruction {} is no operation", id));
      if (std::uint64_t{inst.first_arg} + inst.num_args > module_.operands.size())
        return broken(id, "its operands lie outside the module");
      if (is_global(inst.op)) source(id);
    }
  }

  static bool is_type(Type type) { return static_cast<int>(type) < kTypeCount; }

  void source(Id id) {
    const Inst& inst = module_[id];
    shape(id);
    if (inst.type == Type::none) return broken(id, "it has no type");
    if (inst.op == Op::constant && (inst.imm & ~mask(inst.type)) != 0)
      broken(id, "bits above the width of {} are set", name(inst.type));
    if (inst.op == Op::kernel_array) {
      if (inst.type != Type::u64) broken(id, "an address is u64");
      if (inst.imm >= module_.arrays.size()) broken(id, "there is no array {} of the kernel", inst.imm);
    } else if (inst.op != Op::constant && inst.op != Op::arg && inst.type != Type::u32) {
      broken(id, "the thread's number is u32");
    }
    if (inst.op == Op::arg) {
      const auto size = static_cast<std::uint64_t>(bytes(inst.type));
      if (inst.imm > module_.args_bytes || inst.imm + size > module_.args_bytes)
        broken(id, "byte {} lies outside the argument block", inst.imm);
      if (inst.imm % size != 0) broken(id, "byte {} is not aligned for {}", inst.imm, name(inst.type));
    }
  }

  // ---- Regions

  const std::vector<Id>& list(RegionId id) const { return module_.regions[id].insts; }

  bool ends_with(RegionId id, Op op) const {
    return id < module_.regions.size() && !list(id).empty() && list(id).back() < module_.insts.size() &&
           module_[list(id).back()].op == op;
  }

  void leave_scope(std::size_t mark) {
    for (std::size_t i = mark; i < scope_.size(); ++i) state_[scope_[i]] = State::out_of_sight;
    scope_.resize(mark);
  }

  /// Checks a region and leaves its values visible; callers end their scope.
  void region(RegionId id, RegionId parent, const Context& context, Ending ending, Id owner = kNone) {
    if (id >= module_.regions.size()) return broken(owner, "it has no such region");
    if (region_seen_[id]++) return broken(fmt::format("region {} has two owners", id));
    if (module_.regions[id].parent != parent) return broken(fmt::format("region {} names another parent", id));
    const std::vector<Id>& insts = list(id);
    for (std::size_t i = 0; i < insts.size() && ok(); ++i) {
      const Id inst = insts[i];
      if (inst >= module_.insts.size()) return broken(fmt::format("region {} holds what is no instruction", id));
      if (state_[inst] != State::unseen) return broken(inst, "it is a member of two regions");
      const Op op = module_[inst].op;
      if (is_global(op)) return broken(inst, "it is visible everywhere and yet a member of a region");
      const bool exit = op == Op::break_ || op == Op::continue_ || op == Op::return_;
      if ((exit || op == Op::yield) && i + 1 != insts.size()) return broken(inst, "something follows it");
      if (op == Op::yield && ending == Ending::none) return broken(inst, "this region has no results");
      if (op == Op::param) {
        const bool input = id == 0 && i < module_.num_inputs;
        if (!input && (owner == kNone || ending != Ending::condition || i >= module_[owner].num_args))
          return broken(inst, "parameters stand first in the condition region, one per carried value");
        if (!input) carried(inst, owner, static_cast<std::uint32_t>(i));
        if (input && module_[inst].imm != i) return broken(inst, "inputs are numbered in order");
      } else if (id == 0 && i < module_.num_inputs) {
        return broken(inst, "an input is missing before it");
      } else if (ending == Ending::condition && owner != kNone && i < module_[owner].num_args) {
        return broken(inst, "a carried value's parameter is missing before it");
      }
      if (exit) leave(inst, context);
      instruction(inst, id, context);
      state_[inst] = State::visible;
      scope_.push_back(inst);
    }
    if (!ok() || ending == Ending::none) return;
    if (!ends_with(id, Op::yield)) return broken(owner, "region {} does not end with the values that it owes", id);
    if (ending == Ending::condition) {
      const auto values = module_.args(insts.back());
      if (values.size() != 1 || module_[values[0]].type != Type::b1)
        return broken(insts.back(), "a condition region yields one boolean");
      if (insts.size() <= module_[owner].num_args) broken(owner, "a carried value's parameter is missing");
    }
  }

  void leave(Id id, const Context& context) {
    if (module_[id].op == Op::return_) {
      if (!context.return_ok) broken(id, "it leaves what has results, or a loop's condition or step region");
    } else {
      if (!context.in_body) return broken(id, "it is in no loop's body");
      if (!context.break_ok) broken(id, "it leaves what has results");
    }
  }

  void carried(Id id, Id loop, std::uint32_t k) {
    if (module_[id].imm != k) return broken(id, "parameters are numbered in order");
    if (module_[id].type != module_[module_.arg(loop, static_cast<int>(k))].type)
      broken(id, "its type differs from the initial value's");
  }

  // ---- Instructions

  Type operand_type(Id id, int k) const { return module_[module_.arg(id, k)].type; }

  /// Checks the rules of all instructions: number of operands, and fields that only some operations have.
  void shape(Id id) {
    const Inst& inst = module_[id];
    const OpInfo& row = info(inst.op);
    if (row.arity >= 0 && inst.num_args != static_cast<std::uint32_t>(row.arity))
      return broken(id, "it has {} operands, not {}", inst.num_args, row.arity);
    if (!is_memory(inst.op) &&
        ((inst.width != 1 && inst.op != Op::trace_ray) || inst.align != 0 || inst.stride != 0 || inst.offset != 0))
      return broken(id, "it has a memory operand");
    if (inst.op != Op::if_ && inst.op != Op::loop) {
      for (RegionId r : inst.regions) {
        if (r != kNone) return broken(id, "it has a region");
      }
    }
    const bool typed = row.result != ResultRule::none || inst.op == Op::store;
    if (typed && inst.type == Type::none) return broken(id, "it has no type");
    if (!typed && inst.type != Type::none) broken(id, "it has a type");
  }

  /// Checks that every operand is a visible scalar, and that only `result` reads from instructions with several.
  void operands(Id id) {
    const Inst& inst = module_[id];
    for (std::uint32_t k = 0; k < inst.num_args; ++k) {
      const Id value = module_.arg(id, static_cast<int>(k));
      if (value >= module_.insts.size()) return broken(id, "operand {} does not exist", k);
      const Inst& operand = module_[value];
      if (!is_global(operand.op) && state_[value] != State::visible)
        return broken(id, "operand {} (instruction {}) is not visible here", k, value);
      const bool parts = operand.op == Op::if_ || operand.op == Op::loop || operand.op == Op::call ||
                         is_wide(operand.op, operand.width);
      if (inst.op == Op::result ? !parts : parts || operand.type == Type::none || operand.op == Op::store)
        return broken(id, "operand {} (instruction {}) is no {}", k, value,
                      inst.op == Op::result ? "operation with several results" : "scalar value");
      if (operand.op == Op::kernel_array && (k != 0 || !is_memory(inst.op)))
        return broken(id, "operand {} is an array of the kernel: those are named by memory operations only", k);
    }
  }

  void instruction(Id id, RegionId home, const Context& context) {
    const Inst& inst = module_[id];
    shape(id);
    if (ok()) operands(id);
    if (!ok()) return;
    switch (inst.op) {
      case Op::constant:
      case Op::arg:
      case Op::thread_id:
      case Op::local_id:
      case Op::workgroup_id:
      case Op::subgroup_size:
      case Op::subgroup_lane:
      case Op::subgroup_id:
      case Op::kernel_array: internal_error("sources of values belong to no region");
      case Op::select: return select(id);
      case Op::convert: return;
      case Op::bitcast: return bitcast(id);
      case Op::gradient_base:
      case Op::after_base: return state(id);
      case Op::load:
      case Op::store:
      case Op::atomic_add:
      case Op::atomic_min:
      case Op::atomic_max:
      case Op::atomic_and:
      case Op::atomic_or:
      case Op::atomic_xor:
      case Op::atomic_exchange:
      case Op::atomic_cas: return memory(id);
      case Op::trace_ray: return trace_ray(id);
      case Op::barrier:
      case Op::subgroup_barrier:
      case Op::fence: return;
      case Op::subgroup_reduce:
      case Op::subgroup_inclusive:
      case Op::subgroup_exclusive: return reduction(id);
      case Op::subgroup_broadcast:
      case Op::subgroup_shuffle: return exchange(id);
      case Op::subgroup_ballot: return ballot(id);
      case Op::running_lanes:
        if (inst.type != Type::u32) broken(id, "its type is not u32");
        return;
      case Op::local_get:
      case Op::local_set: return local(id);
      case Op::if_: return branch(id, home, context);
      case Op::loop: return loop(id, home, context);
      case Op::call: return call(id);
      case Op::result: return result(id);
      case Op::yield:
        if (inst.num_args == 0) broken(id, "it has no values");
        return;
      case Op::break_:
      case Op::continue_:
      case Op::return_:
      case Op::param: return;  // region() checks them by their place
      default: return generic(id);
    }
  }

  static bool in_class(Type type, OperandClass wanted) {
    switch (wanted) {
      case OperandClass::any: return true;
      case OperandClass::numeric: return is_numeric(type);
      case OperandClass::integer: return is_int(type);
      case OperandClass::real: return is_float(type);
      case OperandClass::logical: return is_bool(type) || is_int(type);
      case OperandClass::boolean: return is_bool(type);
      case OperandClass::special: break;
    }
    return false;
  }

  void generic(Id id) {
    const Inst& inst = module_[id];
    const OpInfo& row = info(inst.op);
    const Type type = operand_type(id, 0);
    for (std::uint32_t k = 0; k < inst.num_args; ++k) {
      const Type other = operand_type(id, static_cast<int>(k));
      if (other != type) return broken(id, "operand {} is {}, operand 0 is {}", k, name(other), name(type));
    }
    if (!in_class(type, row.operands)) return broken(id, "it does not take operands of type {}", name(type));
    if (inst.imm != 0 && !is_contractible(inst.op, type)) return broken(id, "it is rounded in one way only");
    if (inst.op == Op::mul_hi && bits(type) != 32) return broken(id, "it is for 32-bit integers, not {}", name(type));
    const Type wanted = row.result == ResultRule::boolean ? Type::b1
                        : row.result == ResultRule::same  ? type
                                                          : inst.type;
    if (inst.type != wanted) broken(id, "its result is {}, not {}", name(wanted), name(inst.type));
  }

  void select(Id id) {
    const Type type = module_[id].type;
    if (operand_type(id, 0) != Type::b1) return broken(id, "its condition is {}", name(operand_type(id, 0)));
    if (operand_type(id, 1) != type || operand_type(id, 2) != type)
      broken(id, "it chooses between {} and {} for {}", name(operand_type(id, 1)), name(operand_type(id, 2)),
             name(type));
  }

  void bitcast(Id id) {
    const Type from = operand_type(id, 0), to = module_[id].type;
    if (bits(from) != bits(to) || is_bool(from))
      broken(id, "{} and {} differ in width or are boolean", name(from), name(to));
  }

  void state(Id id) {
    if (operand_type(id, 0) != Type::u64 || module_[id].type != Type::u64) broken(id, "an address is u64");
  }

  void memory(Id id) {
    const Inst& inst = module_[id];
    if (inst.width < 1 || inst.width > 4) return broken(id, "it is {} scalars wide", inst.width);
    if (is_atomic(inst.op)) {
      if (inst.width != 1) return broken(id, "an atomic operation is one scalar wide");
      const Op step = combination(inst.op);
      if (step != Op::constant && !in_class(inst.type, info(step).operands))
        return broken(id, "it is not defined on {}", name(inst.type));
    }
    if (const KernelArray* array = module_.kernel_array_of(module_.arg(id, 0))) {
      const auto part = static_cast<std::uint32_t>(bytes(array->type));
      if (inst.type != array->type)
        return broken(id, "it accesses an array of {} as {}", name(array->type), name(inst.type));
      if (inst.stride % part != 0 || inst.offset % part != 0) return broken(id, "it accesses parts of scalars");
      if (is_atomic(inst.op) && array->is_private)
        return broken(id, "an atomic operation on an array of the thread's own");
      if (is_atomic(inst.op) && part < 4 && !array->words)
        return broken(id, "atomic operations on narrow scalars of a workgroup take those that lie in words");
    }
    if (inst.op == Op::store && inst.num_args != 2u + inst.width)
      return broken(id, "it stores {} values, {} wide", static_cast<int>(inst.num_args) - 2, inst.width);
    if (operand_type(id, 0) != Type::u64) return broken(id, "the base address is {}", name(operand_type(id, 0)));
    if (!is_int(operand_type(id, 1))) return broken(id, "the index is {}", name(operand_type(id, 1)));
    if (is_bool(inst.type)) return broken(id, "booleans are bytes in memory");
    for (std::uint32_t k = 2; k < inst.num_args; ++k) {
      if (const Type type = operand_type(id, static_cast<int>(k)); type != inst.type)
        return broken(id, "value {} is {}, not {}", k - 2, name(type), name(inst.type));
    }
    if (!std::has_single_bit(inst.align) || inst.align > 16) return broken(id, "its alignment is {}", inst.align);
    if (inst.stride == 0) return broken(id, "its stride is 0");
    // A stride of one says nothing about the alignment, because the index then counts bytes.
    if (inst.stride != 1 && inst.stride % inst.align != 0)
      return broken(id, "a stride of {} bytes does not keep an alignment of {}", inst.stride, inst.align);
    if (inst.offset % inst.align != 0)
      broken(id, "an offset of {} bytes does not keep an alignment of {}", inst.offset, inst.align);
  }

  void trace_ray(Id id) {
    const Inst& inst = module_[id];
    if (inst.type != Type::u32 || inst.width != 4) return broken(id, "it gives four words");
    for (int k = 0; k < 9; ++k) {
      const Type wanted = k < 2 ? Type::u64 : Type::f32;
      if (operand_type(id, k) != wanted) return broken(id, "operand {} is {}", k, name(operand_type(id, k)));
    }
    if (inst.imm > 1) broken(id, "it asks for any hit or for the nearest");
  }

  void reduction(Id id) {
    const Inst& inst = module_[id];
    const Type type = operand_type(id, 0);
    switch (inst.imm < static_cast<std::uint64_t>(Op::count) ? Op(inst.imm) : Op::count) {
      case Op::add:
      case Op::mul:
      case Op::min:
      case Op::max:
      case Op::bit_and:
      case Op::bit_or:
      case Op::bit_xor: break;
      default: return broken(id, "it combines by no operation that reductions know");
    }
    if (!in_class(type, info(Op(inst.imm)).operands)) return broken(id, "it is not defined on {}", name(type));
    if (is_bool(type) && inst.op != Op::subgroup_reduce) return broken(id, "there are no scans of booleans");
    if (inst.type != type) broken(id, "its result is {}, not {}", name(type), name(inst.type));
  }

  void exchange(Id id) {
    if (operand_type(id, 1) != Type::u32) return broken(id, "the lane is {}", name(operand_type(id, 1)));
    if (operand_type(id, 0) != module_[id].type)
      broken(id, "its result is {}, not {}", name(operand_type(id, 0)), name(module_[id].type));
  }

  void ballot(Id id) {
    const Inst& inst = module_[id];
    if (operand_type(id, 0) != Type::b1) return broken(id, "it counts {}", name(operand_type(id, 0)));
    if (inst.type != Type::u32 || inst.imm > 3) broken(id, "it is one of four words");
  }

  void local(Id id) {
    const Inst& inst = module_[id];
    if (inst.imm >= module_.locals.size()) return broken(id, "there is no local {}", inst.imm);
    const Type type = module_.locals[inst.imm].type;
    const Type used = inst.op == Op::local_get ? inst.type : operand_type(id, 0);
    if (used != type) broken(id, "local {} is {}, not {}", inst.imm, name(type), name(used));
  }

  void branch(Id id, RegionId home, const Context& outer) {
    const Inst& inst = module_[id];
    if (operand_type(id, 0) != Type::b1) return broken(id, "its condition is {}", name(operand_type(id, 0)));
    if (inst.regions[2] != kNone) return broken(id, "it has three regions");
    const bool has_results = ends_with(inst.regions[0], Op::yield) || ends_with(inst.regions[1], Op::yield);
    if (has_results && inst.regions[1] == kNone) return broken(id, "it has results and no else region");
    Context inner = outer;
    if (has_results) inner.break_ok = inner.return_ok = false;
    for (int k = 0; k < 2 && ok(); ++k) {
      if (k == 1 && inst.regions[1] == kNone) break;
      const std::size_t mark = scope_.size();
      region(inst.regions[k], home, inner, has_results ? Ending::values : Ending::none, id);
      leave_scope(mark);
    }
    if (!ok() || !has_results) return;
    const auto a = yielded(inst.regions[0]), b = yielded(inst.regions[1]);
    bool agree = a.size() == b.size();
    for (std::size_t k = 0; agree && k < a.size(); ++k) agree = module_[a[k]].type == module_[b[k]].type;
    if (!agree) broken(id, "its regions yield values of different types");
  }

  std::span<const Id> yielded(RegionId region) const { return module_.args(list(region).back()); }

  void loop(Id id, RegionId home, const Context& outer) {
    const Inst& inst = module_[id];
    const bool carries = inst.num_args > 0;
    if (carries && inst.regions[2] != kNone) return broken(id, "it carries values and has a step region");
    Context head = outer;
    head.in_body = head.return_ok = false;
    Context body = outer;
    body.in_body = true;
    body.break_ok = !carries;
    if (carries) body.return_ok = false;

    const std::size_t mark = scope_.size();
    region(inst.regions[0], home, head, Ending::condition, id);
    for (int k = 1; k < 3 && ok(); ++k) {
      if (k == 2 && inst.regions[2] == kNone) break;
      const std::size_t inner = scope_.size();
      const Ending ending = carries ? Ending::values : Ending::none;
      region(inst.regions[k], home, k == 1 ? body : head, ending, id);
      leave_scope(inner);
    }
    leave_scope(mark);
    if (!ok() || !carries) return;
    const auto next = yielded(inst.regions[1]);
    if (next.size() != inst.num_args)
      return broken(id, "it carries {} values and its body yields {}", inst.num_args, next.size());
    for (std::uint32_t k = 0; k < inst.num_args; ++k) {
      if (module_[next[k]].type != operand_type(id, static_cast<int>(k)))
        return broken(id, "carried value {} changes its type", k);
    }
  }

  void result(Id id) {
    const Inst& inst = module_[id];
    const Inst& source = module_[module_.arg(id, 0)];
    Type type = Type::none;
    if (source.op == Op::load || source.op == Op::trace_ray) {
      if (inst.imm < source.width) type = source.type;
    } else if (source.op == Op::call) {
      const Module& function = *functions_[source.imm];
      const auto values = function.outputs();
      if (inst.imm < values.size()) type = function[values[inst.imm]].type;
    } else if (source.op == Op::loop) {
      if (inst.imm < source.num_args) type = operand_type(module_.arg(id, 0), static_cast<int>(inst.imm));
    } else if (ends_with(source.regions[0], Op::yield)) {
      const auto values = yielded(source.regions[0]);
      if (inst.imm < values.size()) type = module_[values[inst.imm]].type;
    }
    if (type == Type::none) return broken(id, "there is no result {}", inst.imm);
    if (type != inst.type) broken(id, "result {} is {}, not {}", inst.imm, name(type), name(inst.type));
  }

  void call(Id id) {
    const Inst& inst = module_[id];
    if (inst.imm >= functions_.size()) return broken(id, "it calls no function before it");
    const Module& function = *functions_[inst.imm];
    if (inst.num_args != function.num_inputs)
      return broken(id, "it has {} operands for {} inputs", inst.num_args, function.num_inputs);
    for (std::uint32_t k = 0; k < inst.num_args; ++k) {
      const Type wanted = function[function.regions[0].insts[k]].type;
      if (operand_type(id, static_cast<int>(k)) != wanted)
        return broken(id, "operand {} is {}, not {}", k, name(operand_type(id, static_cast<int>(k))), name(wanted));
    }
  }

  const Module& module_;
  std::span<const std::shared_ptr<const Module>> functions_;
  std::vector<State> state_;
  std::vector<char> region_seen_;
  std::vector<Id> scope_;  ///< values in the order in which they became visible
  std::string violation_;
};

}  // namespace

std::string first_violation(const Module& module) { return Verifier(module, module.functions).run(); }

void verify(const Module& module) {
  if (std::string violation = first_violation(module); !violation.empty()) {
    internal_error(fmt::format("kernel \"{}\": {}", module.name, violation).c_str(), module.loc);
  }
}

}  // namespace weft::ir

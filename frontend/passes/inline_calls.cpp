// Replaces calls by the bodies of their functions.
#include <fmt/format.h>

#include <string>
#include <unordered_map>
#include <utility>

#include "../ir/builder.h"
#include "../support/error.h"
#include "passes.h"

namespace weft::ir {
namespace {

/// A limit is needed because functions that call others twice double the kernel with each level.
constexpr std::size_t kMaxInsts = 1u << 20;

/// The replacements of a kernel's functions.
struct Functions {
  const Module& kernel;
  std::vector<std::uint32_t> kept;  ///< by function: its number in the new table, or kNone
  /// By function: its accesses through its inputs, if it has derivatives of its own; else empty.
  std::vector<std::vector<Access>> accesses;
  /// By function that is a replay or a gradient: the accesses of the function that it belongs to. It sees arrays that
  /// this function writes to as the launch has left them. Else empty.
  std::vector<std::vector<Access>> left;
  bool replay = false;  ///< take replays
};

class Inliner {
 public:
  explicit Inliner(const Functions& functions)
      : functions_(functions), kernel_(functions.kernel), builder_(out_), keeps_(true) {
    static_cast<Interface&>(out_) = kernel_.as_interface();
  }

  /// Inlines the kernel itself.
  Module run() {
    Body body(kernel_);
    open(body);
    region(body, 0);
    if (functions_.replay) refuse_other_uses();
    return std::move(out_);
  }

  /// Inlines a function of its table, in which nothing is called.
  Module run(std::uint64_t number) {
    keeps_ = false;
    const Module& code = code_of(number);
    out_.function = kernel_.functions[number]->function;
    out_.loc = kernel_.functions[number]->loc;
    std::vector<Id> inputs;
    for (std::uint32_t k = 0; k < code.num_inputs; ++k) {
      const Inst& input = code[code.regions[0].insts[k]];
      inputs.push_back(builder_.input(input.type, input.loc()));
    }
    const std::vector<Id> outputs = expand(number, inputs, out_.loc);
    if (!outputs.empty()) builder_.yield(outputs);
    return std::move(out_);
  }

 private:
  /// One copy of a body: the kernel's own, or one call's.
  struct Body {
    explicit Body(const Module& from) : from(from), map(from.insts.size(), kNone) {}
    const Module& from;
    std::vector<Id> map;                             ///< by old instruction
    std::uint32_t first_local = 0;                   ///< its locals are contiguous in the new module
    std::unordered_map<Id, std::vector<Id>> called;  ///< results of the calls in it
    std::vector<Id> outputs;
  };

  void open(Body& body) {
    body.first_local = static_cast<std::uint32_t>(out_.locals.size());
    out_.locals.insert(out_.locals.end(), body.from.locals.begin(), body.from.locals.end());
  }

  Id value(Body& body, Id old) {
    Id& made = body.map[old];
    if (made != kNone) return made;
    const Inst& inst = body.from[old];
    switch (inst.op) {
      case Op::constant: return made = builder_.constant(inst.type, inst.imm);
      case Op::arg: return made = builder_.arg(inst.type, static_cast<std::uint32_t>(inst.imm));
      default:
        if (!is_global(inst.op)) internal_error("a pass met a value before its definition", inst.loc());
        return made = builder_.source(inst.op, inst.type, inst.imm, inst.loc());
    }
  }

  std::vector<Id> values(Body& body, Id old) {
    std::vector<Id> made;
    for (Id arg : body.from.args(old)) made.push_back(value(body, arg));
    return made;
  }

  void region(Body& body, RegionId region) {
    for (Id id : body.from.regions[region].insts) instruction(body, region, id);
  }

  void instruction(Body& body, RegionId region, Id id) {
    const Inst& inst = body.from[id];
    if (out_.insts.size() > kMaxInsts)
      refuse(ErrorKind::unsupported, kernel_,
             "the kernel has more than 2^20 instructions when its functions are inlined");
    switch (inst.op) {
      case Op::param: return;  // mapped by call() and loop()
      case Op::call: return call(body, id);
      case Op::if_: return branch(body, id);
      case Op::loop: return loop(body, id);
      case Op::yield:
        if (region == 0) {
          body.outputs = values(body, id);
        } else {
          builder_.yield(values(body, id));
        }
        return;
      case Op::result:
        if (auto found = body.called.find(body.from.arg(id, 0)); found != body.called.end()) {
          body.map[id] = found->second[inst.imm];
          return;
        }
        break;
      case Op::break_:
      case Op::continue_:
      case Op::return_: return builder_.leave(inst.op, inst.loc());
      default: break;
    }
    const auto local = body.first_local + static_cast<std::uint32_t>(inst.imm);
    if (inst.op == Op::local_get) {
      body.map[id] = builder_.local_get(local, inst.loc());
    } else if (inst.op == Op::local_set) {
      builder_.local_set(local, value(body, body.from.arg(id, 0)), inst.loc());
    } else if (inst.op == Op::gradient_base) {
      // There is one gradient, whichever state of the elements a function sees.
      const Id array = value(body, body.from.arg(id, 0));
      const Id base = out_[array].op == Op::after_base ? out_.arg(array, 0) : array;
      body.map[id] = builder_.pure(Op::gradient_base, Type::u64, {base}, inst.loc());
    } else {
      body.map[id] = builder_.copy(inst, values(body, id));
    }
  }

  void call(Body& body, Id id) {
    const Inst& inst = body.from[id];
    const std::vector<Id> args = values(body, id);
    if (keeps_ && functions_.kept[inst.imm] != kNone) {
      body.map[id] = builder_.call(functions_.kept[inst.imm], args, inst.loc());
      note_written(functions_.accesses[inst.imm], inst.imm, args, inst.loc());
    } else {
      body.called.emplace(id, expand(inst.imm, args, inst.loc()));
    }
  }

  const Module& code_of(std::uint64_t number) const {
    const Module& function = *kernel_.functions[number];
    const bool replay = functions_.replay && function.derivatives.replay != kNone;
    return replay ? *kernel_.functions[function.derivatives.replay] : function;
  }

  /// Emits the code of a function here, with these inputs. Returns its outputs.
  std::vector<Id> expand(std::uint64_t number, std::vector<Id> args, Loc loc) {
    const Module& code = code_of(number);
    Body callee(code);
    open(callee);
    // A local that is read before it is assigned is zero, in each call anew.
    for (std::uint32_t k = 0; k < code.locals.size(); ++k) {
      builder_.local_set(callee.first_local + k, builder_.constant(code.locals[k].type, 0), loc);
    }
    note_written(functions_.accesses[number], number, args, loc);
    args = written_states(functions_.left[number], std::move(args), loc);
    for (std::uint32_t k = 0; k < code.num_inputs; ++k) callee.map[code.regions[0].insts[k]] = args[k];
    region(callee, 0);
    return std::move(callee.outputs);
  }

  static bool is_written(const std::vector<Access>& accesses, std::size_t k) { return any(accesses[k], kChanges); }

  /// The inputs of a call, with the state after the launch for arrays that it writes to.
  std::vector<Id> written_states(const std::vector<Access>& accesses, std::vector<Id> args, Loc loc) {
    for (std::size_t k = 0; k < accesses.size(); ++k)
      if (is_written(accesses, k) && out_[args[k]].type == Type::u64)
        args[k] = builder_.pure(Op::after_base, Type::u64, {args[k]}, loc);
    return args;
  }

  void note_written(const std::vector<Access>& accesses, std::uint64_t number, const std::vector<Id>& args, Loc loc) {
    for (std::size_t k = 0; k < accesses.size(); ++k)
      if (is_written(accesses, k))
        if (const Param* array = out_.array_of(args[k])) owners_.push_back({array, number, loc});
  }

  /// Refuses other uses of such an array: its content at some moment of the launch is not known if something else
  /// changes or reads it.
  void refuse_other_uses() const {
    for (const Owned& owned : owners_) {
      const std::string& name = kernel_.functions[owned.function]->function;
      const auto refuse = [&](Loc loc, const std::string& what) {
        throw Error(ErrorKind::not_differentiable,
                    fmt::format("{} is written by func \"{}\", which has derivatives of its own, and {}",
                                owned.array->name, name, what),
                    kernel_.name, loc ? loc : owned.loc);
      };
      for (const Inst& inst : out_.insts)
        if (is_memory(inst.op) && out_.array_of(out_.operands[inst.first_arg]) == owned.array)
          refuse(inst.loc(), "used by the kernel beside it");
      for (const Owned& other : owners_)
        if (other.array == owned.array && kernel_.functions[other.function] != kernel_.functions[owned.function])
          refuse(other.loc, fmt::format("by func \"{}\"", kernel_.functions[other.function]->function));
    }
  }

  void branch(Body& body, Id id) {
    const Inst& inst = body.from[id];
    builder_.open_if(value(body, body.from.arg(id, 0)), inst.loc());
    region(body, inst.regions[0]);
    if (inst.regions[1] != kNone) {
      builder_.open_else();
      region(body, inst.regions[1]);
    }
    body.map[id] = builder_.close_if();
  }

  void loop(Body& body, Id id) {
    const Inst& inst = body.from[id];
    builder_.open_loop(values(body, id), inst.loc());
    const std::vector<Id>& condition = body.from.regions[inst.regions[0]].insts;
    for (std::uint32_t k = 0; k < inst.num_args; ++k) body.map[condition[k]] = builder_.loop_param(k);
    for (std::size_t i = inst.num_args; i + 1 < condition.size(); ++i) instruction(body, inst.regions[0], condition[i]);
    builder_.loop_body(value(body, body.from.arg(condition.back(), 0)));
    region(body, inst.regions[1]);
    if (inst.regions[2] != kNone) {
      builder_.loop_step();
      region(body, inst.regions[2]);
    }
    body.map[id] = builder_.close_loop();
  }

  /// An array that a function with a replay writes to.
  struct Owned {
    const Param* array;
    std::uint64_t function;
    Loc loc;
  };

  const Functions& functions_;
  const Module& kernel_;
  Module out_;
  Builder builder_;
  bool keeps_;  ///< whether calls of kept functions stay
  std::vector<Owned> owners_;
};

Functions no_functions(const Module& module) {
  const std::size_t count = module.functions.size();
  const std::vector<std::vector<Access>> none(count);
  return {module, std::vector<std::uint32_t>(count, kNone), none, none, false};
}

Module with_gradients_kept(const Module& module) {
  if (module.derivatives.left_out) internal_error("the adjoint of a kernel that was traced without Variant::adjoint");
  if (module.functions.empty()) return module;
  const std::size_t count = module.functions.size();
  Functions functions = no_functions(module);
  functions.replay = true;
  const std::vector<std::vector<Access>> accesses = input_accesses(module.functions);
  std::vector<std::uint64_t> table;
  const auto keep = [&](std::uint64_t number) {
    if (functions.kept[number] != kNone) return;
    functions.kept[number] = static_cast<std::uint32_t>(table.size());
    table.push_back(number);
  };
  for (std::size_t i = 0; i < count; ++i) {
    const Derivatives& own = module.functions[i]->derivatives;
    if (own.any()) functions.accesses[i] = accesses[i];
    if (own.replay != kNone) functions.left[i] = accesses[i];
    if (own.gradient == kNone) continue;
    keep(i), keep(own.gradient);
    functions.left[own.gradient] = accesses[i];
  }
  Module made = Inliner(functions).run();
  for (std::uint64_t number : table) {
    auto function = std::make_shared<Module>(Inliner(functions).run(number));
    const std::uint32_t gradient = module.functions[number]->derivatives.gradient;
    if (gradient != kNone) function->derivatives.gradient = functions.kept[gradient];
    made.functions.push_back(std::move(function));
  }
  return forward(made);
}

}  // namespace

Module inline_calls(const Module& module, Keep keep) {
  if (keep == Keep::gradients) return with_gradients_kept(module);
  if (module.functions.empty()) return module;
  const Functions functions = no_functions(module);
  return forward(Inliner(functions).run());
}

}  // namespace weft::ir

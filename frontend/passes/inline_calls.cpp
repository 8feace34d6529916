// Puts the bodies of functions in place of the calls.
#include <unordered_map>

#include "../ir/builder.h"
#include "../support/error.h"
#include "passes.h"

namespace weft::ir {
namespace {

/// Functions that call others twice each double the kernel with each level.
constexpr std::size_t kMaxInsts = 1u << 20;

class Inliner {
 public:
  explicit Inliner(const Module& kernel) : kernel_(kernel), builder_(out_) {
    static_cast<Interface&>(out_) = kernel.as_interface();
  }

  Module run() {
    Body body(kernel_);
    open(body);
    region(body, 0);
    return std::move(out_);
  }

 private:
  /// One copy of a body: the kernel's own, or that of one call.
  struct Body {
    explicit Body(const Module& from) : from(from), map(from.insts.size(), kNone) {}
    const Module& from;
    std::vector<Id> map;                             ///< by old instruction
    std::uint32_t first_local = 0;                   ///< its locals lie side by side in the new module
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
      throw Error(ErrorKind::unsupported, "the kernel has more than 2^20 instructions when its functions are inlined",
                  kernel_.name, kernel_.loc);
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
    } else {
      body.map[id] = builder_.copy(inst, values(body, id));
    }
  }

  void call(Body& body, Id id) {
    const Inst& inst = body.from[id];
    const Module& function = *kernel_.functions[inst.imm];
    Body callee(function);
    open(callee);
    // A local that is read before it is assigned is zero, in each call anew.
    for (std::uint32_t k = 0; k < function.locals.size(); ++k) {
      builder_.local_set(callee.first_local + k, builder_.constant(function.locals[k].type, 0), inst.loc());
    }
    const std::vector<Id> args = values(body, id);
    for (std::uint32_t k = 0; k < function.num_inputs; ++k) callee.map[function.regions[0].insts[k]] = args[k];
    region(callee, 0);
    body.called.emplace(id, std::move(callee.outputs));
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

  const Module& kernel_;
  Module out_;
  Builder builder_;
};

}  // namespace

Module inline_calls(const Module& module) {
  if (module.functions.empty()) return module;
  return forward(Inliner(module).run());
}

}  // namespace weft::ir

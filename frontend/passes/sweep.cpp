// Removes unused code: marks values from the effects backwards, then copies what is marked.
#include "rewrite.h"

namespace weft::ir {
namespace {

class Sweeper {
 public:
  Sweeper(const Module& from, const std::vector<char>& dropped)
      : from_(from),
        dropped_(dropped),
        owner_(from.insts.size(), kNone),
        alias_(from.insts.size(), kNone),
        next_(from.insts.size(), kNone),
        exits_(from.insts.size(), kNone),
        columns_(from.insts.size(), kNone),
        live_(from.insts.size(), 0),
        map_(from.insts.size(), kNone),
        local_sets_(from.locals.size(), kNone),
        local_live_(from.locals.size(), 0),
        local_map_(from.locals.size(), kNone),
        effects_(have_effects(from.functions)) {}

  Module run() {
    survey(0, kNone, kNone);
    for (Id root : roots_) mark(root);
    while (!work_.empty()) {
      const Id id = work_.back();
      work_.pop_back();
      needs(id);
    }
    static_cast<Interface&>(out_) = from_.as_interface();
    out_.insts.reserve(from_.insts.size());
    out_.operands.reserve(from_.operands.size());
    out_.function = from_.function;
    out_.derivatives = from_.derivatives;
    out_.functions = from_.functions;
    out_.num_inputs = from_.num_inputs;
    copy_region(0, 0);
    return std::move(out_);
  }

 private:
  // ---- What there is

  /// Finds each instruction's surroundings, the roots, and values that only rename another.
  void survey(RegionId region, Id owner, Id loop) {
    for (Id id : from_.regions[region].insts) {
      const Inst& inst = from_[id];
      owner_[id] = owner;
      switch (inst.op) {
        case Op::return_: roots_.push_back(id); break;
        case Op::break_:
        case Op::continue_:
          next_[id] = exits_[loop];
          exits_[loop] = id;
          break;
        case Op::local_set:
          if (!dropped_.empty() && dropped_[id]) break;
          next_[id] = local_sets_[inst.imm];
          local_sets_[inst.imm] = id;
          break;
        case Op::if_: survey_branch(id, loop); break;
        case Op::loop: survey_loop(id); break;
        case Op::result: alias_result(id); break;
        case Op::call:
          if (effects_[inst.imm]) roots_.push_back(id);
          break;
        // A function's inputs and outputs stay.
        case Op::param:
        case Op::yield:
          if (region == 0) roots_.push_back(id);
          break;
        default:
          if (info(inst.op).effect == Effect::writes) roots_.push_back(id);
      }
    }
  }

  void survey_branch(Id id, Id loop) {
    const Inst& inst = from_[id];
    survey(inst.regions[0], id, loop);
    if (inst.regions[1] != kNone) survey(inst.regions[1], id, loop);
    const auto& insts = from_.regions[inst.regions[0]].insts;
    if (!insts.empty() && from_[insts.back()].op == Op::yield) add_columns(id, from_[insts.back()].num_args);
  }

  void survey_loop(Id id) {
    const Inst& inst = from_[id];
    if (inst.num_args > 0) add_columns(id, inst.num_args);
    for (RegionId region : inst.regions) {
      if (region != kNone) survey(region, id, id);
    }
    // A carried value that the body passes on unchanged is its initial value.
    for (std::uint32_t k = 0; k < inst.num_args; ++k) {
      const Id param = from_.regions[inst.regions[0]].insts[k];
      if (resolve(yielded(inst.regions[1], k)) == param) alias_[param] = resolve(from_.arg(id, static_cast<int>(k)));
    }
  }

  void alias_result(Id id) {
    const Id source = from_.arg(id, 0);
    const Inst& inst = from_[source];
    const auto k = static_cast<std::uint32_t>(from_[id].imm);
    if (inst.op == Op::if_) {
      const Id a = resolve(yielded(inst.regions[0], k));
      if (a == resolve(yielded(inst.regions[1], k))) alias_[id] = a;
    } else if (inst.op == Op::loop) {
      const Id param = from_.regions[inst.regions[0]].insts[k];
      if (alias_[param] != kNone) alias_[id] = resolve(param);
    }
  }

  void add_columns(Id id, std::uint32_t count) {
    columns_[id] = static_cast<std::uint32_t>(column_live_.size());
    column_live_.resize(column_live_.size() + count, 0);
  }

  /// Whether its results come from regions, and are wanted one by one.
  bool has_columns(Id id) const { return from_[id].op == Op::if_ || from_[id].op == Op::loop; }

  Id resolve(Id id) const {
    while (alias_[id] != kNone) id = alias_[id];
    return id;
  }

  Id yield_of(RegionId region) const { return from_.regions[region].insts.back(); }
  Id yielded(RegionId region, std::uint32_t k) const { return from_.arg(yield_of(region), static_cast<int>(k)); }

  // ---- What is needed

  void mark(Id id) {
    id = resolve(id);
    if (live_[id]) return;
    live_[id] = 1;
    work_.push_back(id);
  }

  void needs(Id id) {
    if (owner_[id] != kNone) mark(owner_[id]);
    const Inst& inst = from_[id];
    switch (inst.op) {
      case Op::if_: mark(from_.arg(id, 0)); break;
      case Op::loop:
        mark(yielded(inst.regions[0], 0));
        for (Id exit = exits_[id]; exit != kNone; exit = next_[exit]) mark(exit);
        break;
      case Op::param:
        if (owner_[id] != kNone) need_column(owner_[id], static_cast<std::uint32_t>(inst.imm));
        break;
      case Op::result: {
        const Id source = from_.arg(id, 0);
        mark(source);
        if (has_columns(source)) need_column(source, static_cast<std::uint32_t>(inst.imm));
        break;
      }
      case Op::local_get:
        if (!local_live_[inst.imm]) {
          local_live_[inst.imm] = 1;
          for (Id set = local_sets_[inst.imm]; set != kNone; set = next_[set]) mark(set);
        }
        break;
      default:
        for (Id arg : from_.args(id)) mark(arg);
    }
  }

  void need_column(Id id, std::uint32_t k) {
    char& live = column_live_[columns_[id] + k];
    if (live) return;
    live = 1;
    const Inst& inst = from_[id];
    if (inst.op == Op::if_) {
      mark(yielded(inst.regions[0], k));
    } else {
      mark(from_.arg(id, static_cast<int>(k)));
      // The parameter represents the column in the copy.
      mark(from_.regions[inst.regions[0]].insts[k]);
    }
    mark(yielded(inst.regions[1], k));
  }

  // ---- The copy

  void copy_region(RegionId from, RegionId to) {
    for (Id id : from_.regions[from].insts) {
      if (live_[id]) copy(id, to);
    }
  }

  RegionId new_region(RegionId parent) {
    out_.regions.push_back({{}, parent});
    return static_cast<RegionId>(out_.regions.size() - 1);
  }

  Id value(Id old) {
    old = resolve(old);
    if (map_[old] == kNone) map_[old] = append(from_[old], {});
    return map_[old];
  }

  Id append(Inst inst, std::span<const Id> args) { return out_.add(inst, args); }

  /// New number of column k: the number of live ones before it.
  std::uint32_t column(Id id, std::uint32_t k) const {
    std::uint32_t n = 0;
    for (std::uint32_t i = 0; i < k; ++i) n += column_live_[columns_[id] + i] != 0;
    return n;
  }

  bool column_live(Id id, std::uint32_t k) const { return columns_[id] == kNone || column_live_[columns_[id] + k]; }

  void copy(Id id, RegionId to) {
    Inst inst = from_[id];
    if (inst.op == Op::param && owner_[id] != kNone) {
      inst.imm = column(owner_[id], static_cast<std::uint32_t>(inst.imm));
    } else if (inst.op == Op::result && has_columns(from_.arg(id, 0))) {
      inst.imm = column(from_.arg(id, 0), static_cast<std::uint32_t>(inst.imm));
    } else if (inst.op == Op::local_get || inst.op == Op::local_set) {
      std::uint32_t& local = local_map_[inst.imm];
      if (local == kNone) {
        local = static_cast<std::uint32_t>(out_.locals.size());
        out_.locals.push_back(from_.locals[inst.imm]);
      }
      inst.imm = local;
    }
    std::vector<Id>& args = args_;
    args.clear();
    for (std::uint32_t k = 0; k < inst.num_args; ++k) {
      if (inst.op != Op::loop || column_live(id, k)) args.push_back(value(from_.arg(id, static_cast<int>(k))));
    }
    inst.regions = {kNone, kNone, kNone};
    const Id made = append(inst, args);
    map_[id] = made;
    out_.regions[to].insts.push_back(made);
    if (inst.op == Op::if_) copy_branch(id, made, to);
    if (inst.op == Op::loop) copy_loop(id, made, to);
  }

  void copy_yield(Id owner, RegionId from, RegionId to) {
    const Id id = yield_of(from);
    args_.clear();
    for (std::uint32_t k = 0; k < from_[id].num_args; ++k) {
      if (column_live(owner, k)) args_.push_back(value(from_.arg(id, static_cast<int>(k))));
    }
    if (args_.empty()) return;
    out_.regions[to].insts.push_back(append(from_[id], args_));
  }

  void copy_branch(Id id, Id made, RegionId to) {
    const bool results = columns_[id] != kNone;
    for (int k = 0; k < 2; ++k) {
      const RegionId old = from_[id].regions[k];
      if (old == kNone) continue;
      const RegionId region = new_region(to);
      copy_region(old, region);
      if (results) copy_yield(id, old, region);
      // An else region that became empty is removed; it is the last region made.
      if (k == 1 && out_.regions[region].insts.empty()) {
        out_.regions.pop_back();
      } else {
        out_.insts[made].regions[k] = region;
      }
    }
  }

  void copy_loop(Id id, Id made, RegionId to) {
    for (int k = 0; k < 3; ++k) {
      const RegionId old = from_[id].regions[k];
      if (old == kNone) continue;
      const RegionId region = new_region(to);
      copy_region(old, region);
      if (k == 0) {
        const Id condition = value(yielded(old, 0));
        out_.regions[region].insts.push_back(append(from_[yield_of(old)], {&condition, 1}));
      } else if (k == 1 && columns_[id] != kNone) {
        copy_yield(id, old, region);
      }
      if (k == 2 && out_.regions[region].insts.empty()) {
        out_.regions.pop_back();
      } else {
        out_.insts[made].regions[k] = region;
      }
    }
  }

  const Module& from_;
  const std::vector<char>& dropped_;
  Module out_;
  std::vector<Id> owner_;               ///< the branch or loop around an instruction
  std::vector<Id> alias_;               ///< the value that an instruction only renames
  std::vector<Id> next_;                ///< next exit of the loop, next assignment of the local
  std::vector<Id> exits_;               ///< by loop: its first exit
  std::vector<std::uint32_t> columns_;  ///< by branch or loop with results: the first in column_live_
  std::vector<char> column_live_;
  std::vector<char> live_;
  std::vector<Id> map_;
  std::vector<Id> local_sets_;  ///< by local: its first assignment
  std::vector<char> local_live_;
  std::vector<std::uint32_t> local_map_;
  std::vector<char> effects_;  ///< by function
  std::vector<Id> roots_, work_, args_;
};

}  // namespace

Module sweep_body(const Module& module, const std::vector<char>& dropped) { return Sweeper(module, dropped).run(); }

Module sweep(const Module& module) {
  Module swept = for_each_body(module, [](const Module& body) { return sweep_body(body); });
  drop_unused_functions(swept);
  return swept;
}

}  // namespace weft::ir

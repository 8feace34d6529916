// Loops backward: their trips, the gradients that iterations pass on, and those that are gathered around a loop.
//
// This file reverses loops whose iterations need nothing but counters; checkpoints.cpp reverses the others.
#include "reverser.h"

namespace weft::ir {

Id Reverser::trips_of(Id id) {
  const auto& closed = analysis.plan(id).trips;
  if (!closed) return trips_[id];
  const Id param = analysis.param(id, closed->param);
  const Type type = from[param].type;
  const std::uint64_t step = analysis.step_of(id, closed->param);
  const bool down = type == Type::i32 && (step >> 31 & 1) != 0;
  const Id first = value(from.arg(id, static_cast<int>(closed->param))), bound = value(closed->bound);
  const Id low = down ? bound : first, high = down ? first : bound;
  // The distance fits an unsigned number of 32 bits, whatever the signs of the ends.
  Id distance = pure(Op::sub, type, {high, low});
  if (type == Type::i32) distance = pure(Op::bitcast, Type::u32, {distance});
  const auto stride = static_cast<std::uint32_t>(down ? 0 - step : step);
  Id trips = distance;
  if (stride != 1) {
    trips = pure(Op::div, Type::u32, {pure(Op::sub, Type::u32, {distance, u32(1)}), u32(stride)});
    trips = pure(Op::add, Type::u32, {trips, u32(1)});
  }
  return pure(Op::select, Type::u32, {pure(Op::lt, Type::b1, {low, high}), trips, u32(0)});
}

void Reverser::map_affine(Id id, Id iteration) {
  for (const auto& [k, step] : analysis.plan(id).affine) {
    const Id param = analysis.param(id, k);
    const Type type = from[param].type;
    Id n = iteration;
    if (type == Type::i32)
      n = pure(Op::bitcast, type, {n});
    else if (type != Type::u32)
      n = pure(Op::convert, type, {n});
    const Id way = pure(Op::mul, type, {n, builder.constant(type, step)});
    map(param, pure(Op::add, type, {way, value(from.arg(id, static_cast<int>(k)))}));
  }
}

void Reverser::reverse_loop(Id id) {
  const std::vector<Id> pending = gradients_.take_results(id);
  undo_.rewind(id);
  if (!analysis.reverses(id)) return;
  const Inst& inst = from[id];
  LoopGradients gradients;
  for (std::uint32_t k = 0; k < inst.num_args; ++k) {
    const Id param = analysis.param(id, k);
    if (!analysis.active(param)) continue;
    const Type type = from[param].type;
    const std::uint32_t local = builder.local(type);
    set(local, k < pending.size() && pending[k] != kNone ? pending[k] : constant(type, 0));
    gradients.carried.emplace_back(k, local);
  }
  const Id trips = trips_of(id);
  gradients.spilled = gradients_.spill(analysis.outer(id));
  for (const RegionId region : inst.regions)
    if (region != kNone) open_sinks(id, region, gradients);
  if (analysis.plan(id).is_direct())
    reverse_direct(id, gradients, trips);
  else
    reverse_checkpointed(id, gradients, trips);
  close_sinks(gradients);
  gradients_.unspill(gradients.spilled);
  for (const auto& [k, local] : gradients.carried) gradients_.add(from.arg(id, static_cast<int>(k)), get(local));
}

/// Reverses one iteration, whose carried values are mapped.
void Reverser::reverse_iteration(Id id, const LoopGradients& gradients) {
  const Inst& inst = from[id];
  std::vector<Id> next;
  for (const auto& [k, local] : gradients.carried) next.push_back(get(local));
  for (std::size_t i = 0; i < next.size(); ++i)
    gradients_.add(analysis.yielded(inst.regions[1], gradients.carried[i].first), next[i]);
  const std::vector<Id> body = body_of(id);
  reverse_block(body);
  for (const auto& [k, local] : gradients.carried) {
    const Id param = analysis.param(id, k), gradient = gradients_.take(param);
    set(local, gradient == kNone ? constant(from[param].type, 0) : gradient);
  }
}

void Reverser::reverse_direct(Id id, LoopGradients& gradients, Id trips) {
  const std::uint32_t left = builder.local(Type::u32);
  set(left, trips);
  builder.open_loop({}, from[id].loc());
  builder.loop_body(pure(Op::lt, Type::b1, {u32(0), get(left)}));
  const Id iteration = pure(Op::sub, Type::u32, {get(left), u32(1)});
  set(left, iteration);
  map_affine(id, iteration);
  reverse_iteration(id, gradients);
  builder.close_loop();
}

// ---- Gradients of an element that a loop loads in each iteration, gathered around the loop

void Reverser::open_sinks(Id id, RegionId region, LoopGradients& gradients) {
  const auto is_outside = [&](Id value) { return is_global(from[value].op) || !analysis.is_inside(value, id); };
  for (const Id load : from.regions[region].insts) {
    const Inst& inst = from[load];
    for (const RegionId inner : inst.regions)
      if (inner != kNone) open_sinks(id, inner, gradients);
    if (inst.op != Op::load || !analysis.active(load)) continue;
    const Root root = analysis.root(from.arg(load, 0));
    if (root.kind != Root::array || analysis.stores_any(analysis.array(root.param).group)) continue;
    if (!is_outside(from.arg(load, 0)) || !is_outside(from.arg(load, 1)) || sinks_.contains(sink_key(load, 0)))
      continue;
    for (std::uint32_t part = 0; part < inst.width; ++part) {
      const std::uint32_t local = builder.local(inst.type);
      set(local, constant(inst.type, 0));
      sinks_.emplace(sink_key(load, part), local);
    }
    gradients.sinks.push_back(load);
  }
}

void Reverser::close_sinks(LoopGradients& gradients) {
  for (Id load : gradients.sinks) {
    for (std::uint32_t part = 0; part < from[load].width; ++part) {
      const auto sink = sinks_.find(sink_key(load, part));
      const Id sum = get(sink->second);
      sinks_.erase(sink);
      // A loop that never loads the element may have an address outside the array.
      builder.open_if(pure(Op::ne, Type::b1, {sum, constant(from[load].type, 0)}));
      array_gradients_.add(load, part, sum);
      builder.close_if();
    }
  }
}

}  // namespace weft::ir

// Loops backwards: by binomial checkpointing with a fixed number of slots, whatever the number of trips.
//
// Iterations are taken in units of a few, whose states then are held in locals. Slots lie in the scratch: component c
// of slot s of a lane at (s * lanes + lane) of the area of c. The topmost slot holds the state before the iteration
// from which the one to be reversed next is reached soonest. Where slots are left, new ones are filled on the way
// (Griewank and Walther 2000, "revolve"): with s slots and t runs over each iteration, loops of binomial(s + t, t)
// trips are reversed. Which iterations are saved decides the cost only.
#include <algorithm>

#include "../support/error.h"
#include "reverser.h"

namespace weft::ir {

namespace {

/// How a value is held in the scratch, where scalars have 4 or 8 bytes.
Type held_as(Type type) {
  if (type == Type::f16) return Type::f32;
  if (type == Type::b1 || (is_unsigned(type) && bits(type) < 32)) return Type::u32;
  if (is_signed(type) && bits(type) < 32) return Type::i32;
  return type;
}

}  // namespace

/// The saved states of one loop.
struct Reverser::Slots {
  struct Component {
    Type type;            ///< of the value
    std::uint32_t local;  ///< that holds the present one
    Id base;
  };
  std::vector<Component> components;  ///< the carried values, the height of the log where there is one, the unit

  void save(Reverser& r, Id slot) const {
    const Id at = r.pure(Op::add, Type::u32, {r.pure(Op::mul, Type::u32, {slot, r.lanes}), r.lane});
    for (const Component& c : components) {
      const Type held = held_as(c.type);
      Id v = r.get(c.local);
      if (c.type == Type::b1)
        v = r.pure(Op::select, held, {v, r.u32(1), r.u32(0)});
      else if (held != c.type)
        v = r.pure(Op::convert, held, {v});
      const auto size = static_cast<std::uint32_t>(bytes(held));
      r.builder.store(held, {&v, 1}, {c.base, at, size, 0, size});
    }
  }
  void restore(Reverser& r, Id slot) const {
    const Id at = r.pure(Op::add, Type::u32, {r.pure(Op::mul, Type::u32, {slot, r.lanes}), r.lane});
    for (const Component& c : components) {
      const Type held = held_as(c.type);
      const auto size = static_cast<std::uint32_t>(bytes(held));
      Id v = r.builder.load(held, 1, {c.base, at, size, 0, size});
      if (c.type == Type::b1)
        v = r.pure(Op::ne, Type::b1, {v, r.u32(0)});
      else if (held != c.type)
        v = r.pure(Op::convert, c.type, {v});
      r.set(c.local, v);
    }
  }
};

/// The states of some successive iterations in locals: reversing one then costs a few selections instead of a look at
/// the slots. As many as make up some 32 locals.
class Reverser::Window {
 public:
  Window(Reverser& r, const Slots& slots) : components_(slots.components) {
    const auto count = static_cast<std::uint32_t>(components_.size());
    size_ = std::clamp(32u / std::max(count, 1u), 1u, 8u);
    if (size_ == 1) return;
    for (const Slots::Component& c : components_)
      for (std::uint32_t place = 0; place < size_; ++place) {
        locals_.push_back(r.builder.local(c.type));
        r.set(locals_.back(), r.get(c.local));
      }
  }
  std::uint32_t size() const { return size_; }
  void save(Reverser& r, Id at) const {
    if (size_ == 1) return;
    for (std::uint32_t place = 0; place < size_; ++place) {
      const Id here = r.pure(Op::eq, Type::b1, {at, r.u32(place)});
      for (std::size_t c = 0; c < components_.size(); ++c) {
        const std::uint32_t local = locals_[c * size_ + place];
        const Id now = r.get(components_[c].local);
        r.set(local, r.pure(Op::select, components_[c].type, {here, now, r.get(local)}));
      }
    }
  }
  void restore(Reverser& r, Id at) const {
    if (size_ == 1) return;
    for (std::size_t c = 0; c < components_.size(); ++c) {
      Id found = r.get(locals_[c * size_]);
      for (std::uint32_t place = 1; place < size_; ++place) {
        const Id here = r.pure(Op::eq, Type::b1, {at, r.u32(place)});
        found = r.pure(Op::select, components_[c].type, {here, r.get(locals_[c * size_ + place]), found});
      }
      r.set(components_[c].local, found);
    }
  }

 private:
  std::vector<Slots::Component> components_;
  std::uint32_t size_ = 1;
  std::vector<std::uint32_t> locals_;  ///< by component and place
};

Id Reverser::trips_of(Id id) {
  const auto& closed = analysis.plan(id).trips;
  if (!closed) return trips_[id];
  const Id param = analysis.param(id, closed->param);
  const Type type = from[param].type;
  const std::uint64_t step = analysis.step_of(id, closed->param);
  const bool down = type == Type::i32 && (step >> 31 & 1) != 0;
  const Id first = value(from.arg(id, static_cast<int>(closed->param))), bound = value(closed->bound);
  const Id low = down ? bound : first, high = down ? first : bound;
  // The distance fits 32 bits without a sign, whatever the signs of the ends.
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

/// One iteration, whose carried values are mapped.
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

void Reverser::reverse_checkpointed(Id id, LoopGradients& gradients, Id trips) {
  const Inst& inst = from[id];
  const LoopPlan& plan = analysis.plan(id);
  const std::uint32_t before = scratch_now_;
  Slots slots;
  const auto add = [&](Type type, Id first) {
    const std::uint32_t local = builder.local(type);
    set(local, first);
    const Id base =
        pure(Op::add, Type::u64,
             {array_base(extra.scratch), pure(Op::mul, Type::u64, {lanes64, constant(Type::u64, scratch_now_)})});
    scratch_now_ += slots_ * static_cast<std::uint32_t>(bytes(held_as(type)));
    slots.components.push_back({type, local, base});
    return local;
  };
  for (std::uint32_t k : plan.state) add(from[analysis.param(id, k)].type, value(from.arg(id, static_cast<int>(k))));
  const bool logs = plan.replays_stores;
  const std::uint32_t height = logs ? add(Type::u32, undo_.height()) : kNone;
  const Window window(*this, slots);
  // The component that slots have beside those of the window: the unit at whose start they were saved.
  const std::uint32_t unit = add(Type::u32, u32(0));
  scratch_most_ = std::max(scratch_most_, scratch_now_);
  const std::uint32_t iteration = builder.local(Type::u32);

  const auto map_state = [&](Id now) {
    for (std::size_t i = 0; i < plan.state.size(); ++i)
      map(analysis.param(id, plan.state[i]), get(slots.components[i].local));
    map_affine(id, now);
  };
  // The next iteration, from the present state to the one after it.
  const auto step = [&](Id now) {
    map_state(now);
    for (Id inner : body_of(id)) forward(inner, kStepCopy, false);
    std::vector<Id> next;
    for (std::uint32_t k : plan.state) next.push_back(value(analysis.yielded(inst.regions[1], k)));
    for (std::size_t i = 0; i < next.size(); ++i) set(slots.components[i].local, next[i]);
  };
  const auto count_down = [&](Id times, auto body) {
    const std::uint32_t left = builder.local(Type::u32);
    set(left, times);
    builder.open_loop({}, inst.loc());
    builder.loop_body(pure(Op::lt, Type::b1, {u32(0), get(left)}));
    set(left, pure(Op::sub, Type::u32, {get(left), u32(1)}));
    body(get(left));
    builder.close_loop();
  };
  const auto start_of = [&](Id n) { return pure(Op::mul, Type::u32, {n, u32(window.size())}); };
  const auto minus_one = [&](Id n) { return pure(Op::sub, Type::u32, {n, u32(1)}); };

  // Units of iterations that fill the window; the last one may be shorter.
  const Id units =
      window.size() == 1
          ? trips
          : pure(Op::div, Type::u32, {pure(Op::add, Type::u32, {trips, u32(window.size() - 1)}), u32(window.size())});
  const std::uint32_t end = builder.local(Type::u32), top = builder.local(Type::u32);
  const std::uint32_t saved = builder.local(Type::u32), arrival = builder.local(Type::u32);
  const auto advance = [&](Id by) {
    set(iteration, start_of(get(unit)));
    set(arrival, pure(Op::add, Type::u32, {get(unit), by}));
    count_down(start_of(by), [&](Id) {
      step(get(iteration));
      set(iteration, pure(Op::add, Type::u32, {get(iteration), u32(1)}));
    });
    set(unit, get(arrival));
  };
  set(end, units);
  set(top, u32(0));
  slots.save(*this, u32(0));
  builder.open_loop({}, inst.loc());
  builder.loop_body(pure(Op::lt, Type::b1, {u32(0), get(end)}));
  {
    slots.restore(*this, get(top));
    set(saved, get(unit));
    if (logs) undo_.roll_back(get(height));
    // Of two units the second is reached in one step and reversed at once: nothing is saved for it.
    builder.open_loop({}, inst.loc());
    const Id gap = pure(Op::sub, Type::u32, {get(end), get(unit)});
    const Id free = pure(Op::sub, Type::u32, {u32(slots_ - 1), get(top)});
    builder.loop_body(
        pure(Op::bit_and, Type::b1, {pure(Op::lt, Type::b1, {u32(2), gap}), pure(Op::lt, Type::b1, {u32(0), free})}));
    advance(split(gap, free));
    set(top, pure(Op::add, Type::u32, {get(top), u32(1)}));
    set(saved, get(unit));
    if (logs) set(height, undo_.height());
    slots.save(*this, get(top));
    builder.close_loop();

    const Id last = minus_one(get(end));
    advance(pure(Op::sub, Type::u32, {last, get(unit)}));
    // The states of the unit's iterations, then back from the last.
    const Id first = start_of(last);
    const Id length = pure(Op::min, Type::u32, {pure(Op::sub, Type::u32, {trips, first}), u32(window.size())});
    set(iteration, first);
    count_down(minus_one(length), [&](Id) {
      if (logs) set(height, undo_.height());
      window.save(*this, pure(Op::sub, Type::u32, {get(iteration), first}));
      step(get(iteration));
      set(iteration, pure(Op::add, Type::u32, {get(iteration), u32(1)}));
    });
    if (logs) set(height, undo_.height());
    window.save(*this, minus_one(length));
    count_down(length, [&](Id place) {
      window.restore(*this, place);
      if (logs) undo_.roll_back(get(height));
      map_state(pure(Op::add, Type::u32, {first, place}));
      reverse_iteration(id, gradients);
    });
    // The slot of the unit that was reversed is done with; the first one is at the end.
    const Id done = pure(Op::bit_and, Type::b1,
                         {pure(Op::eq, Type::b1, {get(saved), last}), pure(Op::lt, Type::b1, {u32(0), get(top)})});
    set(top, pure(Op::sub, Type::u32, {get(top), pure(Op::select, Type::u32, {done, u32(1), u32(0)})}));
    set(end, last);
  }
  builder.close_loop();
  scratch_now_ = before;
}

/// After how many of `gap` iterations the next of `free` slots is filled, 1 to gap - 1. In float32: a bound that is off
/// by a rounding costs a step, not the result.
Id Reverser::split(Id gap, Id free) {
  const auto f32 = [&](double x) { return builder.constant_float(Type::f32, x); };
  const auto real = [&](Op op, Id a, Id b) { return pure(op, Type::f32, {a, b}); };
  const Id n = pure(Op::convert, Type::f32, {gap});
  const Id s = real(Op::add, pure(Op::convert, Type::f32, {free}), f32(1));
  const std::uint32_t t = builder.local(Type::f32), b = builder.local(Type::f32);
  // All states fit: one by one.
  const Id fits = pure(Op::le, Type::b1, {n, s});
  set(t, f32(0));
  set(b, pure(Op::select, Type::f32, {fits, n, f32(1)}));
  builder.open_loop();
  builder.loop_body(pure(Op::lt, Type::b1, {get(b), n}));
  set(t, real(Op::add, get(t), f32(1)));
  set(b, real(Op::div, real(Op::mul, get(b), real(Op::add, s, get(t))), get(t)));
  builder.close_loop();
  const Id scale = real(Op::div, get(b), real(Op::add, s, get(t)));
  const Id low = real(Op::max, f32(1), real(Op::sub, n, real(Op::mul, scale, s)));
  const Id high = real(Op::min, real(Op::sub, n, f32(1)), real(Op::mul, scale, get(t)));
  const Id middle = pure(Op::convert, Type::u32, {real(Op::mul, real(Op::add, low, high), f32(0.5))});
  const Id bounded =
      pure(Op::min, Type::u32, {pure(Op::max, Type::u32, {middle, u32(1)}), pure(Op::sub, Type::u32, {gap, u32(1)})});
  return pure(Op::select, Type::u32, {fits, u32(1), bounded});
}

// ---- Gradients of one element, gathered around a loop

void Reverser::open_sinks(Id id, RegionId region, LoopGradients& gradients) {
  const auto is_outside = [&](Id value) { return is_global(from[value].op) || !analysis.is_inside(value, id); };
  for (const Id load : from.regions[region].insts) {
    const Inst& inst = from[load];
    for (const RegionId inner : inst.regions)
      if (inner != kNone) open_sinks(id, inner, gradients);
    if (inst.op != Op::load || !analysis.active(load)) continue;
    const Root root = analysis.root(from.arg(load, 0));
    if (root.kind != Root::array || analysis.stores_any(analysis.array(root.param).group)) continue;
    if (!is_outside(from.arg(load, 0)) || !is_outside(from.arg(load, 1)) || sinks_.contains(std::uint64_t{load} << 2))
      continue;
    for (std::uint32_t part = 0; part < inst.width; ++part) {
      const std::uint32_t local = builder.local(inst.type);
      set(local, constant(inst.type, 0));
      sinks_.emplace(std::uint64_t{load} << 2 | part, local);
    }
    gradients.sinks.push_back(load);
  }
}

void Reverser::close_sinks(LoopGradients& gradients) {
  for (Id load : gradients.sinks) {
    for (std::uint32_t part = 0; part < from[load].width; ++part) {
      const auto sink = sinks_.find(std::uint64_t{load} << 2 | part);
      const Id sum = get(sink->second);
      sinks_.erase(sink);
      // A loop that never loads the element may name one that does not exist.
      builder.open_if(pure(Op::ne, Type::b1, {sum, constant(from[load].type, 0)}));
      array_gradients_.add(load, part, sum);
      builder.close_if();
    }
  }
}

}  // namespace weft::ir

// Loops backward from saved states: binomial checkpointing with a fixed number of slots, whatever the number of trips.
//
// Iterations are taken in units of a few, whose states are held in locals while the unit is reversed. Slots of saved
// states lie in the scratch; component c of slot s of a lane is element s * lanes + lane in the area of c. The topmost
// slot holds the state from which the unit to be reversed next is reached soonest. On the way there, states are saved
// in the slots that are free (Griewank and Walther 2000, "revolve"): with s slots, and t runs of each iteration, loops
// of binomial(s + t, t) trips are reversed. The choice of saved states decides the cost only.
#include <algorithm>

#include "reverser.h"

namespace weft::ir {

namespace {

/// The type as which a value is held in the scratch, where scalars have 4 or 8 bytes.
Type held_as(Type type) {
  if (type == Type::f16) return Type::f32;
  if (type == Type::b1 || (is_unsigned(type) && bits(type) < 32)) return Type::u32;
  if (is_signed(type) && bits(type) < 32) return Type::i32;
  return type;
}

/// A part of the state that one iteration passes to the next.
struct Component {
  Type type;
  std::uint32_t local;  ///< holds the present value
  Id base;              ///< of its area in the scratch
};

/// The saved states of one loop.
class Slots {
 public:
  explicit Slots(AdjointCode& code) : code_(code) {}

  void add(const Component& component) { components_.push_back(component); }
  const std::vector<Component>& components() const { return components_; }

  void save(Id slot) const {
    const Id at = place(slot);
    for (const Component& c : components_) {
      const Type held = held_as(c.type);
      Id v = code_.get(c.local);
      if (c.type == Type::b1)
        v = code_.pure(Op::select, held, {v, code_.u32(1), code_.u32(0)});
      else if (held != c.type)
        v = code_.pure(Op::convert, held, {v});
      const auto size = static_cast<std::uint32_t>(bytes(held));
      code_.builder.store(held, {&v, 1}, {c.base, at, size, 0, size});
    }
  }
  void restore(Id slot) const {
    const Id at = place(slot);
    for (const Component& c : components_) {
      const Type held = held_as(c.type);
      const auto size = static_cast<std::uint32_t>(bytes(held));
      Id v = code_.builder.load(held, 1, {c.base, at, size, 0, size});
      if (c.type == Type::b1)
        v = code_.pure(Op::ne, Type::b1, {v, code_.u32(0)});
      else if (held != c.type)
        v = code_.pure(Op::convert, c.type, {v});
      code_.set(c.local, v);
    }
  }

 private:
  Id place(Id slot) const {
    return code_.pure(Op::add, Type::u32, {code_.pure(Op::mul, Type::u32, {slot, code_.lanes}), code_.lane});
  }

  AdjointCode& code_;
  std::vector<Component> components_;
};

/// The states of some successive iterations in locals, so that reversing one costs a few selections instead of loads
/// from a slot. They are as many, up to 8, as fit 32 locals.
class Window {
 public:
  Window(AdjointCode& code, const std::vector<Component>& components) : code_(code), components_(components) {
    const auto count = static_cast<std::uint32_t>(components_.size());
    size_ = std::clamp(32u / std::max(count, 1u), 1u, 8u);
    if (size_ == 1) return;
    for (const Component& c : components_)
      for (std::uint32_t place = 0; place < size_; ++place) {
        locals_.push_back(code_.builder.local(c.type));
        code_.set(locals_.back(), code_.get(c.local));
      }
  }
  std::uint32_t size() const { return size_; }
  void save(Id at) const {
    if (size_ == 1) return;
    for (std::uint32_t place = 0; place < size_; ++place) {
      const Id here = code_.pure(Op::eq, Type::b1, {at, code_.u32(place)});
      for (std::size_t c = 0; c < components_.size(); ++c) {
        const std::uint32_t local = locals_[c * size_ + place];
        const Id now = code_.get(components_[c].local);
        code_.set(local, code_.pure(Op::select, components_[c].type, {here, now, code_.get(local)}));
      }
    }
  }
  void restore(Id at) const {
    if (size_ == 1) return;
    for (std::size_t c = 0; c < components_.size(); ++c) {
      Id found = code_.get(locals_[c * size_]);
      for (std::uint32_t place = 1; place < size_; ++place) {
        const Id here = code_.pure(Op::eq, Type::b1, {at, code_.u32(place)});
        found = code_.pure(Op::select, components_[c].type, {here, code_.get(locals_[c * size_ + place]), found});
      }
      code_.set(components_[c].local, found);
    }
  }

 private:
  AdjointCode& code_;
  const std::vector<Component> components_;  ///< those of the slots without the unit
  std::uint32_t size_ = 1;
  std::vector<std::uint32_t> locals_;  ///< by component and place
};

}  // namespace

/// One loop that is reversed from saved states. A unit is as many iterations as the window holds; the last one may be
/// shorter. If the loop uses the undo log, the height of the log is part of each state, and restoring a state rolls the
/// log back to it.
class Reverser::Checkpoints {
 public:
  Checkpoints(Reverser& reverser, Id loop, const LoopGradients& gradients, Id trips)
      : r_(reverser),
        loop_(loop),
        plan_(reverser.analysis.plan(loop)),
        gradients_(gradients),
        trips_(trips),
        slots_(reverser),
        height_(add_carried()),
        window_(reverser, slots_.components()),
        unit_(add(Type::u32, r_.u32(0))),
        iteration_(local()) {
    r_.scratch_most_ = std::max(r_.scratch_most_, r_.scratch_now_);
  }

  void reverse();

 private:
  std::uint32_t add_carried();
  std::uint32_t add(Type type, Id first);
  Id units() const;
  Id start_of(Id unit) const { return r_.pure(Op::mul, Type::u32, {unit, r_.u32(window_.size())}); }
  void map_state(Id iteration);
  void step();
  void advance(Id by);
  void fill_slots();
  void reverse_unit(Id unit);
  Id split(Id gap, Id free);
  template <class Body>
  void count_down(Id times, Body body);

  void save_height() {
    if (plan_.replays_stores) r_.set(height_, r_.undo_.height());
  }
  void restore_height() {
    if (plan_.replays_stores) r_.undo_.roll_back(r_.get(height_));
  }

  Loc loc() const { return r_.from[loop_].loc(); }
  std::uint32_t local() { return r_.builder.local(Type::u32); }
  Id sum(Id a, Id b) const { return r_.pure(Op::add, Type::u32, {a, b}); }
  Id difference(Id a, Id b) const { return r_.pure(Op::sub, Type::u32, {a, b}); }
  Id exceeds(Id a, std::uint32_t n) const { return r_.pure(Op::lt, Type::b1, {r_.u32(n), a}); }
  Id both(Id a, Id b) const { return r_.pure(Op::bit_and, Type::b1, {a, b}); }

  Reverser& r_;
  const Id loop_;
  const LoopPlan& plan_;
  const LoopGradients& gradients_;
  const Id trips_;
  // Locals, in the order in which they are made. reverse() makes those that are kNone here.
  Slots slots_;                    ///< the carried values, the height of the log if it is used, the unit
  const std::uint32_t height_;     ///< of the log; kNone if it is not used
  const Window window_;            ///< the components of the slots without the unit
  const std::uint32_t unit_;       ///< the unit that begins with the present state
  const std::uint32_t iteration_;  ///< the number of the next step
  std::uint32_t end_ = kNone;      ///< the first unit that has been reversed
  std::uint32_t top_ = kNone;      ///< the topmost slot
  std::uint32_t saved_ = kNone;    ///< the unit that begins with the state in the topmost slot
  std::uint32_t arrival_ = kNone;  ///< the unit to which advance() goes
};

/// Adds the carried values and, if the log is used, its height. Returns the local of the height, or kNone.
std::uint32_t Reverser::Checkpoints::add_carried() {
  for (std::uint32_t k : plan_.state)
    add(r_.from[r_.analysis.param(loop_, k)].type, r_.value(r_.from.arg(loop_, static_cast<int>(k))));
  return plan_.replays_stores ? add(Type::u32, r_.undo_.height()) : kNone;
}

/// Adds a component whose present value is `first`. Returns its local.
std::uint32_t Reverser::Checkpoints::add(Type type, Id first) {
  const std::uint32_t local = r_.builder.local(type);
  r_.set(local, first);
  const Id base = r_.pure(Op::add, Type::u64,
                          {r_.array_base(r_.extra.scratch),
                           r_.pure(Op::mul, Type::u64, {r_.lanes64, r_.constant(Type::u64, r_.scratch_now_)})});
  r_.scratch_now_ += r_.slots_ * static_cast<std::uint32_t>(bytes(held_as(type)));
  slots_.add({type, local, base});
  return local;
}

Id Reverser::Checkpoints::units() const {
  const std::uint32_t size = window_.size();
  return size == 1 ? trips_ : r_.pure(Op::div, Type::u32, {sum(trips_, r_.u32(size - 1)), r_.u32(size)});
}

void Reverser::Checkpoints::map_state(Id iteration) {
  for (std::size_t i = 0; i < plan_.state.size(); ++i)
    r_.map(r_.analysis.param(loop_, plan_.state[i]), r_.get(slots_.components()[i].local));
  r_.map_affine(loop_, iteration);
}

/// Runs the next iteration, which takes the present state to the one after it.
void Reverser::Checkpoints::step() {
  map_state(r_.get(iteration_));
  for (Id inner : r_.body_of(loop_)) r_.forward(inner, kStepCopy, false);
  std::vector<Id> next;
  for (std::uint32_t k : plan_.state) next.push_back(r_.value(r_.analysis.yielded(r_.from[loop_].regions[1], k)));
  for (std::size_t i = 0; i < next.size(); ++i) r_.set(slots_.components()[i].local, next[i]);
  r_.set(iteration_, sum(r_.get(iteration_), r_.u32(1)));
}

/// Emits a loop that counts down:
///
///   for (left = times - 1 .. 0) body(left)
template <class Body>
void Reverser::Checkpoints::count_down(Id times, Body body) {
  const std::uint32_t left = local();
  r_.set(left, times);
  r_.builder.open_loop({}, loc());
  r_.builder.loop_body(exceeds(r_.get(left), 0));
  r_.set(left, difference(r_.get(left), r_.u32(1)));
  body(r_.get(left));
  r_.builder.close_loop();
}

/// Takes the present state `by` units further:
///
///   iteration = start of unit
///   for (iterations of `by` units) step
///   unit += by
void Reverser::Checkpoints::advance(Id by) {
  r_.set(iteration_, start_of(r_.get(unit_)));
  r_.set(arrival_, sum(r_.get(unit_), by));
  count_down(start_of(by), [&](Id) { step(); });
  r_.set(unit_, r_.get(arrival_));
}

/// Reverses all units, from the last to the first:
///
///   end = units; top = 0; save the state in slot 0
///   while (0 < end) {
///     restore the state of slot top; saved = unit
///     fill slots
///     last = end - 1
///     advance to last
///     reverse unit last
///     if (saved == last && 0 < top) --top
///     end = last
///   }
void Reverser::Checkpoints::reverse() {
  const Id all = units();
  end_ = local();
  top_ = local();
  saved_ = local();
  arrival_ = local();
  r_.set(end_, all);
  r_.set(top_, r_.u32(0));
  slots_.save(r_.u32(0));
  r_.builder.open_loop({}, loc());
  r_.builder.loop_body(exceeds(r_.get(end_), 0));
  slots_.restore(r_.get(top_));
  r_.set(saved_, r_.get(unit_));
  restore_height();
  fill_slots();
  const Id last = difference(r_.get(end_), r_.u32(1));
  advance(difference(last, r_.get(unit_)));
  reverse_unit(last);
  // The slot with the state of the unit that was reversed is free again; slot 0 stays to the end.
  const Id is_saved = r_.pure(Op::eq, Type::b1, {r_.get(saved_), last});
  const Id done = both(is_saved, exceeds(r_.get(top_), 0));
  r_.set(top_,
         r_.pure(Op::sub, Type::u32, {r_.get(top_), r_.pure(Op::select, Type::u32, {done, r_.u32(1), r_.u32(0)})}));
  r_.set(end_, last);
  r_.builder.close_loop();
}

/// Fills slots above the topmost, on the way to the end. With two units left none is filled, because the second is
/// reached in one step and reversed at once.
///
///   while (2 < end - unit && top + 1 < slots) {
///     advance by split(end - unit, slots - 1 - top)
///     ++top; saved = unit
///     save the state in slot top
///   }
void Reverser::Checkpoints::fill_slots() {
  r_.builder.open_loop({}, loc());
  const Id end = r_.get(end_), gap = difference(end, r_.get(unit_));
  const Id free = difference(r_.u32(r_.slots_ - 1), r_.get(top_));
  const Id is_far = exceeds(gap, 2);
  r_.builder.loop_body(both(is_far, exceeds(free, 0)));
  advance(split(gap, free));
  r_.set(top_, sum(r_.get(top_), r_.u32(1)));
  r_.set(saved_, r_.get(unit_));
  save_height();
  slots_.save(r_.get(top_));
  r_.builder.close_loop();
}

/// Reverses the iterations of a unit, which begins with the present state:
///
///   first = start of unit; length = min(trips - first, size of the window)
///   for (length - 1 iterations) { keep the state in the window; step }
///   keep the state in the window
///   for (place = length - 1 .. 0) { take the state from the window; reverse iteration first + place }
void Reverser::Checkpoints::reverse_unit(Id unit) {
  const Id first = start_of(unit);
  const Id length = r_.pure(Op::min, Type::u32, {difference(trips_, first), r_.u32(window_.size())});
  r_.set(iteration_, first);
  const Id final = difference(length, r_.u32(1));
  count_down(final, [&](Id) {
    save_height();
    window_.save(difference(r_.get(iteration_), first));
    step();
  });
  save_height();
  window_.save(final);
  count_down(length, [&](Id place) {
    window_.restore(place);
    restore_height();
    map_state(sum(first, place));
    r_.reverse_iteration(loop_, gradients_);
  });
}

/// The number of units, 1 to gap - 1 of `gap`, after which the next of `free` slots is filled. It is computed in
/// float32, because a bound that is off by a rounding costs a step, not the result:
///
///   n = gap; s = free + 1; t = 0; b = 1                  // b = binomial(s + t, t)
///   if (n <= s) return 1                                 // all states fit, one by one
///   while (b < n) { ++t; b = b * (s + t) / t }
///   scale = b / (s + t)
///   return mean of max(1, n - scale * s) and min(n - 1, scale * t)
Id Reverser::Checkpoints::split(Id gap, Id free) {
  const auto f32 = [&](double x) { return r_.builder.constant_float(Type::f32, x); };
  const auto real = [&](Op op, Id a, Id b) { return r_.pure(op, Type::f32, {a, b}); };
  const Id n = r_.pure(Op::convert, Type::f32, {gap});
  const Id s = real(Op::add, r_.pure(Op::convert, Type::f32, {free}), f32(1));
  const std::uint32_t t = r_.builder.local(Type::f32), b = r_.builder.local(Type::f32);
  const Id fits = r_.pure(Op::le, Type::b1, {n, s});
  r_.set(t, f32(0));
  r_.set(b, r_.pure(Op::select, Type::f32, {fits, n, f32(1)}));
  r_.builder.open_loop();
  r_.builder.loop_body(r_.pure(Op::lt, Type::b1, {r_.get(b), n}));
  r_.set(t, real(Op::add, r_.get(t), f32(1)));
  r_.set(b, real(Op::div, real(Op::mul, r_.get(b), real(Op::add, s, r_.get(t))), r_.get(t)));
  r_.builder.close_loop();
  const Id scale = real(Op::div, r_.get(b), real(Op::add, s, r_.get(t)));
  const Id low = real(Op::max, f32(1), real(Op::sub, n, real(Op::mul, scale, s)));
  const Id high = real(Op::min, real(Op::sub, n, f32(1)), real(Op::mul, scale, r_.get(t)));
  const Id middle = r_.pure(Op::convert, Type::u32, {real(Op::mul, real(Op::add, low, high), f32(0.5))});
  const Id bounded =
      r_.pure(Op::min, Type::u32,
              {r_.pure(Op::max, Type::u32, {middle, r_.u32(1)}), r_.pure(Op::sub, Type::u32, {gap, r_.u32(1)})});
  return r_.pure(Op::select, Type::u32, {fits, r_.u32(1), bounded});
}

void Reverser::reverse_checkpointed(Id id, const LoopGradients& gradients, Id trips) {
  const std::uint32_t before = scratch_now_;
  Checkpoints(*this, id, gradients, trips).reverse();
  scratch_now_ = before;
}

}  // namespace weft::ir

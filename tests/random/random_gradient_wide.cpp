// The parts of wide bodies that plain ones lack: arrays of other shapes, vectors, structs, functions, extrema, loops
// with other counters and shapes, numbers of fewer bits.
#include "random_gradient_body.h"

namespace weft::test {

using Sizes = GradientSizes;

// A wide body uses few kinds and few statements, because its adjoint has several times as many.
void GradientBody::draw_kinds() {
  budget_ = pick(9) + 4;
  for (int& kind : expressions_) kind = pick(12);
  for (int& kind : statements_) kind = pick(12);
  for (int k = pick(3); k > 0; --k) {
    const std::uint64_t seed = random_();
    functions_.push_back(func("random function", [seed](Double a, Double b, Int n, Arr<double> row) {
      return GradientBody(seed, a, b, n, row).results();
    }));
  }
  if (chance(3)) {
    buffer_ = std::make_unique<Vec<4, double>>();
    (*buffer_)[1] = wide_->shift;
  }
  extrema_ = std::make_unique<Int>(0);
  if (chance(2)) vectors_.push_back(Vec3d(wide_->poles[pick(Sizes::kThreads * Sizes::kPoints)]));
}

Int GradientBody::own_point() { return thread_ * Sizes::kPoints + (count() + pick(2)) % Sizes::kPoints; }

Double GradientBody::wide_expression(int depth) {
  const int below = depth > 0 ? depth - 1 : 0;
  switch (expressions_[pick(3)]) {
    case 0: return Double(wide_->grid((count() + pick(3)) % Sizes::kThreads, (count() + pick(4)) % Sizes::kRow));
    case 1: return Double(wide_->table(thread_, (count() + pick(4)) % Sizes::kRow));
    case 2: return Double(wide_->also[place()]);
    case 3: return Double(wide_->more[place()]) + wide_->picked[(count() + pick(4)) % Sizes::kPicked];
    case 4: {
      Vec3d v = vector(below);
      if (chance(3)) return length(v) * 0.7;
      return chance(2) ? v[count() % 3] : dot(v, Vec3d(wide_->poles[count() % (Sizes::kThreads * Sizes::kPoints)]));
    }
    case 5: {
      if (functions_.empty()) return leaf();
      const Function& f = functions_[std::size_t(pick(int(functions_.size())))];
      Double a = expression(below), b = leaf();
      auto [first, second] = f(a, b, count(), row_);
      return chance(2) ? first : first * 0.5 + second * 0.3;
    }
    case 6: {
      const auto own =
          grad(func("own gradient", [](Double a, Double b) -> Double { return sin(a) * b + a; }),
               [](Double a, Double b, Double g) { return std::tuple(g * (cos(a) * b + 1.0), g * sin(a)); });
      Double a = expression(below), b = leaf();
      return own(a, b) * 0.6;
    }
    case 7: {
      if (chance(3)) return Double(wide_->parts[thread_].weights[count() % 2]);
      if (chance(2)) return Double(wide_->parts[thread_].mass);
      Var<GradientPart<>> part = wide_->parts[thread_];
      return dot(part.at, vec3d{real(), real(), real()}) * 0.5;
    }
    case 8:
    case 9: {
      if (!use_.single && !use_.half) return wide_->shift * leaf();
      const bool half = use_.half && (!use_.single || chance(2));
      if (chance(3)) return narrow_->load(half, place());
      Double a = expression(below), b = leaf();
      return narrow_->compute(half, pick(NarrowNumbers::kKinds), a, b);
    }
    case 10:
      if (buffer_) return Double((*buffer_)[(count() + pick(4)) % 4]);
      [[fallthrough]];
    default: return wide_->shift + Double(count()) * 0.1;
  }
}

Vec3d GradientBody::vector(int depth) {
  switch (pick(6)) {
    case 0: {
      Double a = expression(depth), b = leaf();
      return Vec3d(a, b, Double(real()));
    }
    case 1: return Vec3d(wide_->points[own_point()]);
    case 2: return Vec3d(wide_->poles[(count() + pick(6)) % (Sizes::kThreads * Sizes::kPoints)]);
    case 3: return Vec3d(wide_->parts[thread_].at);
    case 4: {
      Vec3d a = Vec3d(wide_->points[own_point()]), b = Vec3d(wide_->poles[pick(6)]);
      return cross(a, b) * 0.4;
    }
    default: {
      if (vectors_.empty()) return Vec3d(wide_->points[own_point()]);
      Vec3d v = vectors_[std::size_t(pick(int(vectors_.size())))];
      return chance(3) ? v / sqrt(1.0 + length_sq(v)) : v;
    }
  }
}

void GradientBody::wide_statement(int depth) {
  switch (statements_[pick(4)]) {
    case 0:
      if (chance(2))
        wide_->also[place()] = expression(1);
      else
        wide_->also[place()] -= expression(1) * 0.4;
      return;
    case 1: {
      Int column = (count() + pick(4)) % Sizes::kRow;
      if (chance(2))
        wide_->table(thread_, column) = expression(1);
      else
        wide_->table(thread_, column) *= 0.5 + cos(expression(1)) * 0.4;
      return;
    }
    case 2: atomic_sub(wide_->out2[pick(Sizes::kOutputs)], expression(1)); return;
    case 3: return extremum();
    case 4: return change_points();
    case 5: return change_part();
    case 6:
      if (use_.single || use_.half) return change_narrow();
      var() = expression(2);
      return;
    case 7:
      if (buffer_)
        (*buffer_)[(count() + pick(4)) % 4] = expression(1);
      else
        var() = expression(2);
      return;
    case 8: {
      if (functions_.empty()) return counted_loop(depth);
      const Function& f = functions_[std::size_t(pick(int(functions_.size())))];
      Double a = expression(1), b = leaf();
      // The function may write to the array that it is given.
      auto [first, second] = f(a, b, count(), chance(2) ? row_ : wide_->also);
      var() = second;
      reals_.push_back(first);
      return;
    }
    case 9: return while_loop(depth);
    default: return counted_loop(depth);
  }
}

// Each value is moved by a number of its own: equal values would each have the gradient, which no difference shows.
void GradientBody::extremum() {
  Double value = expression(1) + real() * 0.01 + wide_->shift * 0.001;
  value += Double(*extrema_) * 0.0371 + Double(thread_) * 0.0113;
  *extrema_ += 1;
  const int at = pick(Sizes::kOutputs);
  if (chance(2))
    atomic_min(wide_->least[at], value);
  else
    atomic_max(wide_->most[at], value);
}

void GradientBody::change_points() {
  switch (pick(6)) {
    case 0: wide_->points[own_point()] = vector(1); return;
    case 1: wide_->points[own_point()] += vector(1) * 0.3; return;
    case 2: wide_->points[own_point()].y = expression(1); return;
    case 3: {
      Int component = count() % 3;
      wide_->points[own_point()][component] = expression(1);
      return;
    }
    case 4: {
      if (vectors_.empty()) return vectors_.push_back(vector(1));
      Vec3d& v = vectors_[std::size_t(pick(int(vectors_.size())))];
      v[count() % 3] = expression(1);
      v = v * 0.7 + vector(0) * 0.2;
      return;
    }
    default: vectors_.push_back(vector(1)); return;
  }
}

void GradientBody::change_part() {
  switch (pick(4)) {
    case 0: wide_->parts[thread_].mass += expression(1) * 0.5; return;
    case 1: wide_->parts[thread_].weights[(count() + pick(2)) % 2] = expression(1); return;
    case 2: wide_->parts[thread_].at = vector(1); return;
    default: {
      Var<GradientPart<>> part = wide_->parts[thread_];
      part.weights[pick(2)] = expression(1);
      If (condition()) {
        part.at = part.at * 0.5 + vector(0) * 0.3;
        part.kind += 1;
      }
      part.mass = part.mass * 0.5 + Double(part.kind) * 0.1;
      wide_->parts[thread_] = part;
    }
  }
}

void GradientBody::change_narrow() {
  const bool half = use_.half && (!use_.single || chance(2));
  switch (pick(5)) {
    case 0: return narrow_->store(half, place(), expression(1));
    case 1: return narrow_->update(half, place(), expression(1) * 0.5);
    case 2:
      if (use_.single) return narrow_->add(pick(Sizes::kOutputs), expression(1));
      [[fallthrough]];
    default: {
      Double start = expression(0);
      var() = narrow_->carry(half, start, Int(count() % 5),
                             [&](const Int& i) { return sin(expression(0) + Double(i)) * 0.5; });
    }
  }
}

void GradientBody::counted_loop(int depth) {
  if (depth >= 3) return void(var() = expression(1));
  const int length = pick(3) + 1;
  switch (pick(5)) {
    case 0:
      for (auto i : range(UInt(count() % 6))) loop_block(length, depth + 1, Int(i));
      return;
    case 1: {
      const unsigned step = unsigned(pick(3)) + 1;
      for (auto i : range(UInt(pick(3)), UInt(count() + 4), UInt(step))) loop_block(length, depth + 1, Int(i));
      return;
    }
    case 2: {
      const int step = -pick(3) - 1;
      for (auto i : range(Int(count() + 2), pick(2), step)) loop_block(length, depth + 1, i);
      return;
    }
    case 3:
      // Only the thread knows the step, which may have either sign.
      for (auto i : range(Int(2), Int(count() * 2), Int(count() % 3 - 1))) loop_block(length, depth + 1, i);
      return;
    default:
      for (auto i : range(Int64(5), Int64(count()) - 1, Int64(-2))) loop_block(length, depth + 1, Int(i) + 1);
  }
}

void GradientBody::while_loop(int depth) {
  if (depth >= 3) return void(var() = expression(1));
  switch (pick(5)) {
    case 0: {
      // This loop is left from the middle.
      Int turns = 0;
      While (turns < 6) {
        turns += 1;
        loop_block(1, depth + 1);
        If (condition()) Break();
        loop_block(pick(2), depth + 1);
      }
      return;
    }
    case 1: {
      // This loop goes through the bits of a number, and a loop inside uses up bits, too.
      UInt bits = UInt(count() * 5 + pick(8)) % 32u;
      While (bits != 0u) {
        Bool odd = (bits & 1u) == 1u;
        bits = bits >> 1u;  // first, so that Continue() cannot skip it
        If (odd) {
          loop_block(1, depth + 2);
        }
        While ((bits & 3u) == 2u) {
          bits = bits >> 2u;
          loop_block(1, depth + 2);
        }
      }
      return;
    }
    case 2: {
      // This loop lasts as long as an element that it changes is large.
      Int turns = 0, at = place();
      While (turns<5 && Double(row_[at]) * Double(row_[at])> 0.1) {
        turns += 1;
        row_[at] = row_[at] * 0.6 + sin(expression(0)) * 0.1;
        loop_block(pick(2), depth + 1);
      }
      return;
    }
    case 3: {
      // This loop counts down past zero, where the unsigned counter becomes large.
      UInt n = UInt(count() % 5), i = n - 1u;
      While (i < n) {
        Int at = Int(i);
        i -= 1u;
        loop_block(1, depth + 1, at);
      }
      return;
    }
    default: {
      // This is Newton's iteration, until it has converged.
      Double a = 1.0 + expression(0) * leaf() * 0.1, y = 1.0;
      a = a * a + 0.2;
      Int turns = 0;
      While (abs(y * y - a) > 1e-12 && turns < 12) {
        turns += 1;
        y = 0.5 * (y + a / y);
      }
      var() = y;
    }
  }
}

}  // namespace weft::test

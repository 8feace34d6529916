// The parts that plain and wide bodies share: expressions, conditions and statements over float64.
#include "random_gradient_body.h"

namespace weft::test {

GradientBody::GradientBody(std::uint64_t seed, const PlainArrays& arrays)
    : random_(seed), plain_(&arrays), row_(arrays.row), thread_(tid()) {}

GradientBody::GradientBody(std::uint64_t seed, const WideArrays& arrays, NarrowNumbers& narrow, NarrowUse use)
    : random_(seed),
      plain_(&arrays.plain),
      wide_(&arrays),
      narrow_(&narrow),
      use_(use),
      row_(arrays.plain.row),
      thread_(tid()) {}

GradientBody::GradientBody(std::uint64_t seed, const Double& a, const Double& b, const Int& n, const Arr<double>& row)
    : random_(seed), row_(row), thread_(tid()) {
  for (int& kind : palette_) kind = pick(22);
  reals_.push_back(Double(a));
  reals_.push_back(Double(b));
  ints_.push_back(Int(n));
}

std::tuple<Double, Double> GradientBody::results() {
  budget_ = 3;
  block(pick(3) + 1, 1);
  return {expression(1), Double(var())};
}

void GradientBody::trace() {
  // Each body uses few kinds of operations, because most of the time goes to the device's compiler.
  for (int& kind : palette_) kind = pick(22);
  if (wide_) draw_kinds();
  for (int k = 0; k < 3; ++k) reals_.push_back(Double(plain_->x[pick(GradientSizes::kInputs)]));
  ints_.push_back(Int(plain_->counts[thread_]));
  ints_.push_back(Int(thread_ + pick(3)));
  block(pick(4) + 2, 0);
  Double sum = 0.0;
  for (Double& v : reals_) sum += v * real();
  for (Vec3d& v : vectors_) sum += dot(v, vec3d{real(), real(), real()});
  if (buffer_) sum += (*buffer_)[count() % 4] * real();
  if (chance(2))
    row_[place()] = sum;
  else
    atomic_add(plain_->out[pick(GradientSizes::kOutputs)], sum);
}

Int GradientBody::place() { return thread_ * GradientSizes::kRow + (count() + pick(3)) % GradientSizes::kRow; }

Double GradientBody::leaf() {
  switch (pick(6)) {
    case 0: return Double(real());
    case 1: return plain_ ? Double(plain_->x[pick(GradientSizes::kInputs)]) : Double(var());
    case 2: return Double(row_[place()]);
    case 3: return plain_ ? Double(plain_->x[(count() + pick(3)) % GradientSizes::kInputs]) : Double(var());
    default: return Double(var());
  }
}

Double GradientBody::expression(int depth) {
  if (wide_ && chance(4)) return wide_expression(depth);
  if (depth == 0) return leaf();
  Double a = expression(depth - 1);
  switch (palette_[std::size_t(pick(5))]) {
    case 0: return sin(a * expression(depth - 1));
    case 1: return cos(a) * 0.9;
    case 2: return tanh(a + expression(depth - 1));
    case 3: return a * 0.6 - expression(depth - 1) * 0.3;
    case 4: return a / (2.0 + expression(depth - 1) * expression(0));
    case 5: return sqrt(1.0 + a * a) * 0.5;
    case 6: return exp(-a * a);
    case 7: return atan2(a, 2.5 + cos(expression(depth - 1)));
    case 8: return min(a, expression(depth - 1));
    case 9: return max(a, expression(depth - 1));
    case 10: return abs(a) * 0.7;
    case 11: return select(condition(), a, expression(depth - 1));
    case 12: return fma(a, 0.4, expression(depth - 1));
    case 13: return log(1.5 + a * a);
    case 14: return pow(1.2 + a * a, expression(0) * 0.3);
    case 15: return atan(a) + rsqrt(1.0 + a * a);
    case 16: return asin(tanh(a) * 0.9);
    case 17: return a * a * 0.4;
    case 18: return exp2(-a * a) + log2(2.0 + a * a);
    case 19: return cosh(tanh(a)) * 0.5;
    case 20: return a % 1.7;
    default: return a;
  }
}

Bool GradientBody::condition() {
  switch (pick(4)) {
    case 0: return Double(var()) < real();
    case 1: return count() % 2 == 0;
    case 2: return (count() + pick(3)) % 3 == 1;
    default: return Double(row_[place()]) > real() * 0.5;
  }
}

void GradientBody::block(int statements, int depth) {
  const std::size_t reals = reals_.size(), ints = ints_.size(), vectors = vectors_.size();
  for (int s = 0; s < statements && budget_ > 0; ++s, --budget_) statement(depth);
  // Variables that a block declares end with it.
  while (reals_.size() > reals) reals_.pop_back();
  while (ints_.size() > ints) ints_.pop_back();
  while (vectors_.size() > vectors) vectors_.pop_back();
}

void GradientBody::loop_block(int statements, int depth) {
  ++loops_;
  block(statements, depth);
  --loops_;
}

void GradientBody::loop_block(int statements, int depth, const Int& counter) {
  ints_.push_back(Int(counter));
  loop_block(statements, depth);
  ints_.pop_back();
}

void GradientBody::add_to_output(const Double& value) {
  if (plain_)
    atomic_add(plain_->out[pick(GradientSizes::kOutputs)], value);
  else
    var() = value;
}

void GradientBody::statement(int depth) {
  if (wide_ && chance(3)) return wide_statement(depth);
  if (!is_deep_ && depth < 2 && chance(60)) return deep();
  switch (pick(depth < 3 ? 14 : 7)) {
    case 0:
    case 1:
    case 2: var() = expression(2); return;
    case 3: row_[place()] = expression(1); return;
    case 4: row_[place()] += expression(1) * 0.5; return;
    case 5: reals_.push_back(expression(1)); return;
    case 6:
      if (chance(2))
        count() = (count() * 3 + pick(5)) % 5;
      else
        add_to_output(expression(1));
      return;
    case 7:
    case 8: {
      IfChain chain = if_(condition(), [&] {
        block(pick(3) + 1, depth + 1);
        leave(depth);
      });
      if (chance(2)) chain.else_([&] { block(pick(2) + 1, depth + 1); });
    }
      return;
    case 9:
    case 10:
    case 11:
      for (auto i : range(Int(chance(2) ? count() % 5 : Int(pick(6))))) loop_block(pick(3) + 1, depth + 1, i);
      return;
    case 12: {
      Int left = count() % 4 + 1;
      Double v = expression(0);
      While (left > 0 && v < 3.0) {
        left -= 1;
        v = v * 0.9 + expression(1) * 0.2;
        loop_block(pick(2), depth + 1);
      }
      var() = v;
      return;
    }
    default: reals_.push_back(Double(var())); return;
  }
}

/// Makes more branches than drivers nest: in a chain, inside each other, or each with an exit.
void GradientBody::deep() {
  const int most[] = {20, 100, 400};
  const int n = 5 + pick(most[pick(3)]);
  Int where = (thread_ * 7 + count()) % (n + 2);
  is_deep_ = true;
  switch (pick(plain_ ? 3 : 2)) {
    case 0: {
      auto chain = if_(where == 0, [&] { var() = expression(1); });
      for (int k = 1; k < n; ++k) {
        chain.elif_([&] { return where == k; },
                    [&] {
                      if (k % 8 == 0)
                        row_[place()] += expression(0) * 0.5;
                      else
                        var() = var() * real();
                    });
      }
      chain.else_([&] { var() = expression(1); });
      return;
    }
    case 1: return nest(where, 0, n);
    default:
      for (int k = 0; k < n; ++k) {
        If (where == k) {
          add_to_output(var() * real());
          Return();
        }
      }
  }
}

void GradientBody::nest(const Int& where, int k, int n) {
  if (k == n) {
    var() = expression(1);
    return;
  }
  Double before = k % 16 == 3 ? Double(var() * real()) : Double(0.1);
  auto chain = if_(where > k, [&] {
    nest(where, k + 1, n);
    if (k % 16 == 3) var() += before;
  });
  if (k % 4 == 1) chain.else_([&] { var() = var() * real(); });
}

void GradientBody::leave(int depth) {
  if (loops_ > 0 && chance(4)) return chance(2) ? Break() : Continue();
  if (plain_ && depth > 0 && chance(12)) Return();
}

}  // namespace weft::test

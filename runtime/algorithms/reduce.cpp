// Reductions by a tree whose shape depends on the number of elements alone: each thread reduces 32 neighbours in pairs,
// pairs of pairs, and so on, and the next launch the 32nd part that is left. So results are the same in every bit on
// all devices, whatever their subgroups, and no thread waits for another.
//
// Elements behind the end stand for what changes nothing: -0 in sums of reals (0 would turn a sum of -0), 0 in those of
// integers; in minima and maxima the last element once more, so that NaNs alone give NaN.
#include "reduce.h"

#include <limits>

#include "../tape_core.h"
#include "work.h"

namespace weft::detail {

namespace {

constexpr int kBranches = 32;

template <class T>
constexpr T nothing() {
  return RealScalar<T> ? T(-0.0) : T(0);
}

template <class T>
Var<T> combine(Reduction by, const Var<T>& a, const Var<T>& b) {
  if (by == Reduction::min) return min(a, b);
  if (by == Reduction::max) return max(a, b);
  return a + b;
}

/// The tree over elements [first, first + count), traced whole.
template <class T, class F>
Var<T> tree(Reduction by, int first, int count, const F& element) {
  if (count == 1) return element(first);
  return combine<T>(by, tree<T>(by, first, count / 2, element), tree<T>(by, first + count / 2, count / 2, element));
}

template <class T>
struct Kernels {
  /// Inner products multiply; the levels above add.
  static auto make(Reduction by, bool wide) {
    return kernel("reduce", [=](Arr<const T> a, Arr<const T> b, Arr<const vec<4, T>> a4, Arr<const vec<4, T>> b4,
                                Arr<T> out, Int n) {
      // The least and the largest are copies of elements.
      std::optional<tracing::AnyFloats> any;
      if (by == Reduction::min || by == Reduction::max) any.emplace();
      Int t = tid(), first = t * kBranches;
      const bool inner = by == Reduction::inner, adds = inner || by == Reduction::sum;
      Var<T> result = T(0);
      If (first + kBranches <= n) {
        std::vector<Var<T>> x;
        for (int q = 0; q < kBranches / 4 && wide; ++q) {
          const Vec<4, T> four = a4[t * (kBranches / 4) + q];
          for (int k = 0; k < 4; ++k) x.push_back(four[k]);
          if (!inner) continue;
          const Vec<4, T> factors = b4[t * (kBranches / 4) + q];
          for (int k = 0; k < 4; ++k) x[std::size_t(4 * q + k)] = x[std::size_t(4 * q + k)] * factors[k];
        }
        for (int k = 0; k < kBranches && !wide; ++k)
          x.push_back(inner ? a[first + k] * b[first + k] : Var<T>(a[first + k]));
        result = tree<T>(by, 0, kBranches, [&](int k) { return x[std::size_t(k)]; });
      }
      Else {
        result = tree<T>(by, 0, kBranches, [&](int k) {
          const Int i = min(first + k, n - 1);
          Var<T> x = a[i];
          if (inner) x = x * b[i];
          return adds ? select(first + k < n, x, nothing<T>()) : x;
        });
      }
      out[t] = result;
    });
  }
  using K = decltype(make(Reduction::sum, false));
  K kernels[4][2] = {{make(Reduction::sum, false), make(Reduction::sum, true)},
                     {make(Reduction::min, false), make(Reduction::min, true)},
                     {make(Reduction::max, false), make(Reduction::max, true)},
                     {make(Reduction::inner, false), make(Reduction::inner, true)}};
};

template <class T>
T of_none(Reduction by) {
  using Limits = std::numeric_limits<T>;
  if (by == Reduction::min) return RealScalar<T> ? Limits::infinity() : Limits::max();
  if (by == Reduction::max) return RealScalar<T> ? -Limits::infinity() : Limits::min();
  return T(0);
}

template <class T>
void reduce_levels(Work& work, Reduction by, Array<T> a, Array<T> b, const Array<T>& out) {
  static const Kernels<T> all;
  if (a.size() == 0) return set_first<T>(work, out, of_none<T>(by));
  for (;;) {
    const std::int64_t n = a.size(), results = ceil_div(n, kBranches);
    const Array<T> to = results == 1 ? out : work.take<T>(results);
    const bool wide = n >= kBranches && is_wide(a) && is_wide(b);
    const Array<vec<4, T>> a4 = Quads<T>(a), b4 = Quads<T>(b);
    work.run(all.kernels[int(by)][wide], results, a, b, a4, b4, to, n);
    if (results == 1) return;
    a = b = to;
    if (by == Reduction::inner) by = Reduction::sum;
  }
}

/// f(T()) with the type of the elements.
template <class F>
void with_type(ir::Type type, F f) {
  switch (type) {
    case ir::Type::i32: return f(std::int32_t());
    case ir::Type::u32: return f(std::uint32_t());
    case ir::Type::i64: return f(std::int64_t());
    case ir::Type::u64: return f(std::uint64_t());
    case ir::Type::f32: return f(float());
    case ir::Type::f64: return f(double());
    default: internal_error("a reduction of elements of another type");
  }
}

/// to[i] += factors[i] * gradient[0], for each i; without factors gradient[0] alone.
template <class T>
void add_scaled(const View& to, const View* factors, const View& gradient) {
  static const auto plain =
      kernel("gradient of a sum", [](Arr<T> to, Arr<const T> gradient) { to[tid()] += gradient[0]; });
  static const auto scaled =
      kernel("gradient of an inner product", [](Arr<T> to, Arr<const T> factors, Arr<const T> gradient) {
        Int i = tid();
        to[i] += factors[i] * gradient[0];
      });
  const Array<T> target = Row<T>(to), by = Row<T>(gradient);
  if (!factors) return launch(plain, target.size(), target, by);
  const Array<T> values = Row<T>(*factors);
  launch(scaled, target.size(), target, values, by);
}

class ReduceRecord : public TapeRecord {
 public:
  /// \param b  null for a sum
  ReduceRecord(TapeCore& tape, const ArrayBase& a, const ArrayBase* b, const ArrayBase& out, ir::Type type)
      : a_(a), out_(out), type_(type), to_a_(tape.carries(a)) {
    if (!b) return;
    b_ = View(*b);
    to_b_ = tape.carries(b_);
    if (to_b_) value_a_ = tape.version(a);
    if (to_a_) value_b_ = tape.version(b_);
  }

  void backward(TapeCore& tape) override {
    if (!tape.nonzero(out_)) return;
    View gradient = tape.gradient(out_);
    if (to_a_) add(tape, a_, value_b_.get(), gradient);
    if (to_b_) add(tape, b_, value_a_.get(), gradient);
    gradient.zero();
  }

 private:
  void add(TapeCore& tape, const View& x, const Version* factors, const View& gradient) const {
    const View to = tape.gradient(x);
    tape.mark_nonzero(x);
    std::optional<Version::Hold> held;
    if (factors) held.emplace(factors->hold());
    const View* const values = held ? &held->where() : nullptr;
    type_ == ir::Type::f64 ? add_scaled<double>(to, values, gradient) : add_scaled<float>(to, values, gradient);
  }

  const View a_, out_;
  View b_;
  const ir::Type type_;
  bool to_a_ = false, to_b_ = false;
  std::shared_ptr<Version> value_a_, value_b_;
};

const char* name_of(Reduction r) {
  constexpr const char* names[] = {"reduce_sum", "reduce_min", "reduce_max", "inner_product"};
  return names[int(r)];
}

std::uint64_t scratch(std::int64_t n, std::uint32_t element_bytes) {
  std::uint64_t bytes = 0;
  while ((n = ceil_div(n, kBranches)) > 1) bytes += scratch_piece(n, element_bytes);
  return bytes;
}

}  // namespace

std::uint64_t reduce_scratch_bytes(std::int64_t n, std::uint32_t element_bytes) {
  return scratch(checked_count("reduce", n), element_bytes);
}

void reduce(Reduction reduction, const ArrayBase& a, const ArrayBase* b, const ArrayBase& out, ir::Type type,
            const AlgorithmOptions& options) {
  Work work(name_of(reduction), options);
  work.takes(a, "the input");
  if (b) {
    work.takes(*b, "the second input");
    work.has_length(*b, "the second input", a.size());
    work.are_apart(*b, "the second input", out, "the output");
  }
  work.takes(out, "the output");
  work.has_length(out, "the output", 1);
  work.are_apart(a, "the input", out, "the output");
  if (reduction == Reduction::min || reduction == Reduction::max) {
    work.has_no_derivative(out, a, "the minimum or maximum of an array",
                           "let a kernel take the minimum or maximum, by atomic_min() or atomic_max()");
  } else if (Recorder* r = recorder()) {
    const ArrayBase* const from[] = {&a, b ? b : &a};
    r->deriving(out, from, [&](TapeCore& tape) { return std::make_unique<ReduceRecord>(tape, a, b, out, type); });
  }
  work.begin(scratch(a.size(), a.element_bytes()), &out);
  with_type(type, [&]<class T>(T) {
    const Array<T> x = Row<T>(a), to = Row<T>(out);
    reduce_levels<T>(work, reduction, x, b ? Row<T>(*b) : x, to);
  });
}

}  // namespace weft::detail

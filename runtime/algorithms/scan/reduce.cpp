// Reductions by a tree whose shape depends on the number of elements alone: each thread reduces 32 neighbours in pairs,
// pairs of pairs, and so on, and the next launch reduces the 32nd part that is left. Results therefore agree in every
// bit on all devices, whatever their subgroups, and no thread waits for another.
//
// Vectors, strided elements and sums in another type than the elements' are reduced by columns: one for each scalar of
// an element, each by that tree. From the second launch on the remaining numbers are contiguous.
//
// Elements beyond the end are replaced by neutral ones: -0 in sums of reals (0 would turn a sum of -0), 0 in those of
// integers; in minima and maxima the last element once more, so that NaNs alone give NaN.
#include "../reduce.h"

#include <limits>

#include "../../arrays/scalars.h"
#include "../../tape/tape_core.h"
#include "../common/call.h"

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

/// The tree over elements [first, first + count), fully unrolled.
template <class T, class F>
Var<T> tree(Reduction by, int first, int count, const F& element) {
  if (count == 1) return element(first);
  return combine<T>(by, tree<T>(by, first, count / 2, element), tree<T>(by, first + count / 2, count / 2, element));
}

template <class T>
struct Kernels {
  /// The first level. Inner products multiply there; the levels above add.
  static auto make(Reduction by, bool wide) {
    return kernel("reduce", [=](Arr<const T> a, Arr<const T> b, Arr<const vec<4, T>> a4, Arr<const vec<4, T>> b4,
                                Arr<T> out, Int n) {
      const tracing::AsWritten as_written;  // the same bits on every device
      // Minima and maxima are copies of elements.
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

/// The scalars of an array: its dimensions, and one for the scalars of an element. Contiguous elements of any shape
/// count as one dimension.
template <class T>
Array<T, 4> scalars_of(const ArrayBase& a, int scalars) {
  if (a.is_contiguous()) return Scalars<T>(View(a.storage(), a.address(), a.size(), a.element_bytes()), 0, scalars);
  return Scalars<T>(a, 0, scalars);
}
/// Whether element i of these is the one at (0, 0, i).
template <class T>
bool is_line(const Array<T, 4>& a) {
  return a.shape(0) * a.shape(1) == 1;
}

/// Element i of scalars_of() an array, in row-major order. \param line  result of is_line()
template <class A>
auto& scalar_at(const A& a, const Int& i, const Int& column, bool line) {
  if (line) return a(0, 0, i, column);
  const Int rows = i / a.shape(2);
  return a(rows / a.shape(1), rows % a.shape(1), i % a.shape(2), column);
}

/// Kernels that add up numbers of type T, by column, as numbers of type R.
template <class T, class R>
struct ColumnKernels {
  static auto make(Reduction by, bool line) {
    return kernel("reduce columns", [=](Arr<const T, 4> a, Arr<const T, 4> b, Arr<R, 2> out, Int n) {
      const tracing::AsWritten as_written;
      std::optional<tracing::AnyFloats> any;
      if (by == Reduction::min || by == Reduction::max) any.emplace();
      auto [t, column] = tid<2>();
      const Int first = t * kBranches;
      const bool inner = by == Reduction::inner, adds = inner || by == Reduction::sum;
      const auto element = [&, column = Int(column)](const Int& i) {
        const Var<R> x = cast<R>(Var<T>(scalar_at(a, i, column, line)));
        return inner ? x * cast<R>(Var<T>(scalar_at(b, i, column, line))) : x;
      };
      Var<R> result = R(0);
      If (first + kBranches <= n) {
        result = tree<R>(by, 0, kBranches, [&](int k) { return element(first + k); });
      }
      Else {
        result = tree<R>(by, 0, kBranches, [&](int k) {
          const Var<R> x = element(min(first + k, n - 1));
          return adds ? select(first + k < n, x, nothing<R>()) : x;
        });
      }
      out(t, column) = result;
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

/// The reduction of the levels above the first.
Reduction above(Reduction by) { return by == Reduction::inner ? Reduction::sum : by; }

template <class T>
void reduce_levels(AlgorithmCall& call, Reduction by, Array<T> a, Array<T> b, const Array<T>& out) {
  static const Kernels<T> all;
  for (;;) {
    const std::int64_t n = a.size(), results = ceil_div(n, kBranches);
    const Array<T> to = results == 1 ? out : call.take<T>(results);
    const bool wide = n >= kBranches && is_wide(a) && is_wide(b);
    const Array<vec<4, T>> a4 = Quads<T>(a), b4 = Quads<T>(b);
    call.run(all.kernels[int(by)][wide], results, a, b, a4, b4, to, n);
    if (results == 1) return;
    a = b = to;
    by = above(by);
  }
}

/// \param out  one number per column
template <class T, class R>
void reduce_columns(AlgorithmCall& call, Reduction by, const Array<T, 4>& a, const Array<T, 4>& b,
                    const Array<R>& out) {
  static const ColumnKernels<T, R> all;
  const int columns = int(a.shape(3));
  const std::int64_t n = a.shape(0) * a.shape(1) * a.shape(2), results = ceil_div(n, kBranches);
  const Array<R> left = results == 1 ? out : call.take<R>(results * columns);
  call.run(all.kernels[int(by)][is_line(a) && is_line(b)], {results, columns}, a, b,
           left.template reshape<2>({results, columns}), n);
  if (results == 1) return;
  if (columns == 1) return reduce_levels<R>(call, above(by), left, left, out);
  const Array<R, 4> next =
      scalars_of<R>(View(left.storage(), left.address(), results, std::uint32_t(columns * sizeof(R))), columns);
  reduce_columns<R, R>(call, above(by), next, next, out);
}

/// Calls f(T(), R()) with the types of the elements and of the results.
template <class F>
void with_types(const ReduceForm& form, F f) {
  if (form.in == ir::Type::f32 && form.out == ir::Type::f64) return f(float(), double());
  switch (form.in) {
    case ir::Type::i32: return f(std::int32_t(), std::int32_t());
    case ir::Type::u32: return f(std::uint32_t(), std::uint32_t());
    case ir::Type::i64: return f(std::int64_t(), std::int64_t());
    case ir::Type::u64: return f(std::uint64_t(), std::uint64_t());
    case ir::Type::f32: return f(float(), float());
    case ir::Type::f64: return f(double(), double());
    default: internal_error("a reduction of elements of another type");
  }
}

template <class T, class R>
struct GradientKernels {
  static auto make_plain(bool line) {
    return kernel("gradient of a sum", [=](Arr<T, 4> to, Arr<const R> gradient) {
      auto [i, column] = tid<2>();
      scalar_at(to, i, column, line) += cast<T>(Var<R>(gradient[column]));
    });
  }
  static auto make_scaled(bool line) {
    return kernel("gradient of an inner product", [=](Arr<T, 4> to, Arr<const T, 4> factors, Arr<const R> gradient) {
      auto [i, column] = tid<2>();
      const Var<R> factor = cast<R>(Var<T>(scalar_at(factors, i, column, line)));
      scalar_at(to, i, column, line) += cast<T>(Var<R>(factor * gradient[column]));
    });
  }
  decltype(make_plain(true)) plain[2] = {make_plain(false), make_plain(true)};
  decltype(make_scaled(true)) scaled[2] = {make_scaled(false), make_scaled(true)};
};

/// Adds gradient[k] to scalar k of each element, times the factors' scalar if there are factors.
template <class T, class R>
void add_scaled(const View& to, const View* factors, const View& gradient) {
  static const GradientKernels<T, R> all;
  const Array<R> by = Row<R>(gradient);
  const int columns = int(by.size());
  const Array<T, 4> target = scalars_of<T>(to, columns);
  const Extent threads{to.size(), columns};
  if (!factors) return launch(all.plain[is_line(target)], threads, target, by);
  const Array<T, 4> values = scalars_of<T>(*factors, columns);
  launch(all.scaled[is_line(target) && is_line(values)], threads, target, values, by);
}

class ReduceRecord : public TapeRecord {
 public:
  /// \param b  null for a sum
  ReduceRecord(TapeCore& tape, const ArrayBase& a, const ArrayBase* b, const ArrayBase& out, const ReduceForm& form)
      : a_(a), out_(out), form_(form), to_a_(tape.carries(a)) {
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
    with_types(form_, [&]<class T, class R>(T, R) {
      if constexpr (RealScalar<T>) add_scaled<T, R>(to, values, gradient);
    });
  }

  const View a_, out_;
  View b_;
  const ReduceForm form_;
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

void reduce(Reduction reduction, const ArrayBase& a, const ArrayBase* b, const ArrayBase& out, const ReduceForm& form,
            const AlgorithmOptions& options) {
  AlgorithmCall call(name_of(reduction), options);
  call.takes(a, "the input", a.ndim() <= 3);
  if (b) {
    call.takes(*b, "the second input", b->ndim() <= 3);
    call.has_length(*b, "the second input", a.size());
    for (int k = 0; k < a.ndim(); ++k)
      if (b->shape(k) != a.shape(k)) call.refuse(ErrorKind::invalid_argument, "the inputs are of different shapes");
    call.are_apart(*b, "the second input", out, "the output");
  }
  call.takes(out, "the output");
  call.has_length(out, "the output", 1);
  call.are_apart(a, "the input", out, "the output");
  if (reduction == Reduction::min || reduction == Reduction::max) {
    call.has_no_derivative(out, a, "the minimum or maximum of an array",
                           "let a kernel take the minimum or maximum, by atomic_min() or atomic_max()");
  } else if (recorder()) {
    const ArrayBase* const from[] = {&a, b ? b : &a};
    const MakeRecord record = [&](TapeCore& tape) { return std::make_unique<ReduceRecord>(tape, a, b, out, form); };
    tell_recorder({.kind = OperationKind::derive, .to = &out, .others = from, .record = &record});
  }
  call.begin(scratch(a.size(), out.element_bytes()), &out);
  with_types(form, [&]<class T, class R>(T, R) {
    const Array<R> to = Row<R>(out);
    if (a.size() == 0) return set_all<R>(call, to, of_none<R>(reduction));
    const ArrayBase& second = b ? *b : a;
    if constexpr (std::is_same_v<T, R>)
      if (form.scalars == 1 && a.is_contiguous() && second.is_contiguous())
        return reduce_levels<T>(call, reduction, Row<T>(a), Row<T>(second), to);
    reduce_columns<T, R>(call, reduction, scalars_of<T>(a, form.scalars), scalars_of<T>(second, form.scalars), to);
  });
}

}  // namespace weft::detail

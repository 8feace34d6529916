// The library's functions of vectors and matrices of any size.
#include <algorithm>

#include "../../../frontend/library/matrix.h"
#include "../../../frontend/library/vector.h"
#include "library.h"

namespace weft::python {

using ir::Op;
using ir::Type;

namespace {

using Kind = DType::Kind;

/// The components of a value as variables of type T.
template <class T>
struct Row {
  const Id* ids;
  Var<T> operator[](int k) const { return Var<T>(ids[k], detail::FromId{}); }
};

/// Component by component the function for numbers; numbers beside vectors stand for all components.
bool by_component(const char* name, std::span<const Operand> operands, std::vector<Result>& results);

bool are_vectors(std::span<const Operand> o, std::size_t n) {
  return o.size() == n &&
         std::ranges::all_of(o, [&](const Operand& v) { return v.is(Kind::vector) && v.dtype == o[0].dtype; });
}
/// Vectors of one type, or quaternions.
bool are_tuples(std::span<const Operand> o, std::size_t n) {
  return are_vectors(o, n) || (o.size() == n && std::ranges::all_of(o, [&](const Operand& v) {
                                 return v.is(Kind::quaternion) && v.dtype == o[0].dtype;
                               }));
}

template <class T>
Id id_of(const Var<T>& v) {
  return v.read({});
}

void give(std::vector<Result>& results, const DType& dtype, std::span<const Id> ids) {
  results.push_back({&dtype, Ids(ids)});
}
void give_one(std::vector<Result>& results, Type type, Id id) { give(results, scalar_type_of(type), {&id, 1}); }

/// The sum of the products of all scalars of two operands. Returns false if they are no numbers.
bool sum_products(std::span<const Operand> o, std::vector<Result>& results) {
  return for_scalar(o[0].dtype->type, [&]<class T>() {
    if constexpr (NumericScalar<T>) {
      const auto sum = detail::sum_of_products<Var<T>>(Row<T>{o[0].ids}, Row<T>{o[1].ids}, o[0].count());
      give_one(results, o[0].dtype->type, id_of<T>(sum));
      return true;
    } else {
      return false;
    }
  });
}

bool dot_of(std::span<const Operand> o, std::vector<Result>& results) {
  return are_tuples(o, 2) && sum_products(o, results);
}

bool length_sq_of(std::span<const Operand> o, std::vector<Result>& results) {
  if (!are_tuples(o, 1)) return false;
  const Operand twice[] = {o[0], o[0]};
  return dot_of(twice, results);
}

/// The components in the type in which lengths are computed.
template <class T, class W>
std::vector<Var<W>> widened(const Operand& o) {
  std::vector<Var<W>> wide;
  for (int k = 0; k < o.count(); ++k) wide.emplace_back(Var<T>(o.ids[k], detail::FromId{}));
  return wide;
}
template <class W>
struct WideRow {
  const std::vector<Var<W>>& values;
  const Var<W>& operator[](int k) const { return values[std::size_t(k)]; }
};

bool length_of(std::span<const Operand> o, std::vector<Result>& results) {
  return are_tuples(o, 1) && for_scalar(o[0].dtype->type, [&]<class T>() {
           if constexpr (RealScalar<T>) {
             using S = Var<T>;
             using W = lib::Wide<S>;
             const auto wide = widened<T, HostOf<W>>(o[0]);
             const S length = S(sqrt(detail::squared<W>(WideRow<HostOf<W>>{wide}, o[0].count())));
             give_one(results, o[0].dtype->type, id_of<T>(length));
             return true;
           } else {
             return false;
           }
         });
}

bool normalize_of(std::span<const Operand> o, std::vector<Result>& results) {
  return are_tuples(o, 1) && for_scalar(o[0].dtype->type, [&]<class T>() {
           if constexpr (RealScalar<T>) {
             using S = Var<T>;
             using W = lib::Wide<S>;
             const auto wide = widened<T, HostOf<W>>(o[0]);
             const int n = o[0].count();
             Ids ids{std::size_t(n)};
             detail::normalize_each<S, W>(WideRow<HostOf<W>>{wide}, n, o[0].is(Kind::quaternion) ? 3 : n,
                                          [&](int i, const S& x) { ids[std::size_t(i)] = id_of<T>(x); });
             results.push_back({o[0].dtype, ids});
             return true;
           } else {
             return false;
           }
         });
}

bool distance_of(std::span<const Operand> o, std::vector<Result>& results) {
  if (!are_vectors(o, 2) || !ir::is_float(o[0].dtype->type)) return false;
  Ids difference{std::size_t(o[0].count())};
  tracing::each(Op::sub, o[0].ids, 1, o[1].ids, 1, o[0].count(), difference.data(), here());
  const Operand between{o[0].dtype, difference.data()};
  return length_of({&between, 1}, results);
}

template <bool greatest>
bool extreme_of(std::span<const Operand> o, std::vector<Result>& results) {
  return are_vectors(o, 1) && for_scalar(o[0].dtype->type, [&]<class T>() {
           if constexpr (NumericScalar<T>) {
             const Row<T> v{o[0].ids};
             const Var<T> found =
                 greatest ? detail::greatest_of<Var<T>>(v, o[0].count()) : detail::least_of<Var<T>>(v, o[0].count());
             give_one(results, o[0].dtype->type, id_of<T>(found));
             return true;
           } else {
             return false;
           }
         });
}
bool min_of(std::span<const Operand> o, std::vector<Result>& results) {
  return extreme_of<false>(o, results) || by_component("min", o, results);
}
bool max_of(std::span<const Operand> o, std::vector<Result>& results) {
  return extreme_of<true>(o, results) || by_component("max", o, results);
}

template <bool greatest>
bool place_of(std::span<const Operand> o, std::vector<Result>& results) {
  return are_vectors(o, 1) && for_scalar(o[0].dtype->type, [&]<class T>() {
           if constexpr (NumericScalar<T>) {
             const Row<T> v{o[0].ids};
             const Var<int> place = detail::place_in<Var<T>>(v, o[0].count(), [](const auto& x, const auto& y) {
               if constexpr (greatest)
                 return x > y;
               else
                 return x < y;
             });
             give_one(results, Type::i32, id_of<int>(place));
             return true;
           } else {
             return false;
           }
         });
}

/// Joins booleans by an operation.
template <Op op>
bool joined(std::span<const Operand> o, std::vector<Result>& results) {
  if (!are_vectors(o, 1) || !ir::is_bool(o[0].dtype->type)) return false;
  Id all = o[0].ids[0];
  for (int k = 1; k < o[0].count(); ++k) all = tracing::binary(op, all, o[0].ids[k], here());
  give_one(results, Type::b1, all);
  return true;
}

/// A comparison by component.
template <Op op, bool swapped>
bool compared(std::span<const Operand> o, std::vector<Result>& results) {
  if (o.size() != 2 || o[0].dtype->type != o[1].dtype->type) return false;
  const int n = std::max(o[0].count(), o[1].count());
  for (const Operand& v : o)
    if (!(v.is(Kind::vector) && v.count() == n) && !v.is(Kind::scalar)) return false;
  if (o[0].dtype->is_struct() || (op != Op::eq && op != Op::ne && ir::is_bool(o[0].dtype->type))) return false;
  Ids ids{std::size_t(n)};
  const Operand &a = o[swapped ? 1 : 0], &b = o[swapped ? 0 : 1];
  tracing::each(op, a.ids, a.is(Kind::scalar) ? 0 : 1, b.ids, b.is(Kind::scalar) ? 0 : 1, n, ids.data(), here());
  const bool vectors = o[0].is(Kind::vector) || o[1].is(Kind::vector);
  results.push_back({vectors ? &vector_type_of(Type::b1, n) : &scalar_type_of(Type::b1), ids});
  return true;
}

// ---- Matrices

bool is_matrix(const Operand& o) { return o.is(Kind::matrix); }
bool is_square(std::span<const Operand> o) {
  return o.size() == 1 && is_matrix(o[0]) && o[0].dtype->rows == o[0].dtype->columns;
}

bool transposed(std::span<const Operand> o, std::vector<Result>& results) {
  if (o.size() != 1 || !is_matrix(o[0])) return false;
  const DType& t = *o[0].dtype;
  Ids ids{std::size_t(t.count())};
  for (int i = 0; i < t.rows; ++i)
    for (int j = 0; j < t.columns; ++j) ids[std::size_t(j * t.rows + i)] = o[0].ids[i * t.columns + j];
  results.push_back({&matrix_type_of(t.type, t.columns, t.rows), ids});
  return true;
}

bool outer_of(std::span<const Operand> o, std::vector<Result>& results) {
  if (o.size() != 2 || !o[0].is(Kind::vector) || !o[1].is(Kind::vector)) return false;
  const Type type = o[0].dtype->type;
  if (type != o[1].dtype->type || !ir::is_numeric(type)) return false;
  Ids ids{std::size_t(o[0].count() * o[1].count())};
  tracing::matmul(o[0].ids, o[1].ids, o[0].count(), 1, o[1].count(), ids.data(), here());
  results.push_back({&matrix_type_of(type, o[0].count(), o[1].count()), ids});
  return true;
}

bool diag_of(std::span<const Operand> o, std::vector<Result>& results) {
  if (o.size() != 1 || !o[0].is(Kind::vector)) return false;
  const int n = o[0].count();
  Ids ids{std::size_t(n * n)};
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) ids[std::size_t(i * n + j)] = i == j ? o[0].ids[i] : tracing::zero(o[0].dtype->type);
  results.push_back({&matrix_type_of(o[0].dtype->type, n, n), ids});
  return true;
}

bool get_diag_of(std::span<const Operand> o, std::vector<Result>& results) {
  if (!is_square(o)) return false;
  const int n = o[0].dtype->rows;
  Ids ids{std::size_t(n)};
  for (int i = 0; i < n; ++i) ids[std::size_t(i)] = o[0].ids[i * (n + 1)];
  results.push_back({&vector_type_of(o[0].dtype->type, n), ids});
  return true;
}

bool trace_of(std::span<const Operand> o, std::vector<Result>& results) {
  if (!is_square(o) || !ir::is_numeric(o[0].dtype->type)) return false;
  const int n = o[0].dtype->rows;
  Id sum = o[0].ids[0];
  for (int i = 1; i < n; ++i) sum = tracing::binary(Op::add, sum, o[0].ids[i * (n + 1)], here());
  give_one(results, o[0].dtype->type, sum);
  return true;
}

bool ddot_of(std::span<const Operand> o, std::vector<Result>& results) {
  return o.size() == 2 && is_matrix(o[0]) && o[0].dtype == o[1].dtype && sum_products(o, results);
}

template <Op op>
bool elementwise(std::span<const Operand> o, std::vector<Result>& results) {
  if (o.size() != 2 || o[0].dtype != o[1].dtype || !ir::is_numeric(o[0].dtype->type)) return false;
  if (!is_matrix(o[0]) && !o[0].is(Kind::vector)) return false;
  Ids ids{std::size_t(o[0].count())};
  tracing::each(op, o[0].ids, 1, o[1].ids, 1, o[0].count(), ids.data(), here());
  results.push_back({o[0].dtype, ids});
  return true;
}

/// A matrix of vectors, which are its rows or its columns.
template <bool rows>
bool of_vectors(std::span<const Operand> o, std::vector<Result>& results) {
  if (o.empty() || !are_vectors(o, o.size())) return false;
  const int n = int(o.size()), inside = o[0].count();
  Ids ids{std::size_t(n * inside)};
  for (int k = 0; k < n; ++k)
    for (int i = 0; i < inside; ++i) ids[std::size_t(rows ? k * inside + i : i * n + k)] = o[std::size_t(k)].ids[i];
  results.push_back(
      {rows ? &matrix_type_of(o[0].dtype->type, n, inside) : &matrix_type_of(o[0].dtype->type, inside, n), ids});
  return true;
}

// ---- Functions of numbers, by component

bool by_component(const char* name, std::span<const Operand> operands, std::vector<Result>& results) {
  const DType* shape = nullptr;
  for (const Operand& o : operands) {
    if (o.is(Kind::scalar)) continue;
    if (!o.is(Kind::vector) || (shape && shape->rows != o.dtype->rows)) return false;
    shape = o.dtype;
  }
  if (!shape) return false;
  std::vector<const DType*> types;
  for (const Operand& o : operands) types.push_back(&scalar_type_of(o.dtype->type));
  const Form* const found = find_form(name, types);
  if (!found || found->gives.size() != 1) return false;
  Ids ids{std::size_t(shape->rows)};
  for (int k = 0; k < shape->rows; ++k) {
    const Id* in[4];
    for (std::size_t i = 0; i < operands.size(); ++i) in[i] = operands[i].ids + (operands[i].is(Kind::scalar) ? 0 : k);
    found->run(in, &ids[std::size_t(k)]);
  }
  results.push_back({&vector_type_of(found->gives[0]->type, shape->rows), ids});
  return true;
}

constexpr const char* kByComponent = "(vectors of one size, beside numbers), by component";

}  // namespace

void add_sized_functions() {
// Functions of numbers that vectors have component by component. min and max replace this below.
#define WEFT_BY_COMPONENT(name)                                                                            \
  add_sized(                                                                                               \
      #name, [](std::span<const Operand> o, std::vector<Result>& r) { return by_component(#name, o, r); }, \
      kByComponent);
#define WEFT_VECTORS_true(name) WEFT_BY_COMPONENT(name)
#define WEFT_VECTORS_false(name)
#define WEFT_FUNCTION(name, arity, operands, result, host, traced, vectors) WEFT_VECTORS_##vectors(name)
#include "../../../frontend/types/functions.def"
#undef WEFT_FUNCTION
#undef WEFT_VECTORS_false
#undef WEFT_VECTORS_true
  WEFT_BY_COMPONENT(lerp)
  WEFT_BY_COMPONENT(step)
  WEFT_BY_COMPONENT(nonzero)
  WEFT_BY_COMPONENT(frac)
  WEFT_BY_COMPONENT(radians)
  WEFT_BY_COMPONENT(degrees)
#undef WEFT_BY_COMPONENT
  add_sized("dot", &dot_of, "(two vectors of one type, or quaternions)");
  add_sized("length_sq", &length_sq_of, "(a vector, a quaternion)");
  add_sized("length", &length_of, "(a vector of reals, a quaternion)");
  add_sized("normalize", &normalize_of, "(a vector of reals, a quaternion)");
  add_sized("distance", &distance_of, "(two vectors of reals)");
  add_sized("min", &min_of, "(a vector), or vectors of one size beside numbers, by component");
  add_sized("max", &max_of, "(a vector), or vectors of one size beside numbers, by component");
  add_sized("argmin", &place_of<false>, "(a vector)");
  add_sized("argmax", &place_of<true>, "(a vector)");
  add_sized("any", &joined<Op::bit_or>, "(a vector of bools)");
  add_sized("all", &joined<Op::bit_and>, "(a vector of bools)");
  add_sized("less", &compared<Op::lt, false>, kByComponent);
  add_sized("less_equal", &compared<Op::le, false>, kByComponent);
  add_sized("greater", &compared<Op::lt, true>, kByComponent);
  add_sized("greater_equal", &compared<Op::le, true>, kByComponent);
  add_sized("equal", &compared<Op::eq, false>, kByComponent);
  add_sized("not_equal", &compared<Op::ne, false>, kByComponent);
  add_sized("transpose", &transposed, "(a matrix)");
  add_sized("outer", &outer_of, "(two vectors)");
  add_sized("diag", &diag_of, "(a vector)");
  add_sized("get_diag", &get_diag_of, "(a square matrix)");
  add_sized("trace", &trace_of, "(a square matrix)");
  add_sized("ddot", &ddot_of, "(two matrices of one type)");
  add_sized("cw_mul", &elementwise<Op::mul>, "(two vectors or matrices of one type)");
  add_sized("cw_div", &elementwise<Op::div>, "(two vectors or matrices of one type)");
  add_sized("matrix_from_rows", &of_vectors<true>, "(vectors of one type)");
  add_sized("matrix_from_cols", &of_vectors<false>, "(vectors of one type)");
}

}  // namespace weft::python

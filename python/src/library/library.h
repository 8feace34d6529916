// The functions of weft's library for Python: each is the library's template, instantiated for the types that it takes.
#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "../../../frontend/language/flatten.h"
#include "../../../frontend/language/struct_var.h"
#include "../trace/ids.h"
#include "../types.h"

namespace weft::python {

/// The results of a call: types and their scalars, one after the other.
struct Result {
  const DType* dtype;
  Ids ids;
};

/// A function for certain types: reads the scalars of each argument, and writes those of all results.
struct Form {
  std::vector<const DType*> takes, gives;
  void (*run)(const Id* const* in, Id* out);
};
void add_form(const char* name, Form form);
/// The form of a function for these types, or null.
const Form* find_form(std::string_view name, std::span<const DType* const> types);

/// An argument of a function that is defined for any size: its type and scalars.
struct Operand {
  const DType* dtype;
  const Id* ids;

  int count() const { return dtype->count(); }
  bool is(DType::Kind kind) const { return dtype->kind == kind; }
};
/// A function of any size. Returns whether it takes these operands.
using Sized = bool (*)(std::span<const Operand> operands, std::vector<Result>& results);
/// \param forms  what it takes, for messages
void add_sized(const char* name, Sized function, const char* forms);

namespace detail_library {

template <class... T>
struct TypesOf {
  static std::vector<const DType*> get() { return {&TypeOf<T>::get()...}; }
};
template <class... T>
struct TypesOf<std::tuple<T...>> : TypesOf<T...> {};

template <class T, class V>
void put(const V& value, Id*& out) {
  const Var<T> v(value);
  detail::read_ids<T>(v, out, Loc{});
  out += detail::Layout<T>::count;
}
template <class T>
struct Put {
  template <class V>
  static void run(const V& value, Id* out) {
    put<T>(value, out);
  }
};
template <class... T>
struct Put<std::tuple<T...>> {
  template <class V>
  static void run(const V& values, Id* out) {
    std::apply([&](const auto&... v) { (put<T>(v, out), ...); }, values);
  }
};

template <class F, class R, class... P>
void run(const Id* const* in, Id* out) {
  [&]<std::size_t... K>(std::index_sequence<K...>) { Put<R>::run(F{}(detail::from_ids<P>(in[K])...), out); }
  (std::index_sequence_for<P...>{});
}

}  // namespace detail_library

/// Adds a function of C++ over traced values.
///
///     form<float, vec3, vec3>("dot", [](const auto& a, const auto& b) { return dot(a, b); });
///
/// \tparam R  the host type of the result, or a std::tuple of several
/// \tparam P  the host types of the parameters
template <class R, class... P, class F>
void form(const char* name, F) {
  add_form(name,
           {detail_library::TypesOf<P...>::get(), detail_library::TypesOf<R>::get(), &detail_library::run<F, R, P...>});
}

/// Calls f<T>() for the C++ type T of a scalar; false for none.
template <class F>
bool for_scalar(ir::Type type, F f) {
  switch (type) {
    case ir::Type::b1: return f.template operator()<bool>();
    case ir::Type::i8: return f.template operator()<std::int8_t>();
    case ir::Type::i16: return f.template operator()<std::int16_t>();
    case ir::Type::i32: return f.template operator()<std::int32_t>();
    case ir::Type::i64: return f.template operator()<std::int64_t>();
    case ir::Type::u8: return f.template operator()<std::uint8_t>();
    case ir::Type::u16: return f.template operator()<std::uint16_t>();
    case ir::Type::u32: return f.template operator()<std::uint32_t>();
    case ir::Type::u64: return f.template operator()<std::uint64_t>();
    case ir::Type::f16: return f.template operator()<half>();
    case ir::Type::f32: return f.template operator()<float>();
    case ir::Type::f64: return f.template operator()<double>();
    case ir::Type::none: break;
  }
  return false;
}

/// Calls f<T>() for each of the real types.
template <class F>
void for_reals(F f) {
  f.template operator()<half>();
  f.template operator()<float>();
  f.template operator()<double>();
}
template <class F>
void for_integers(F f) {
  f.template operator()<std::int8_t>();
  f.template operator()<std::int16_t>();
  f.template operator()<std::int32_t>();
  f.template operator()<std::int64_t>();
  f.template operator()<std::uint8_t>();
  f.template operator()<std::uint16_t>();
  f.template operator()<std::uint32_t>();
  f.template operator()<std::uint64_t>();
}

/// Scalars of the trace as a value of C++.
/// Errors: TypeError that names `what` for another number or other types of scalars.
template <class T>
Var<T> traced(const Ids& ids, const char* what) {
  check_ids(ids.span());
  const DType& dtype = TypeOf<T>::get();
  expect_count(ids.size(), std::size_t(dtype.count()), what);
  for (const Id id : ids.span()) expect_type(id, dtype.type, what);
  return detail::from_ids<T>(ids.data());
}

/// The id of a structure. Errors: TypeError for another value.
inline UInt64 traced_handle(Id id) {
  check_id(id);
  expect_type(id, ir::Type::u64, "the id of a structure");
  return UInt64(id, detail::FromId{});
}

/// Calls a function of the library in the kernel that is traced.
/// Errors: TypeError naming what the function takes.
std::vector<Result> call_library(const std::string& name, const std::vector<const DType*>& types,
                                 const std::vector<Ids>& values);

// The parts of the library.
void add_number_functions();
void add_sized_functions();
void add_matrix_functions();
void add_rotation_functions();
void add_random_functions();
void add_shape_functions();
void add_mesh_functions();
void add_volume_functions();

}  // namespace weft::python

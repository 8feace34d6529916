// Values of the kernel that is traced, as they cross to Python and back: tuples of numbers.
#pragma once
#include <nanobind/nanobind.h>

#include <cstddef>
#include <span>
#include <vector>

#include "../../../frontend/language/trace.h"

namespace weft::python {

namespace nb = nanobind;
using tracing::Id;

/// The scalars of a value. Up to sixteen are kept without an allocation.
class Ids {
 public:
  explicit Ids(std::size_t count = 0) { resize(count); }
  explicit Ids(std::span<const Id> ids) : Ids(ids.size()) { std::copy(ids.begin(), ids.end(), data()); }
  void resize(std::size_t count) {
    size_ = count;
    if (count > kInside) many_.resize(count);
  }
  std::size_t size() const { return size_; }
  Id* data() { return size_ > kInside ? many_.data() : inside_; }
  const Id* data() const { return size_ > kInside ? many_.data() : inside_; }
  Id& operator[](std::size_t k) { return data()[k]; }
  Id operator[](std::size_t k) const { return data()[k]; }
  std::span<const Id> span() const { return {data(), size_}; }

 private:
  static constexpr std::size_t kInside = 16;
  std::size_t size_ = 0;
  Id inside_[kInside];
  std::vector<Id> many_;
};

/// The place of Python's code that is being traced: see set_place().
Loc here();
void set_here(Loc loc);
/// Restores the place when code of another function has been traced.
struct CallerPlace {
  const Loc loc = here();
  CallerPlace() = default;
  CallerPlace(const CallerPlace&) = delete;
  ~CallerPlace() { set_here(loc); }
};
/// A place whose file's name lives for ever, as IR keeps it.
Loc place(std::string_view file, int line);

/// Forgets the variables of an earlier kernel, which an exception may have left.
void begin_variables();

/// Checks that values belong to the kernel that is traced.
/// Errors: Error(invalid_kernel) when none is traced; IndexError for other numbers.
void check_ids(std::span<const Id> ids);
inline void check_id(Id id) { check_ids({&id, 1}); }
/// The scalar type of a value of the current trace.
ir::Type type_of(Id id);

/// Refuses values of another number of scalars than are wanted.
/// Errors: TypeError that names `what`.
void expect_count(std::size_t given, std::size_t wanted, const char* what);
/// Errors: TypeError unless the value is of that type.
void expect_type(Id id, ir::Type type, const char* what);

/// A type by its code.
/// Errors: ValueError.
ir::Type type_from_code(int code);

}  // namespace weft::python

namespace nanobind::detail {
/// Values are tuples of ints in Python.
template <>
struct type_caster<weft::python::Ids> {
  NB_TYPE_CASTER(weft::python::Ids, const_name("tuple[int, ...]"))

  bool from_python(handle src, std::uint8_t, cleanup_list*) noexcept {
    if (!PyTuple_Check(src.ptr())) return false;
    const std::size_t n = std::size_t(PyTuple_Size(src.ptr()));
    value.resize(n);
    for (std::size_t k = 0; k < n; ++k) {
      const unsigned long id = PyLong_AsUnsignedLong(PyTuple_GetItem(src.ptr(), Py_ssize_t(k)));
      if (id == static_cast<unsigned long>(-1) && PyErr_Occurred()) {
        PyErr_Clear();
        return false;
      }
      value[k] = weft::tracing::Id(id);
    }
    return true;
  }
  static handle from_cpp(const weft::python::Ids& ids, rv_policy, cleanup_list*) noexcept {
    PyObject* const tuple = PyTuple_New(Py_ssize_t(ids.size()));
    if (!tuple) return {};
    for (std::size_t k = 0; k < ids.size(); ++k) {
      PyObject* const id = PyLong_FromUnsignedLong(ids[k]);
      if (!id) {
        Py_DECREF(tuple);
        return {};
      }
      PyTuple_SetItem(tuple, Py_ssize_t(k), id);
    }
    return tuple;
  }
};
}  // namespace nanobind::detail

// References to Python's objects that code of the library holds, and lets go on any thread.
#pragma once
#include <nanobind/nanobind.h>

#include <memory>

namespace weft::python {

namespace nb = nanobind;

/// Lets a reference go later, on a thread that holds the GIL and none of the library's locks: the end of an object may
/// run any code. May be called on any thread, with or without the GIL.
void drop_later(PyObject* object);
/// Lets go what drop_later() has collected. Under the GIL. Cost: a load where there is nothing.
void drop_now();

/// A reference that may end on any thread.
class Held {
 public:
  explicit Held(nb::object object) : object_(object.release().ptr()) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() { drop_later(object_); }
  /// Under the GIL.
  nb::handle get() const { return object_; }

 private:
  PyObject* object_;
};
/// A reference to an object that somebody else keeps for now, which keep() turns into one of its own: most references
/// of launches end before they are needed.
class Loan {
 public:
  explicit Loan(PyObject* object) : object_(object) {}
  Loan(const Loan&) = delete;
  ~Loan() {
    if (kept_) drop_later(object_);
  }
  /// Under the GIL, once.
  void keep() {
    Py_INCREF(object_);
    kept_ = true;
  }

 private:
  PyObject* object_;
  bool kept_ = false;
};

using HeldPointer = std::shared_ptr<Held>;
inline HeldPointer hold(nb::object object) { return std::make_shared<Held>(std::move(object)); }

}  // namespace weft::python

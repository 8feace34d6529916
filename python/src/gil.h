// Python's lock around code that waits, and around calls of Python's from other code.
#pragma once
#include <nanobind/nanobind.h>

namespace weft::python {

/// Lets other threads of Python run, to the end of the scope.
///
/// A thread that asks for the lock when Python has ended (a daemon's may) is ended by Python inside that question.
/// Before Python 3.14 that unwinds the stack, through code that must not throw: the process would be aborted. It sleeps
/// here instead, until the process ends.
class Released {
 public:
  Released() : state_(PyEval_SaveThread()) {}
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;
  ~Released();

 private:
  PyThreadState* state_;
};

/// Holds the lock, to the end of the scope, also on threads that are not Python's. As Released when Python has ended.
class Acquired {
 public:
  Acquired();
  Acquired(const Acquired&) = delete;
  Acquired& operator=(const Acquired&) = delete;
  ~Acquired() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

}  // namespace weft::python

// Asks for Python's lock on threads that Python may end there.
#include "gil.h"

#include <chrono>
#include <thread>
#if __has_include(<bits/cxxabi_forced.h>)
#include <cxxabi.h>
#endif

namespace weft::python {

namespace {

/// Calls a function that asks for the lock. Does not return if the thread is ended in it.
template <class F>
auto asking(F f) {
#if __has_include(<bits/cxxabi_forced.h>)
  try {
    return f();
  } catch (abi::__forced_unwind&) {  // which nobody may catch and go on
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }
#else
  return f();
#endif
}

}  // namespace

Released::~Released() {
  asking([this] { PyEval_RestoreThread(state_); });
}

Acquired::Acquired() : state_(asking([] { return PyGILState_Ensure(); })) {}

}  // namespace weft::python

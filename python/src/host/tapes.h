// The tape that records what Python does.
#pragma once
#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <thread>
#include <unordered_set>
#include <vector>

#include "../../../runtime/tape.h"
#include "arrays.h"

namespace weft::python {

/// A tape, with the scopes in which it records and the arrays that its launches were given.
class PyTape {
 public:
  explicit PyTape(const TapeOptions& options) : tape_(options) {}

  void begin();
  /// Errors: ValueError where begin() was not called, or on another thread.
  void end();
  void reset();
  Tape& tape() { return tape_; }
  /// Notes an array that a recorded launch or copy is given, if it has gradient storage.
  void note(nb::handle array);
  nb::list arrays() const;

  /// The tape that records on this thread, the innermost one; null: none.
  static PyTape* current();

 private:
  struct Open {
    std::unique_ptr<TapeScope> scope;
    std::thread::id thread;
    PyTape* outer;
  };
  Tape tape_;
  std::vector<Open> open_;
  std::vector<nb::object> arrays_;
  std::unordered_set<PyObject*> known_;
};

}  // namespace weft::python

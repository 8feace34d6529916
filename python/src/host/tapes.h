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

/// A tape, with the scopes in which it records, the arrays that its launches were given, and these launches as
/// Python made them.
class PyTape {
 public:
  explicit PyTape(const TapeOptions& options) : tape_(options) {}

  /// \param self  the object of this tape, which stays while it records
  void begin(nb::object self);
  /// Errors: ValueError where begin() was not called, or on another thread.
  void end();
  void reset();
  Tape& tape() { return tape_; }
  /// Notes an array that a recorded launch or copy is given, if it has gradient storage.
  void note(nb::handle array);
  nb::list arrays() const;
  /// Notes a launch, for Python's list of them.
  void note_launch(nb::tuple launch) { launches_.push_back(std::move(launch)); }
  /// The launches that were noted since the last call.
  nb::list take_launches();
  /// Keeps an object that the record holds, for the collector of cycles to see.
  void keep(HeldPointer object) { held_.push_back(std::move(object)); }

  /// For the collector of cycles: what is reached from the tape, and the end of all that.
  int traverse(visitproc visit, void* arg) const;
  void clear();

  /// The tape that records on this thread, the innermost one; null: none.
  static PyTape* current();

 private:
  struct Open {
    std::unique_ptr<TapeScope> scope;
    std::thread::id thread;
    PyTape* outer;
    nb::object self;  ///< not told to the collector: a tape that records is in use
  };
  Tape tape_;
  std::vector<Open> open_;
  std::vector<nb::object> arrays_;
  std::unordered_set<PyObject*> known_;
  std::vector<nb::tuple> launches_;
  std::vector<HeldPointer> held_;
};

}  // namespace weft::python

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
  ~PyTape() { drop_notes(); }

  /// \param self  the object of this tape, which stays while it records
  void begin(nb::object self);
  /// Errors: ValueError where begin() was not called, or on another thread.
  void end();
  void reset();
  Tape& tape() { return tape_; }
  /// Notes an array that a recorded launch or copy is given, if it has gradient storage.
  void note(nb::handle array);
  nb::list arrays() const;
  /// Begins to note a launch, for Python's list of them, and adds one of its arguments.
  /// \param about  the kernel, dim, device, block_dim, max_blocks and the code that calls
  /// \param place  in the code that calls: an instruction, or a line before Python 3.11
  void begin_note(std::initializer_list<PyObject*> about, Py_ssize_t inputs, Py_ssize_t outputs, int place);
  void add_to_note(PyObject* argument) { noted_.push_back(Py_NewRef(argument)); }
  /// Forgets the launch that was noted last.
  void drop_note();
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
  /// A launch: kAbout objects of noted_ describe it, and its arguments follow.
  struct Note {
    Py_ssize_t inputs, outputs;
    int place;
  };
  static constexpr std::size_t kAbout = 6;
  struct Open {
    std::unique_ptr<TapeScope> scope;
    std::thread::id thread;
    PyTape* outer;
    nb::object self;  ///< not told to the collector: a tape that records is in use
  };
  void drop_notes();
  Tape tape_;
  std::vector<Open> open_;
  std::vector<nb::object> arrays_;
  std::unordered_set<PyObject*> known_;
  std::vector<Note> launches_;
  std::vector<PyObject*> noted_;  ///< what launches_ are about, one after the other: references that the tape owns
  std::vector<HeldPointer> held_;
};

}  // namespace weft::python

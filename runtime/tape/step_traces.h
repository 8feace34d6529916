// What steps do to arrays, in hashes: tells when one does something else the second time. Internal to the runtime.
#pragma once
#include <map>
#include <optional>
#include <unordered_map>

#include "../../frontend/support/error.h"
#include "../work/observe.h"

namespace weft::detail {

class TapeCore;

/// The traces of the steps of one loop. Steps are numbered from 0; each runs once in that order before any is run
/// again.
///
/// Arrays that were there before a step are told apart by their storage, and must be the same ones the next time. Those
/// that the step makes are others each time: they count by the order in which the step first uses them. An array that a
/// step makes only when it is not there yet (scratch memory) keeps the number of the first time.
class StepTraces {
 public:
  /// While it lives, a run of a step, whose operations are told to the traces. Errors of those: Error(invalid_argument)
  /// for an operation that the step did not do there the first time.
  class Run {
   public:
    Run(TapeCore& tape, StepTraces& traces, int step);
    Run(const Run&) = delete;
    ~Run();
    /// The step is through.
    /// Errors: Error(invalid_argument) when it did not do the same as the first time, or made again what gradients
    /// want to go through.
    void end();

   private:
    TapeCore& tape_;
    StepTraces& traces_;
    bool through_ = false;
  };

  void launching(const CheckedLaunch& launch);
  void copying(const ArrayBase& to, const ArrayBase& from);
  void overwriting(const ArrayBase& to, const HostValues& values);
  void exposing(const ArrayBase& elements, const char* what);
  void untaped(const ArrayBase& to, const ArrayBase& from, std::span<const ArrayBase* const> others, const char* what);
  void calling(std::span<const ArrayBase* const> arrays);

  /// After a run, when nobody but the caller's handles keeps what the step made: notes what is still there.
  /// Errors: Error(invalid_argument) when that is an array with requires_grad() that stands for another one.
  void note_survivors(TapeCore& tape);

 private:
  /// Operations whose hashes are kept one by one, of all steps, so that a message can tell which differs.
  static constexpr std::size_t kMostOperations = 1 << 20;

  struct Step {
    std::uint64_t hash = 0;   ///< of all its operations
    std::uint64_t begin = 0;  ///< what has a greater serial is made by the step or later
    std::uint32_t operations = 0;
    std::size_t first_operation = SIZE_MAX;  ///< in operations_, where they are kept
  };
  /// An array that is still there when the step that made it has ended.
  struct Survivor {
    std::weak_ptr<Storage> storage;
    int step;
    std::size_t number = 0;   ///< among those that the step made: in the order in which it used them first
    bool used_later = false;  ///< by another step
  };
  struct Operation {
    const char* what;
    const KernelCore* kernel = nullptr;
  };

  void begin(int step);
  void end(TapeCore& tape);
  void put(std::uint64_t word) { words_.push_back(word); }
  void put(std::span<const std::byte> bytes);
  void put(std::span<const std::byte> value, std::span<const Leaf> leaves, std::uint32_t element_bytes);
  void put_addresses(const ArrayBase& to, const HostValues& values);
  void put_shape(const ArrayBase& a);
  void put(const ArrayBase& a);
  std::uint64_t number_of(const std::shared_ptr<Storage>& storage);
  void finish(const Operation& operation);
  void differ(const std::string& how, const Operation* operation);
  void check_survivors(TapeCore& tape);
  bool note_made(TapeCore& tape);

  std::vector<Step> steps_;
  std::vector<std::uint32_t> operations_;
  std::map<std::uint64_t, Survivor> survivors_;  ///< by serial: those of a step stand together
  std::size_t survivors_pruned_ = 64;

  // The step that runs
  int step_ = 0;
  bool again_ = false;
  Step now_;
  std::vector<std::weak_ptr<Storage>> made_;                     ///< in the order in which they were used first
  std::unordered_map<std::uint64_t, std::size_t> made_numbers_;  ///< by serial
  std::vector<std::uint64_t> words_;                             ///< of the operation
  std::optional<Error> difference_;
};

}  // namespace weft::detail

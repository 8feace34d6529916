// Hashes of what steps do to arrays, which show when a step does something else the second time. Internal to the
// runtime.
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
/// Arrays that existed before a step are identified by their storage, and must be the same ones the next time. Arrays
/// that the step makes are different ones each time, and count by the order in which the step first uses them. An array
/// that a step makes only if it does not exist yet (scratch memory) keeps the number of the first time.
class StepTraces {
 public:
  /// A run of a step, during whose lifetime operations are reported to the traces.
  /// Errors: operations throw Error(invalid_argument) if the step did not do the same there the first time.
  class Run {
   public:
    Run(TapeCore& tape, StepTraces& traces, int step);
    Run(const Run&) = delete;
    ~Run();
    /// Ends the step.
    /// Errors: Error(invalid_argument) if it did not do the same as the first time, or made an array anew through which
    /// gradients should pass.
    void end();

   private:
    TapeCore& tape_;
    StepTraces& traces_;
    bool through_ = false;
  };

  void hear(const HeardOperation& operation);

  /// Called after a run, when only the caller's handles keep what the step made: notes the arrays that are left.
  /// Errors: Error(invalid_argument) if one with requires_grad() takes the place of another one.
  void note_survivors(TapeCore& tape);

 private:
  /// Most operations, over all steps, whose hashes are kept one by one so that a message can name the one that differs.
  static constexpr std::size_t kMostOperations = 1 << 20;

  struct Step {
    std::uint64_t hash = 0;   ///< over all its operations
    std::uint64_t begin = 0;  ///< arrays with a greater serial are made by the step or later
    std::uint32_t operations = 0;
    std::size_t first_operation = SIZE_MAX;  ///< index in operations_, if they are kept
  };
  /// An array that outlives the step that made it.
  struct Survivor {
    std::weak_ptr<Storage> storage;
    int step;
    std::size_t number = 0;   ///< among those that the step made, in the order of their first use
    bool used_later = false;  ///< used by another step
  };
  void begin(int step);
  void end(TapeCore& tape);
  void put(std::uint64_t word) { words_.push_back(word); }
  void put(std::span<const std::byte> bytes);
  void put(std::span<const std::byte> value, std::span<const Leaf> leaves, std::uint32_t element_bytes);
  void put_addresses(const ArrayBase& to, const HostValues& values);
  void put_shape(const ArrayBase& a);
  void put(const ArrayBase& a);
  void put(const CheckedLaunch& launch);
  std::uint64_t number_of(const std::shared_ptr<Storage>& storage);
  void finish(const HeardOperation& operation);
  void differ(const std::string& how, const HeardOperation* operation);
  void check_survivors(TapeCore& tape);
  bool note_made(TapeCore& tape);

  std::vector<Step> steps_;
  std::vector<std::uint32_t> operations_;
  std::map<std::uint64_t, Survivor> survivors_;  ///< by serial: those of a step are neighbours
  std::size_t survivors_pruned_ = 64;

  // The running step.
  int step_ = 0;
  bool again_ = false;
  Step now_;
  std::vector<std::weak_ptr<Storage>> made_;                     ///< in the order of their first use
  std::unordered_map<std::uint64_t, std::size_t> made_numbers_;  ///< by serial
  std::vector<std::uint64_t> words_;                             ///< the current operation
  std::optional<Error> difference_;
};

}  // namespace weft::detail

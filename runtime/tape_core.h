// What stands behind Tape: which arrays carry gradients, what was recorded, and the walk back. Internal to the runtime.
#pragma once
#include <unordered_map>

#include "gradient.h"
#include "tape.h"
#include "versions.h"

namespace weft::detail {

class TapeCore;

/// One recorded operation.
class TapeRecord {
 public:
  virtual ~TapeRecord() = default;
  /// From the gradients behind the operation to those before it. Does nothing where those behind it are zero.
  virtual void backward(TapeCore& tape) = 0;
};
using Records = std::vector<std::unique_ptr<TapeRecord>>;

class TapeCore : public Recorder {
 public:
  explicit TapeCore(const TapeOptions& options) : options(options) {}

  const TapeOptions options;

  // What a tape records

  void launching(const CheckedLaunch& launch) override;
  void launched() override;
  void copying(const ArrayBase& to, const ArrayBase& from, std::span<const Leaf> leaves) override;
  void overwriting(const ArrayBase& to) override;
  void exposing(const ArrayBase& elements) override;
  void untaped(const ArrayBase& to, const ArrayBase& from, const char* what) override;
  void add_function(std::function<void()> backward, std::span<const ArrayBase* const> arrays);
  void add(std::unique_ptr<TapeRecord> record) { records_.push_back(std::move(record)); }

  /// Whether a gradient may pass through the elements of this memory: it has gradient storage, or something recorded
  /// computes them from such memory.
  bool carries(const ArrayBase& a) const;
  /// A recorded operation writes elements that depend on what carries gradients, or that carried them.
  void mark_written(const ArrayBase& a);
  /// The elements as they are at this point of the recording.
  std::shared_ptr<Version> version(const ArrayBase& a);

  // The way back

  void backward(std::span<const Seed> seeds);
  /// Goes back through these records.
  void walk(const Records& records);
  /// The gradients of an array as they are at this place of the way back.
  View gradient(const ArrayBase& a);
  /// Whether they may be other than zero.
  bool nonzero(const ArrayBase& a) const;
  void mark_nonzero(const ArrayBase& a);
  void zero();

  /// What is recorded from now on, instead of what was: to record a part again. Returns what was.
  Records exchange_records(Records records) { return std::exchange(records_, std::move(records)); }
  std::size_t size() const { return records_.size(); }

 private:
  struct Taped {
    std::shared_ptr<Storage> storage;
    bool carries = false;  ///< by what is recorded
    bool written = false;
    bool nonzero = false;
    std::shared_ptr<const Gradient> own;  ///< where the storage has none
    std::shared_ptr<LiveVersions> versions;
    /// While the way back begins with zeros: what grad() held before.
    View before;
  };
  /// By where the array's memory is; made when it is not there.
  Taped& taped(const ArrayBase& a);
  const Taped* find(const ArrayBase& a) const;
  void check(const Seed& seed) const;

  std::unordered_map<const Storage*, Taped> storages_;
  Records records_;
  std::unique_ptr<TapeRecord> pending_;  ///< the launch that is being made
};

}  // namespace weft::detail

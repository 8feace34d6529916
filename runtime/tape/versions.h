// What the elements of arrays were when something looked at them: kept in place as long as nobody changes them, else as
// a copy. Internal to the runtime.
#pragma once
#include <map>
#include <mutex>
#include <optional>

#include "../work/observe.h"

namespace weft::detail {

class LiveVersions;

/// The elements of an array at one moment. They stand in the array itself until something is about to change a part of
/// them, then in memory of their own, which lies as the array did (same distances, same alignment).
class Version {
 public:
  Version(std::shared_ptr<LiveVersions> live, const ArrayBase& elements) : live_(std::move(live)), where_(elements) {}
  Version(const Version&) = delete;
  ~Version();

  /// Where the elements are. While it lives they stay there: another thread that is about to change the array waits.
  /// What is to read them must be on its stream before its end, and must not change an array that it holds.
  class Hold {
   public:
    explicit Hold(const Version& version);
    const View& where() const { return version_->where_; }
    bool is_copy() const { return version_->copied_; }

   private:
    std::unique_lock<std::recursive_mutex> lock_;
    const Version* version_;
  };
  Hold hold() const { return Hold(*this); }
  /// Where they are for good, when they were copied.
  std::optional<View> copy() const;

 private:
  friend class LiveVersions;
  const std::shared_ptr<LiveVersions> live_;
  View where_;           // guarded by live_, as the next
  bool copied_ = false;  ///< into memory of their own, where they stay
};

/// The versions that stand in one storage itself. Thread-safe: any thread may be about to change it.
class LiveVersions : public Watcher, public std::enable_shared_from_this<LiveVersions> {
 public:
  /// The elements as the work recorded so far leaves them. Two askers share a version while nothing changes it.
  std::shared_ptr<Version> take(const ArrayBase& elements);
  /// Copies what the change would touch. Versions that overlap or touch each other share one copy of what they cover
  /// together. Cost: the time to find them grows with the logarithm of their number.
  void before_write(const ArrayBase& elements, StreamState& stream, const Change& change) override;
  bool needs(const ArrayBase& elements) override;

 private:
  friend class Version;
  struct Entry {
    View where;
    std::weak_ptr<Version> version;
  };
  using Entries = std::multimap<std::uint64_t, Entry>;
  /// In one storage, in order of address.
  static void save(std::span<const std::shared_ptr<Version>> versions, StreamState& stream);
  /// The version is gone.
  void forget(const View& where);

  /// Who holds a version may change other parts of the array.
  std::recursive_mutex mutex_;
  /// By the number of bits of the length in bytes, then by the first address: what overlaps an interval begins at most
  /// such a length before it.
  std::map<int, Entries> by_length_;
};

}  // namespace weft::detail

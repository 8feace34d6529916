// Keeps elements of arrays as they were at some moment: in place as long as nothing changes them, then as a copy.
// Internal to the runtime.
#pragma once
#include <map>
#include <mutex>
#include <optional>

#include "../work/observe.h"

namespace weft::detail {

class LiveVersions;

/// The elements of an array at one moment. They stay in the array itself until some work is about to change a part of
/// them, then in memory of their own, with the array's distances and alignment.
class Version {
 public:
  Version(std::shared_ptr<LiveVersions> live, const ArrayBase& elements) : live_(std::move(live)), where_(elements) {}
  Version(const Version&) = delete;
  ~Version();

  /// The place of the elements. They stay there during its lifetime: another thread that is about to change the array
  /// waits. Work that reads them must be on its stream before that ends, and must not change an array that is held.
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
  /// The final place of the elements, if they were copied.
  std::optional<View> copy() const;

 private:
  friend class LiveVersions;
  const std::shared_ptr<LiveVersions> live_;
  View where_;           // guarded by live_, like the next
  bool copied_ = false;  ///< moved into memory of their own, where they stay
};

/// The versions whose elements are still in one storage. Thread-safe: any thread may be about to change it.
class LiveVersions : public Watcher, public std::enable_shared_from_this<LiveVersions> {
 public:
  /// The elements as the work recorded so far leaves them. Callers share a version until a change.
  std::shared_ptr<Version> take(const ArrayBase& elements);
  /// Copies the versions that the change would touch. Versions that overlap or touch each other share one copy of what
  /// they cover together. Cost: logarithmic in their number, to find them.
  void before_write(const ArrayBase& elements, StreamState& stream, const Change& change) override;
  bool needs(const ArrayBase& elements) override;

 private:
  friend class Version;
  struct Entry {
    View where;
    std::weak_ptr<Version> version;
  };
  using Entries = std::multimap<std::uint64_t, Entry>;
  /// Copies versions of one storage, in order of address.
  static void save(std::span<const std::shared_ptr<Version>> versions, StreamState& stream);
  /// Removes a version that ends.
  void forget(const View& where);

  /// Recursive, because a thread that holds a version may change other parts of the array.
  std::recursive_mutex mutex_;
  /// Keyed by the number of bits of the length in bytes, then by the first address: versions that overlap an interval
  /// begin at most such a length before it.
  std::map<int, Entries> by_length_;
};

}  // namespace weft::detail

// Compiled programs kept between runs: a folder of checked entries that may vanish or be damaged at any time.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace weft::backend {

/// A map from text to bytes on disk. Whatever goes wrong with the files, a lookup finds nothing and the caller builds
/// anew: no call throws. What keeps entries from being read or written (a folder in the place of one, a disk that is
/// full) is told on stderr, once in a process for each folder. Thread-safe; several processes may share a folder.
///
/// One entry is one file: a header (magic, format, sizes, checksum), the key, the payload. A file that is damaged,
/// cut short or holds another key counts as rejected and is deleted.
class DiskCache {
 public:
  /// An empty folder turns the cache off. When the entries outgrow `cap_bytes`, the oldest go.
  explicit DiskCache(std::filesystem::path folder, std::uint64_t cap_bytes = kDefaultCap);

  /// As the user asks for: WEFT_CACHE=0 (off), WEFT_CACHE_DIR (the folder), WEFT_CACHE_MB (the cap).
  static DiskCache from_environment();

  DiskCache(DiskCache&& other) noexcept;

  /// The bytes last put under `key`, or nothing. Cost: one file read.
  std::optional<std::vector<std::byte>> get(std::string_view key);

  /// Replaces what is there. Does nothing else when the folder cannot be written.
  void put(std::string_view key, std::span<const std::byte> bytes);

  /// Removes the oldest entries until the rest fits well into the cap, and what crashed writers left behind. put()
  /// calls it now and then.
  void evict();

  /// False when it is turned off.
  bool enabled() const { return !folder_.empty(); }
  /// Entries thrown away because they were not what they should be.
  std::uint64_t rejected() const { return rejected_.load(); }
  /// The file of a key, whether it exists or not.
  std::filesystem::path path_of(std::string_view key) const;
  const std::filesystem::path& folder() const { return folder_; }

  static constexpr std::uint64_t kDefaultCap = 512ull << 20;

 private:
  std::filesystem::path folder_;
  std::uint64_t cap_;
  std::atomic<std::uint64_t> rejected_{0};
  std::atomic<std::uint64_t> put_since_eviction_;  // bytes
};

}  // namespace weft::backend

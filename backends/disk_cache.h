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
/// anew: no call throws. Obstacles to reading or writing entries (a folder in the place of an entry, a full disk) are
/// reported on stderr, once per process and folder. Thread-safe; several processes may share a folder.
///
/// An entry is one file: a header (magic, format, sizes, checksum), the key, the payload. A file that is damaged,
/// truncated or holds another key counts as rejected and is deleted.
///
/// Machine code runs as it is found, and a checksum is no protection against an attacker. A cache of code reads only
/// files that nobody but the user can have written (platform::read_own_file()). A file that others may have written is
/// rejected; in a folder that others may write to, nothing is found and nothing is put.
class DiskCache {
 public:
  enum class Holds {
    data,  ///< what is checked before it is used, or what a driver checks
    code   ///< machine code
  };

  /// An empty folder turns the cache off. When the entries outgrow `cap_bytes`, the oldest go.
  explicit DiskCache(std::filesystem::path folder, std::uint64_t cap_bytes = kDefaultCap, Holds holds = Holds::data);

  /// The cache that the environment asks for: WEFT_CACHE=0 (off), WEFT_CACHE_DIR (the folder), WEFT_CACHE_MB (the cap).
  /// Code has a folder of its own in that folder, with as large a cap.
  static DiskCache from_environment(Holds holds = Holds::data);

  DiskCache(DiskCache&& other) noexcept;

  /// The bytes last put under `key`, or nothing. Cost: one file read.
  std::optional<std::vector<std::byte>> get(std::string_view key);

  /// Replaces the entry of `key`. Does nothing if the folder cannot be written.
  void put(std::string_view key, std::span<const std::byte> bytes);

  /// Removes the oldest entries until the rest fits well into the cap, and what crashed writers left. put() calls it
  /// now and then.
  void evict();

  /// False if the cache is turned off.
  bool enabled() const { return !folder_.empty(); }
  /// Entries discarded because they were damaged or held another key.
  std::uint64_t rejected() const { return rejected_.load(); }
  /// The file of a key, whether it exists or not.
  std::filesystem::path path_of(std::string_view key) const;
  const std::filesystem::path& folder() const { return folder_; }

  static constexpr std::uint64_t kDefaultCap = 512ull << 20;

 private:
  std::optional<std::vector<std::byte>> read(const std::filesystem::path& path);
  void reject(const std::filesystem::path& path);

  std::filesystem::path folder_;
  std::uint64_t cap_;
  Holds holds_;
  std::atomic<std::uint64_t> rejected_{0};
  std::atomic<std::uint64_t> put_since_eviction_;  // bytes
};

}  // namespace weft::backend

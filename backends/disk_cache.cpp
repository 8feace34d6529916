// Entries of the disk cache: their format, their verification, and the order in which they are evicted.
#include "disk_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>
#include <set>
#include <string>

#include "../frontend/support/hash.h"
#include "../frontend/support/platform.h"

namespace weft::backend {

namespace {

constexpr std::array<char, 8> kMagic = {'w', 'e', 'f', 't', 'c', 'a', 'c', 'h'};
constexpr std::uint32_t kFormat = 1;
constexpr const char* kExtension = ".weft";

struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint32_t format = kFormat;
  std::uint32_t key_bytes = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t checksum = 0;  // of key and payload, seeded by their sizes
};
static_assert(sizeof(Header) == 32, "the header is written as it lies in memory");

// The sizes go into the seed, so that a file whose header alone is damaged does not pass.
std::uint64_t checksum(const Header& header, std::span<const std::byte> key_and_payload) {
  return detail::hash64(key_and_payload, header.key_bytes * 0x9e3779b97f4a7c15ull + header.payload_bytes);
}

// The payload in a file's content, or nothing if it is not an entry of `key`.
std::optional<std::vector<std::byte>> unpack(std::span<const std::byte> content, std::string_view key) {
  Header header;
  if (content.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, content.data(), sizeof header);
  const std::span<const std::byte> rest = content.subspan(sizeof header);
  if (header.magic != kMagic || header.format != kFormat || header.key_bytes != key.size()) return std::nullopt;
  if (rest.size() < key.size() || rest.size() - key.size() != header.payload_bytes) return std::nullopt;
  if (!std::equal(key.begin(), key.end(), reinterpret_cast<const char*>(rest.data()))) return std::nullopt;
  if (checksum(header, rest) != header.checksum) return std::nullopt;
  const auto payload = rest.subspan(key.size());
  return std::vector<std::byte>(payload.begin(), payload.end());
}

std::vector<std::byte> pack(std::string_view key, std::span<const std::byte> payload) {
  Header header;
  header.key_bytes = static_cast<std::uint32_t>(key.size());
  header.payload_bytes = payload.size();
  std::vector<std::byte> content(sizeof header + key.size() + payload.size());
  std::byte* to = content.data() + sizeof header;
  std::memcpy(to, key.data(), key.size());
  if (!payload.empty()) std::memcpy(to + key.size(), payload.data(), payload.size());
  header.checksum = checksum(header, std::span<const std::byte>(content).subspan(sizeof header));
  std::memcpy(content.data(), &header, sizeof header);
  return content;
}

// Complains once per folder: if it kept silent, every run would compile the same kernels again and nobody would know
// why.
void complain(const std::filesystem::path& folder, const std::filesystem::path& entry, const std::string& why) {
  static std::mutex mutex;
  static auto* const told = new std::set<std::filesystem::path>;
  std::lock_guard lock(mutex);
  if (!told->insert(folder).second) return;
  std::fprintf(stderr,
               "weft: the cache cannot keep %s: %s. What belongs there is compiled anew in each run (WEFT_CACHE_DIR "
               "names another folder, WEFT_CACHE=0 goes without)\n",
               entry.string().c_str(), why.c_str());
}

// Names the obstacle at the path of an entry that cannot be read; empty if there is none.
std::string obstacle(const std::filesystem::path& path) {
  std::error_code error;
  switch (std::filesystem::status(path, error).type()) {
    case std::filesystem::file_type::not_found: return {};
    case std::filesystem::file_type::directory: return "a folder stands there";
    // The file is read once more, because another process may have put it there since.
    case std::filesystem::file_type::regular:
      return platform::read_file(path) ? "" : "the file that stands there cannot be read";
    case std::filesystem::file_type::none: return error.message();
    default: return "what stands there is no file";
  }
}

}  // namespace

// The first put() of a process scans the folder; later ones scan it only after a share of the cap was written.
DiskCache::DiskCache(std::filesystem::path folder, std::uint64_t cap_bytes, Holds holds)
    : folder_(std::move(folder)), cap_(cap_bytes), holds_(holds), put_since_eviction_(cap_bytes) {}

DiskCache::DiskCache(DiskCache&& other) noexcept
    : folder_(std::move(other.folder_)),
      cap_(other.cap_),
      holds_(other.holds_),
      rejected_(other.rejected_.load()),
      put_since_eviction_(other.put_since_eviction_.load()) {}

DiskCache DiskCache::from_environment(Holds holds) {
  const bool on = platform::environment_flag("WEFT_CACHE", true);
  const std::uint64_t megabytes = platform::environment_number("WEFT_CACHE_MB", kDefaultCap >> 20);
  std::filesystem::path folder = on ? platform::cache_folder() : std::filesystem::path();
  if (!folder.empty() && holds == Holds::code) folder /= "code";
  return DiskCache(std::move(folder), std::min<std::uint64_t>(megabytes, ~0ull >> 20) << 20, holds);
}

std::filesystem::path DiskCache::path_of(std::string_view key) const {
  return folder_ / (to_hex(detail::hash128(fmt::format("{}:{}", kFormat, key))) + kExtension);
}

void DiskCache::reject(const std::filesystem::path& path) {
  rejected_.fetch_add(1);
  platform::remove_file(path);
}

// The content of an entry's file, if there is one that may be trusted.
std::optional<std::vector<std::byte>> DiskCache::read(const std::filesystem::path& path) {
  if (holds_ == Holds::code) {
    platform::OwnFile file = platform::read_own_file(path);
    if (!file.folder_fault.empty()) complain(folder_, path, file.folder_fault);
    if (!file.fault.empty()) reject(path);
    return std::move(file.content);
  }
  auto content = platform::read_file(path);
  if (content) return content;
  if (const std::string why = obstacle(path); !why.empty()) complain(folder_, path, why);
  return std::nullopt;
}

std::optional<std::vector<std::byte>> DiskCache::get(std::string_view key) {
  if (!enabled()) return std::nullopt;
  try {
    const auto path = path_of(key);
    const auto content = read(path);
    if (!content) return std::nullopt;
    auto payload = unpack(*content, key);
    if (!payload) {
      reject(path);
      return std::nullopt;
    }
    // Entries that are used live longer. A grain of one hour spares most hits the write.
    platform::touch_file(path, 3600);
    return payload;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void DiskCache::put(std::string_view key, std::span<const std::byte> bytes) {
  if (!enabled() || bytes.size() > cap_) return;
  try {
    const auto content = pack(key, bytes);
    std::string why;
    const auto write = holds_ == Holds::code ? platform::write_own_file : platform::write_file;
    if (!write(path_of(key), content, &why)) return complain(folder_, path_of(key), why);
    if (put_since_eviction_.fetch_add(content.size()) >= cap_ / 16) evict();
  } catch (const std::exception&) {
  }
}

void DiskCache::evict() {
  if (!enabled()) return;
  try {
    put_since_eviction_.store(0);
    auto files = platform::list_files(folder_);
    std::uint64_t total = 0;
    std::erase_if(files, [&](const platform::FileInfo& file) {
      const auto extension = file.path.extension();
      // A temporary file of this age has lost its writer.
      if (extension == ".tmp" && file.path.stem().string().find(kExtension) != std::string::npos &&
          file.age_seconds > 3600)
        platform::remove_file(file.path);
      if (extension != kExtension) return true;
      total += file.bytes;
      return false;
    });
    if (total <= cap_) return;
    std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
    const std::uint64_t goal = cap_ - cap_ / 8;
    for (const auto& file : files) {
      if (total <= goal) break;
      if (platform::remove_file(file.path)) total -= file.bytes;
    }
  } catch (const std::exception&) {
  }
}

}  // namespace weft::backend

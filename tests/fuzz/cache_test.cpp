// Damaged entries of the disk cache: the cache returns what was put there, or nothing.
#include <weft/weft.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <vector>

#include "../../backends/disk_cache.h"
#include "../common/software_vulkan.h"
#include "inputs.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using test::below;
using test::one_in;
using test::Random;
using Bytes = std::vector<std::byte>;

class CacheFuzz : public testing::Test {
 protected:
  CacheFuzz() : folder_(platform::temporary_folder()) {}
  ~CacheFuzz() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  const fs::path folder_;
};

Bytes random_bytes(Random& random, std::size_t most) {
  Bytes bytes(below(random, most));
  for (std::byte& b : bytes) b = std::byte(random());
  return bytes;
}

// Damages an entry; may put values into the header's fields that sizes can have.
void damage_entry(Random& random, Bytes& content) {
  if (one_in(random, 3) && content.size() >= 32) {
    constexpr std::uint64_t kSizes[] = {0, 1, 31, 32, 0xffffffff, 0x100000000, ~0ull, ~0ull - 31};
    const std::uint64_t value = test::one_of(random, kSizes);
    const std::size_t at = 8 + 4 * below(random, 5);
    std::copy_n(std::as_bytes(std::span(&value, 1)).begin(), one_in(random, 2) ? 4 : 8,
                content.begin() + std::ptrdiff_t(at));
  } else {
    test::damage(random, content);
  }
}

TEST_F(CacheFuzz, damaged_entries_give_what_was_put_or_nothing) {
  backend::DiskCache cache(folder_);
  cache.put("another", Bytes(10, std::byte(7)));
  test::for_each_input(300, [&](Random& random) {
    const std::string key(1 + below(random, 100), char('a' + below(random, 26)));
    const Bytes payload = random_bytes(random, one_in(random, 10) ? 5000 : 200);
    cache.put(key, payload);
    const fs::path path = cache.path_of(key);
    const Bytes good = platform::read_file(path).value();
    Bytes content = good;
    damage_entry(random, content);
    if (one_in(random, 20)) content = platform::read_file(cache.path_of("another")).value_or(Bytes());
    ASSERT_TRUE(platform::write_file(path, content));
    const std::uint64_t rejected = cache.rejected();
    const auto found = cache.get(key);
    if (content == good) {
      EXPECT_EQ(found, payload);
    } else {
      EXPECT_EQ(found, std::nullopt);
      EXPECT_EQ(cache.rejected(), rejected + 1);
      EXPECT_FALSE(fs::exists(path)) << "a damaged entry goes";
    }
    cache.put(key, payload);
    EXPECT_EQ(cache.get(key), payload);
    platform::remove_file(path);
  });
}

// All files of a device in the cache are damaged, including the driver's own cache.
TEST_F(CacheFuzz, devices_compute_the_same_with_damaged_entries) {
  const auto before = platform::environment_folder("WEFT_CACHE_DIR");
  const auto on = platform::environment("WEFT_CACHE");
  platform::set_environment_folder("WEFT_CACHE_DIR", folder_);
  platform::set_environment("WEFT_CACHE", "1");
  const auto computes = [] {
    const Device device = Device::open(test::software_vulkan());
    Array<float> x = full<float>(device, 100, 3);
    launch(kernel("twice and one", [](Arr<float> a) { a[tid()] = 2 * a[tid()] + 1; }), 100, x);
    EXPECT_EQ(x.to_vector(), std::vector<float>(100, 7));
  };
  computes();
  // Opening a device takes as long as many entries.
  const std::uint64_t inputs = platform::environment_number("WEFT_FUZZ_INPUTS", 0);
  int left = int(std::max<std::uint64_t>(4, inputs / 500));
  test::for_each_input(4, [&](Random& random) {
    if (left-- <= 0) return;
    for (const platform::FileInfo& file : platform::list_files(folder_)) {
      Bytes content = platform::read_file(file.path).value();
      damage_entry(random, content);
      ASSERT_TRUE(platform::write_file(file.path, content));
    }
    computes();
  });
  platform::set_environment_folder("WEFT_CACHE_DIR", before);
  if (before.empty()) platform::set_environment("WEFT_CACHE_DIR", nullptr);
  platform::set_environment("WEFT_CACHE", on ? on->c_str() : nullptr);
}

}  // namespace
}  // namespace weft

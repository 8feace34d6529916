// The disk cache: what it returns, what it refuses, and what it drops first.
#include "../../backends/disk_cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <span>
#include <string>
#include <thread>

#include "../../frontend/support/error.h"
#include "../../frontend/support/hash.h"
#include "../../frontend/support/platform.h"
#include "environment.h"

namespace weft::backend {
namespace {

namespace fs = std::filesystem;
using test::Variable;

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

class DiskCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() /
              ("weft-cache-" + std::to_string(platform::process_id()) + "-" + std::string(test->name()));
    fs::remove_all(folder_);
  }
  void TearDown() override {
    std::error_code ignored;
    fs::permissions(folder_, fs::perms::owner_all, ignored);
    fs::remove_all(folder_, ignored);
  }

  // Overwrites one byte of an entry's file.
  static void flip(const fs::path& path, std::size_t at) {
    auto content = platform::read_file(path).value();
    content[at] ^= std::byte{1};
    ASSERT_TRUE(platform::write_file(path, content));
  }

  fs::path folder_;
};

TEST_F(DiskCacheTest, GivesBackWhatWasPut) {
  DiskCache cache(folder_);
  EXPECT_FALSE(cache.get("a"));
  cache.put("a", bytes_of("hello"));
  cache.put("b", {});
  EXPECT_EQ(cache.get("a"), bytes_of("hello"));
  EXPECT_EQ(cache.get("b"), bytes_of(""));
  cache.put("a", bytes_of("other"));
  EXPECT_EQ(DiskCache(folder_).get("a"), bytes_of("other")) << "another process must see it";
  EXPECT_EQ(cache.rejected(), 0u);
  for (const auto& file : platform::list_files(folder_)) EXPECT_EQ(file.path.extension(), ".weft");
}

TEST_F(DiskCacheTest, RefusesEveryFlippedByte) {
  DiskCache cache(folder_);
  cache.put("key", bytes_of("payload"));
  const fs::path path = cache.path_of("key");
  const std::size_t size = fs::file_size(path);
  for (std::size_t at = 0; at < size; ++at) {
    cache.put("key", bytes_of("payload"));
    flip(path, at);
    EXPECT_FALSE(cache.get("key")) << "byte " << at;
    EXPECT_FALSE(fs::exists(path)) << "a damaged entry must go";
  }
  EXPECT_EQ(cache.rejected(), size);
  cache.put("key", bytes_of("payload"));
  EXPECT_EQ(cache.get("key"), bytes_of("payload")) << "it is rebuilt";
}

TEST_F(DiskCacheTest, RefusesEveryOtherLength) {
  DiskCache cache(folder_);
  cache.put("key", bytes_of("payload"));
  const fs::path path = cache.path_of("key");
  const auto content = platform::read_file(path).value();
  std::uint64_t rejected = 0;
  for (std::size_t length = 0; length <= content.size() + 3; ++length) {
    if (length == content.size()) continue;
    auto changed = content;
    changed.resize(length);
    ASSERT_TRUE(platform::write_file(path, changed));
    EXPECT_FALSE(cache.get("key")) << length;
    EXPECT_EQ(cache.rejected(), ++rejected);
  }
}

TEST_F(DiskCacheTest, RefusesTheEntryOfAnotherKey) {
  DiskCache cache(folder_);
  cache.put("one", bytes_of("payload of one"));
  fs::copy_file(cache.path_of("one"), cache.path_of("two"));
  EXPECT_FALSE(cache.get("two"));
  EXPECT_EQ(cache.rejected(), 1u);
  EXPECT_EQ(cache.get("one"), bytes_of("payload of one"));
}

// Without this message, the same kernels would be compiled in each run, and nobody would know why.
TEST_F(DiskCacheTest, AFolderWhereTheEntryShouldBeIsToldOnce) {
  DiskCache cache(folder_);
  fs::create_directories(cache.path_of("key"));
  testing::internal::CaptureStderr();
  EXPECT_FALSE(cache.get("other"));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "an entry that is not there yet is nothing to tell of";
  testing::internal::CaptureStderr();
  EXPECT_FALSE(cache.get("key"));
  EXPECT_EQ(
      testing::internal::GetCapturedStderr(),
      "weft: the cache cannot keep " + cache.path_of("key").string() +
          ": a folder stands there. What belongs there is compiled anew in each run (WEFT_CACHE_DIR names another "
          "folder, WEFT_CACHE=0 goes without)\n");
  testing::internal::CaptureStderr();
  cache.put("key", bytes_of("x"));
  EXPECT_FALSE(cache.get("key"));
  EXPECT_FALSE(DiskCache(folder_).get("key"));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(cache.rejected(), 0u);
}

TEST_F(DiskCacheTest, WithoutAFolderToWriteItForgetsAndSaysSo) {
  std::ofstream(folder_) << "a file where the folder should be";
  DiskCache cache(folder_ / "below");
  testing::internal::CaptureStderr();
  cache.put("a", bytes_of("x"));
  EXPECT_EQ(testing::internal::GetCapturedStderr().find("weft: the cache cannot keep " + cache.path_of("a").string() +
                                                        ": Not a directory"),
            0u);
  EXPECT_FALSE(cache.get("a"));
  cache.evict();
}

TEST_F(DiskCacheTest, AReadOnlyFolderIsStillRead) {
  DiskCache cache(folder_);
  cache.put("a", bytes_of("x"));
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  cache.put("b", bytes_of("y"));
  EXPECT_EQ(cache.get("a"), bytes_of("x"));
}

TEST_F(DiskCacheTest, TheOldestGoFirst) {
  const std::string kilobyte(1000, 'x');
  DiskCache cache(folder_, 64 << 10);
  const auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 20; ++i) {
    cache.put("entry " + std::to_string(i), bytes_of(kilobyte));
    fs::last_write_time(cache.path_of("entry " + std::to_string(i)), now - std::chrono::minutes(100 - i));
  }
  std::ofstream(folder_ / "notes.txt") << "not the cache's";
  DiskCache small(folder_, 10 << 10);
  small.evict();
  std::uint64_t total = 0;
  for (const auto& file : platform::list_files(folder_))
    if (file.path.extension() == ".weft") total += file.bytes;
  EXPECT_LE(total, 10u << 10);
  EXPECT_GE(total, 7u << 10);
  EXPECT_FALSE(small.get("entry 0"));
  EXPECT_TRUE(small.get("entry 19"));
  EXPECT_TRUE(fs::exists(folder_ / "notes.txt"));
  EXPECT_EQ(small.rejected(), 0u);
}

TEST_F(DiskCacheTest, PuttingKeepsTheSizeNearTheCap) {
  const std::string kilobyte(1000, 'x');
  DiskCache cache(folder_, 32 << 10);
  for (int i = 0; i < 200; ++i) cache.put(std::to_string(i), bytes_of(kilobyte));
  std::uint64_t total = 0;
  for (const auto& file : platform::list_files(folder_)) total += file.bytes;
  EXPECT_LE(total, 40u << 10);
  EXPECT_TRUE(cache.get("199"));
}

TEST_F(DiskCacheTest, UseKeepsAnEntryYoung) {
  DiskCache cache(folder_);
  cache.put("a", bytes_of("x"));
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(50);
  fs::last_write_time(cache.path_of("a"), old);
  EXPECT_TRUE(cache.get("a"));
  EXPECT_GT(fs::last_write_time(cache.path_of("a")), old + std::chrono::hours(49));
}

TEST_F(DiskCacheTest, TheEnvironmentDecides) {
  const Variable folder("WEFT_CACHE_DIR", folder_.string().c_str());
  const Variable on("WEFT_CACHE", nullptr);
  const Variable megabytes("WEFT_CACHE_MB", nullptr);
  EXPECT_EQ(DiskCache::from_environment().folder(), folder_);
  {
    const Variable zero("WEFT_CACHE", "0");
    DiskCache off = DiskCache::from_environment();
    EXPECT_FALSE(off.enabled());
    off.put("a", bytes_of("x"));
    EXPECT_FALSE(off.get("a"));
    EXPECT_FALSE(fs::exists(folder_));
  }
  {
    const Variable zero("WEFT_CACHE_MB", "0");
    DiskCache none = DiskCache::from_environment();
    none.put("a", bytes_of("x"));
    EXPECT_FALSE(none.get("a")) << "a cap of 0 keeps nothing";
  }
  for (const char* text : {"many", "512 MiB", "-1", "99999999999999999999"}) {
    const Variable wrong("WEFT_CACHE_MB", text);
    try {
      DiskCache::from_environment();
      ADD_FAILURE() << text << " was taken for a number";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::invalid_argument);
      EXPECT_EQ(e.message(), "WEFT_CACHE_MB is '" + std::string(text) + "'; a non-negative number is needed");
    }
  }
}

TEST_F(DiskCacheTest, ThreadsMayShareIt) {
  DiskCache cache(folder_, 256 << 10);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string key = std::to_string(i % 10);
        cache.put(key, bytes_of(std::string(3000, char('a' + i % 10))));
        const auto got = cache.get(std::to_string((i + t) % 10));
        if (got) {
          EXPECT_EQ(*got, bytes_of(std::string(3000, char('a' + (i + t) % 10))));
        }
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(cache.rejected(), 0u);
}

TEST(Hash, IsXxh3) {
  EXPECT_EQ(detail::hash64(std::string_view()), 0x2d06800538d394c2ull);
  EXPECT_NE(detail::hash64(std::string_view("a")), detail::hash64(std::string_view("a"), 1));
  EXPECT_EQ(to_hex(detail::hash128(std::string_view())), "99aa06d3014798d86001c324468d497f");
}

}  // namespace
}  // namespace weft::backend

// The cache of machine code: whose files it reads, and what it leaves alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "../../backends/disk_cache.h"
#include "../../frontend/support/platform.h"
#include "environment.h"

#ifndef _WIN32
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace weft::backend {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

Bytes bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

class CodeCache : public testing::Test {
 protected:
  CodeCache() : parent_(platform::temporary_folder()), folder_(parent_ / "code") {}
  ~CodeCache() override {
    std::error_code ignored;
    fs::remove_all(parent_, ignored);
  }

  static DiskCache cache(const fs::path& folder) {
    return DiskCache(folder, DiskCache::kDefaultCap, DiskCache::Holds::code);
  }
  // The text of an entry; empty if there is none.
  static std::string get(DiskCache& cache, const std::string& key) {
    const auto bytes = cache.get(key);
    return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : std::string();
  }
  // What is said on stderr while `f` runs.
  template <class F>
  static std::string said(F f) {
    testing::internal::CaptureStderr();
    f();
    return testing::internal::GetCapturedStderr();
  }

  const fs::path parent_, folder_;
};

TEST_F(CodeCache, GivesBackWhatWasPut) {
  DiskCache code = cache(folder_);
  EXPECT_EQ(said([&] { EXPECT_EQ(get(code, "a"), ""); }), "") << "a folder that is missing is nothing to tell of";
  code.put("a", bytes_of("hello"));
  code.put("b", bytes_of(std::string(100000, 'x')));
  EXPECT_EQ(get(code, "a"), "hello");
  EXPECT_EQ(get(code, "b"), std::string(100000, 'x'));
  code.put("a", bytes_of("other"));
  DiskCache again = cache(folder_);
  EXPECT_EQ(get(again, "a"), "other");
  EXPECT_EQ(code.rejected() + again.rejected(), 0u);
  for (const auto& file : platform::list_files(folder_)) EXPECT_EQ(file.path.extension(), ".weft");
}

TEST_F(CodeCache, DamagedEntriesGo) {
  DiskCache code = cache(folder_);
  code.put("a", bytes_of("hello"));
  const fs::path file = code.path_of("a");
  {
    std::fstream change(file, std::ios::in | std::ios::out | std::ios::binary);
    change.seekp(-1, std::ios::end);
    change << 'x';
  }
  EXPECT_EQ(get(code, "a"), "");
  EXPECT_EQ(code.rejected(), 1u);
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(CodeCache, HasAFolderOfItsOwn) {
  const test::Variable folder("WEFT_CACHE_DIR", parent_.string().c_str()), on("WEFT_CACHE", nullptr);
  EXPECT_EQ(DiskCache::from_environment(DiskCache::Holds::code).folder(), folder_);
  EXPECT_EQ(DiskCache::from_environment().folder(), parent_);
  const test::Variable off("WEFT_CACHE", "0");
  EXPECT_FALSE(DiskCache::from_environment(DiskCache::Holds::code).enabled());
}

#ifndef _WIN32
TEST_F(CodeCache, NobodyElseMayEnterItsFolder) {
  const mode_t before = umask(0);
  DiskCache code = cache(parent_ / "new" / "code");
  code.put("a", bytes_of("hello"));
  umask(before);
  EXPECT_EQ(get(code, "a"), "hello") << "whatever the process's mask is";
  const auto all_others = fs::perms::group_all | fs::perms::others_all;
  EXPECT_EQ(fs::status(code.folder()).permissions() & all_others, fs::perms::none);
  EXPECT_EQ(fs::status(code.path_of("a")).permissions() & all_others, fs::perms::none);
  EXPECT_NE(fs::status(parent_ / "new").permissions() & all_others, fs::perms::none)
      << "its parents are as the user has folders";
}

TEST_F(CodeCache, FilesThatOthersMayWriteAreRejected) {
  for (const fs::perms bit : {fs::perms::group_write, fs::perms::others_write}) {
    DiskCache code = cache(folder_);
    code.put("a", bytes_of("hello"));
    fs::permissions(code.path_of("a"), bit, fs::perm_options::add);
    EXPECT_EQ(get(code, "a"), "");
    EXPECT_EQ(code.rejected(), 1u);
    EXPECT_FALSE(fs::exists(code.path_of("a")));
    code.put("a", bytes_of("again"));
    EXPECT_EQ(get(code, "a"), "again");
  }
}

TEST_F(CodeCache, FilesOfOthersAreRejected) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  DiskCache code = cache(folder_);
  code.put("a", bytes_of("hello"));
  ASSERT_EQ(chown(code.path_of("a").c_str(), 65534, 65534), 0);
  EXPECT_EQ(get(code, "a"), "");
  EXPECT_EQ(code.rejected(), 1u);
  code.put("a", bytes_of("hello"));
  ASSERT_EQ(chown(folder_.c_str(), 65534, 65534), 0);
  const std::string text = said([&] {
    EXPECT_EQ(get(code, "a"), "");
    code.put("b", bytes_of("x"));
  });
  EXPECT_NE(text.find("its folder belongs to another user"), std::string::npos) << text;
  EXPECT_TRUE(fs::exists(code.path_of("a"))) << "what is in the folder of another is not ours to remove";
  EXPECT_FALSE(fs::exists(code.path_of("b")));
}

TEST_F(CodeCache, LinksAreRejectedAndTheirTargetsStay) {
  DiskCache code = cache(folder_);
  code.put("a", bytes_of("hello"));
  const fs::path file = code.path_of("a"), target = parent_ / "target";
  fs::rename(file, target);
  fs::create_symlink(target, file);
  EXPECT_EQ(get(code, "a"), "");
  EXPECT_EQ(code.rejected(), 1u);
  EXPECT_TRUE(fs::exists(target));
  EXPECT_FALSE(fs::exists(fs::symlink_status(file)));
  fs::create_symlink(target, file);
  const Bytes before = platform::read_file(target).value();
  code.put("a", bytes_of("other"));
  EXPECT_EQ(get(code, "a"), "other");
  EXPECT_EQ(platform::read_file(target), before) << "an entry replaces a link, and does not follow it";
}

TEST_F(CodeCache, PipesAndFoldersAreRejectedWithoutWaiting) {
  DiskCache code = cache(folder_);
  code.put("a", bytes_of("hello"));
  fs::remove(code.path_of("a"));
  ASSERT_EQ(mkfifo(code.path_of("a").c_str(), 0600), 0);
  EXPECT_EQ(get(code, "a"), "");
  fs::create_directories(code.path_of("b") / "inside");
  EXPECT_EQ(get(code, "b"), "");
  EXPECT_EQ(code.rejected(), 2u);
  EXPECT_NE(said([&] { code.put("b", bytes_of("x")); }).find("the cache cannot keep"), std::string::npos);
}

TEST_F(CodeCache, AFolderThatOthersMayWriteToIsLeftAlone) {
  DiskCache code = cache(folder_);
  code.put("a", bytes_of("hello"));
  fs::permissions(folder_, fs::perms::group_write, fs::perm_options::add);
  const std::string text = said([&] {
    EXPECT_EQ(get(code, "a"), "");
    EXPECT_EQ(get(code, "a"), "");
    code.put("b", bytes_of("x"));
  });
  EXPECT_EQ(text, "weft: the cache cannot keep " + code.path_of("a").string() +
                      ": others may write to its folder. What belongs there is compiled anew in each run "
                      "(WEFT_CACHE_DIR names another folder, WEFT_CACHE=0 goes without)\n");
  EXPECT_FALSE(fs::exists(code.path_of("b")));
  EXPECT_EQ(code.rejected(), 0u);
  fs::permissions(folder_, fs::perms::group_write, fs::perm_options::remove);
  EXPECT_EQ(get(code, "a"), "hello");
}

TEST_F(CodeCache, AFolderThatIsALinkIsLeftAlone) {
  DiskCache real = cache(parent_ / "real");
  real.put("a", bytes_of("hello"));
  fs::create_directory_symlink(parent_ / "real", folder_);
  DiskCache code = cache(folder_);
  const std::string text = said([&] {
    EXPECT_EQ(get(code, "a"), "");
    code.put("b", bytes_of("x"));
  });
  EXPECT_NE(text.find("its folder is a link, or no folder"), std::string::npos) << text;
  EXPECT_FALSE(fs::exists(parent_ / "real" / code.path_of("b").filename()));
}

TEST_F(CodeCache, AFileInThePlaceOfItsFolderIsToldOnce) {
  std::ofstream(folder_) << "a file";
  DiskCache code = cache(folder_);
  const std::string text = said([&] {
    code.put("a", bytes_of("x"));
    EXPECT_EQ(get(code, "a"), "");
  });
  EXPECT_EQ(text.find("weft: the cache cannot keep"), 0u);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}
#endif

}  // namespace
}  // namespace weft::backend

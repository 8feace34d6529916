// Differences between operating systems: programs that are started, and folders that the environment names.
#include "../../frontend/support/platform.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <span>
#include <string>

#include "../../frontend/support/error.h"
#include "environment.h"
#include "program.h"

namespace weft {

namespace {

namespace fs = std::filesystem;

struct Folder {
  const fs::path path = platform::temporary_folder();
  ~Folder() {
    std::error_code error;
    fs::remove_all(path, error);
  }
};

TEST(Platform, programs_are_given_their_arguments_as_they_are) {
  const Folder folder;
  const fs::path file = folder.path / "arguments with a blank";
  const std::vector<std::string> given = {"plain",       "two words", "",     "\"",  "a\\",
                                          "two words\\", "a\\\"b",    "\\\\", "a\tb"};
  std::vector<std::string> command = {test::program_path(), "--arguments-to", file.string()};
  command.insert(command.end(), given.begin(), given.end());
  EXPECT_EQ(platform::run_program(command), 7);
  std::ifstream in(file);
  std::vector<std::string> got;
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    got.push_back(line);
  }
  EXPECT_EQ(got, given);
}

TEST(Platform, programs_that_are_not_there_are_not_started) {
  const Folder folder;
  EXPECT_EQ(platform::run_program({(folder.path / "nothing").string()}), std::nullopt);
}

#ifdef __linux__
// The C library knows a program that was started by its name alone by that name, which is no path.
TEST(Platform, files_of_functions_have_whole_paths) {
  EXPECT_TRUE(platform::library_file(reinterpret_cast<void*>(&test::program_path)).is_absolute());
  if (platform::environment("WEFT_TEST_STARTED_BY_NAME")) return;
  const fs::path program = fs::absolute(test::program_path());
  const std::string start = "PATH='" + program.parent_path().string() + "' WEFT_TEST_STARTED_BY_NAME=1 '" +
                            program.filename().string() +
                            "' --gtest_filter=Platform.files_of_functions_have_whole_paths >/dev/null";
  EXPECT_EQ(platform::run_program({"/bin/sh", "-c", "cd / && " + start}), 0);
}
#endif

TEST(Platform, folders_of_the_environment_have_any_letters) {
  const auto before = platform::environment_folder("WEFT_CACHE_DIR");
  const fs::path folder = u8"Z\u00fcrich \u6771\u4eac";
  platform::set_environment_folder("WEFT_CACHE_DIR", folder);
  EXPECT_EQ(platform::environment_folder("WEFT_CACHE_DIR"), folder);
  EXPECT_EQ(platform::cache_folder(), folder);
  platform::set_environment("WEFT_CACHE_DIR", nullptr);
  EXPECT_TRUE(platform::environment_folder("WEFT_CACHE_DIR").empty());
  if (!before.empty()) platform::set_environment_folder("WEFT_CACHE_DIR", before);
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST(Platform, what_a_reader_gives_is_all_or_nothing) {
  const std::string text(50000, 'a');
  std::size_t given = 0, fails_at = 0;
  const auto reader = [&](std::span<std::byte> to) -> std::optional<std::size_t> {
    if (fails_at && given >= fails_at) return std::nullopt;
    const std::size_t n = std::min({to.size(), text.size() - given, std::size_t(7000)});
    std::ranges::copy(bytes_of(text).subspan(given, n), to.begin());
    given += n;
    return n;
  };
  auto content = platform::read_all(reader);
  ASSERT_TRUE(content);
  EXPECT_TRUE(std::ranges::equal(*content, bytes_of(text)));
  for (const std::size_t at : {1, 20000, 50000}) {
    given = 0, fails_at = at;
    EXPECT_EQ(platform::read_all(reader), std::nullopt) << at;
  }
  given = fails_at = 0;
  EXPECT_EQ(platform::read_all(reader, 49999), std::nullopt);
  given = 0;
  EXPECT_EQ(platform::read_all(reader, 50000).value().size(), 50000u);
}

TEST(Platform, files_that_cannot_be_read_come_with_a_reason) {
  const Folder folder;
  std::string why;
  EXPECT_EQ(platform::read_file(folder.path / "nothing", ~0ull, &why), std::nullopt);
  EXPECT_NE(why, "");
  EXPECT_EQ(platform::read_file(folder.path, ~0ull, &why), std::nullopt);
  EXPECT_EQ(why, "it is a folder");
  ASSERT_TRUE(platform::write_file(folder.path / "file", bytes_of("1234")));
  EXPECT_EQ(platform::read_file(folder.path / "file", 3, &why), std::nullopt);
  EXPECT_EQ(why, "it has more than 3 bytes");
  EXPECT_EQ(platform::read_file(folder.path / "file", 4).value().size(), 4u);
#ifdef __linux__
  // This file opens, and fails when it is read.
  EXPECT_EQ(platform::read_file("/proc/self/mem", ~0ull, &why), std::nullopt);
  EXPECT_EQ(why, "Input/output error");
#endif
}

TEST(Platform, switches_are_on_or_off_or_a_mistake) {
  const auto flag = [](const char* value, bool otherwise) {
    const test::Variable variable("WEFT_TEST_FLAG", value);
    return platform::environment_flag("WEFT_TEST_FLAG", otherwise);
  };
  for (const bool otherwise : {true, false}) {
    for (const char* on : {"1", "true", "on", "YES"}) EXPECT_TRUE(flag(on, otherwise)) << on;
    for (const char* off : {"0", "False", "off", "no"}) EXPECT_FALSE(flag(off, otherwise)) << off;
    EXPECT_EQ(flag(nullptr, otherwise), otherwise);
    EXPECT_EQ(flag("", otherwise), otherwise);
  }
  for (const char* wrong : {"flase", "2", "nan", " 1"}) {
    try {
      flag(wrong, false);
      ADD_FAILURE() << wrong;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::invalid_argument);
      EXPECT_EQ(e.message(),
                std::string("WEFT_TEST_FLAG is '") + wrong + "'; 1, true, on or yes is needed, or 0, false, off or no");
    }
  }
}

// Folders like those that Linux shows to a process of a container.
class Groups {
 public:
  explicit Groups(const std::string& groups) { write("proc/self/cgroup", groups); }
  Groups& write(const fs::path& file, const std::string& text) {
    EXPECT_TRUE(platform::write_file(folder_.path / file, bytes_of(text)));
    return *this;
  }
  std::optional<double> quota() const { return platform::processor_quota(folder_.path); }
  std::uint64_t memory() const { return platform::memory_bytes(folder_.path).value_or(0); }

 private:
  const Folder folder_;
};

TEST(Platform, quotas_of_containers_limit_the_processors) {
  const fs::path mounts = "sys/fs/cgroup";
  EXPECT_EQ(platform::processor_quota(Folder().path), std::nullopt);
  EXPECT_EQ(Groups("0::/\n").write(mounts / "cpu.max", "max 100000\n").quota(), std::nullopt);
  EXPECT_EQ(Groups("0::/\n").write(mounts / "cpu.max", "150000 100000\n").quota(), 1.5);
  // The least of all groups that the process is in counts.
  EXPECT_EQ(Groups("0::/a/b\n")
                .write(mounts / "a/b/cpu.max", "400000 100000\n")
                .write(mounts / "a/cpu.max", "200000 100000\n")
                .write(mounts / "cpu.max", "max 100000\n")
                .quota(),
            2.);
  // A container may see its own group as the root and still know the outer name.
  EXPECT_EQ(Groups("0::/docker/1f\n").write(mounts / "cpu.max", "50000 100000\n").quota(), .5);
  EXPECT_EQ(Groups("12:cpuset:/x\n4:cpu,cpuacct:/docker/1f\n0::/\n")
                .write(mounts / "cpu/docker/1f/cpu.cfs_quota_us", "300000\n")
                .write(mounts / "cpu/docker/1f/cpu.cfs_period_us", "100000\n")
                .write(mounts / "cpu/cpu.cfs_quota_us", "-1\n")
                .write(mounts / "cpu/cpu.cfs_period_us", "100000\n")
                .quota(),
            3.);
  for (const char* damaged : {"", "0", "0::", "::::\n", "0::/../..\n"})
    EXPECT_EQ(Groups(damaged).quota(), std::nullopt);
  for (const char* damaged : {"", "1", "0 100000", "-5 100000", "1 0", "x y"})
    EXPECT_EQ(Groups("0::/\n").write(mounts / "cpu.max", damaged).quota(), std::nullopt) << damaged;
  EXPECT_GE(platform::processors(), 1);
}

TEST(Platform, limits_of_containers_are_the_memory) {
  const std::uint64_t all = Groups("").memory();
  EXPECT_GT(all, 64u << 20);
  const fs::path mounts = "sys/fs/cgroup";
  EXPECT_EQ(Groups("0::/\n").write(mounts / "memory.max", "max\n").memory(), all);
  EXPECT_EQ(Groups("0::/\n").write(mounts / "memory.max", "1048576\n").memory(), 1048576u);
  EXPECT_EQ(Groups("0::/a\n").write(mounts / "memory.max", "4096\n").write(mounts / "a/memory.max", "8192").memory(),
            4096u);
  EXPECT_EQ(Groups("0::/\n").write(mounts / "memory.max", "9223372036854771712\n").memory(), all);
  EXPECT_EQ(Groups("7:memory:/x\n").write(mounts / "memory/x/memory.limit_in_bytes", "12288\n").memory(), 12288u);
  for (const char* damaged : {"", "0", "-1", "x"})
    EXPECT_EQ(Groups("0::/\n").write(mounts / "memory.max", damaged).memory(), all) << damaged;
}

}  // namespace

}  // namespace weft

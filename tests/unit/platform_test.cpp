// Differences between operating systems: programs that are started, and folders that the environment names.
#include "../../frontend/support/platform.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <span>
#include <string>

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

}  // namespace

}  // namespace weft

// What differs between operating systems: programs that are started, and folders that the environment names.
#include "../../frontend/support/platform.h"

#include <gtest/gtest.h>

#include <fstream>

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

}  // namespace

}  // namespace weft

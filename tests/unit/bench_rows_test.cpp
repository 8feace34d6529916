// Rows of the benchmarks: what the table and the file say, with a reference and without.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "../bench/rows.h"

namespace weft {
namespace {

using bench::Row;

Row row(const std::string& suite, const std::string& name, std::optional<double> reference,
        const std::string& reference_name) {
  return {suite, name, "a card, of some kind", 2, reference, reference_name, "ms", 0.05};
}

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(BenchRows, table_says_what_was_not_measured) {
  const std::string compared = bench::table_line(row("geometry", "points", 4, "warp"));
  EXPECT_NE(compared.find(" 4 ms    0.500    5.0%  warp\n"), std::string::npos) << compared;
  const std::string alone = bench::table_line(row("geometry", "points", {}, "warp"));
  EXPECT_NE(alone.find(" 2 "), std::string::npos) << alone;
  EXPECT_NE(alone.find("  5.0%  warp: not measured\n"), std::string::npos) << alone;
  EXPECT_EQ(alone.find("nan"), std::string::npos) << alone;
  EXPECT_EQ(alone.find("warp"), compared.find("warp")) << "the columns stand below each other";
}

TEST(BenchRows, mean_is_over_what_was_compared) {
  std::vector<Row> rows{row("a", "1", 1, "warp"), row("a", "2", {}, "warp"), row("a", "3", 0.25, bench::kBudget)};
  EXPECT_EQ(bench::table_mean("a", rows), "");
  rows.push_back(row("a", "4", 0.25, "warp"));
  rows.push_back(row("a", "4, beside", 100, "taichi"));
  rows.back().beside = true;
  EXPECT_NE(bench::table_mean("a", rows).find(" 4.000\n"), std::string::npos) << bench::table_mean("a", rows);
}

TEST(BenchRows, file_leaves_empty_what_was_not_measured) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "weft bench rows" / "summary.csv";  // the folder is made
  std::filesystem::remove(path);
  const std::string device = "a card, of some kind";
  bench::write_rows(path, {row("a", "1", 4, "warp"), row("b", "2", 4, "warp")}, {"a", "b"}, device);
  bench::write_rows(path, {row("a", "1", {}, "warp")}, {"a"}, device);
  const std::string expected =
      "suite,case,device,weft,reference,reference_name,ratio,unit\n"
      "b,2,\"a card, of some kind\",2,4,warp,0.5000,ms\n"
      "a,1,\"a card, of some kind\",2,,warp,,ms\n";
  EXPECT_EQ(text_of(path), expected);
  // Another run keeps the rows of the file, or replaces them.
  bench::write_rows(path, {row("b", "3", {}, "warp")}, {"b"}, device);
  EXPECT_EQ(text_of(path),
            "suite,case,device,weft,reference,reference_name,ratio,unit\n"
            "a,1,\"a card, of some kind\",2,,warp,,ms\n"
            "b,3,\"a card, of some kind\",2,,warp,,ms\n");
  std::filesystem::remove_all(path.parent_path());
}

}  // namespace
}  // namespace weft

// Rows of the benchmarks: the lines of the table, and the file that keeps them.
#pragma once
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace weft::bench {

inline constexpr const char* kHost = "host";  ///< the device of rows in which no device takes part
/// The reference's name where no reference was measured, nor can be.
inline constexpr const char* kBudget = "budget";
inline constexpr const char* kDocumented = "documented";

/// One line of the table.
struct Row {
  std::string suite, name, device;
  double weft = 0;                  ///< in `unit`
  std::optional<double> reference;  ///< in `unit`; none where it is not on this machine
  std::string reference_name;
  std::string unit;  ///< "s", "ms", "us" or "B"
  double spread = 0;
  bool beside = false;  ///< stands beside the row of its case: the mean leaves it out

  /// weft over reference: lower is better, 1 is par.
  std::optional<double> ratio() const;
};

/// Lines of the table, each with its end of line. A reference that was not measured is "not measured".
std::string table_head();
std::string table_line(const Row& row);
/// The geometric mean over the rows of a suite that compare with another implementation, or nothing of fewer than two.
std::string table_mean(const std::string& suite, const std::vector<Row>& rows);

/// Replaces the file's rows of these suites on this device, and on the host; the rest of the file stays. If a row has
/// no reference, the fields of the reference and of the ratio are empty.
/// Errors: std::runtime_error if the file cannot be written.
void write_rows(const std::filesystem::path& path, const std::vector<Row>& rows, const std::set<std::string>& suites,
                const std::string& device);

}  // namespace weft::bench

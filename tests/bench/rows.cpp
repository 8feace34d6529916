// The table and build/bench/summary.csv.
#include "rows.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <stdexcept>

namespace weft::bench {

namespace {

constexpr const char* kHeader = "suite,case,device,weft,reference,reference_name,ratio,unit";

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::vector<std::string> csv_fields(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"')
      fields.back() += line[++i];
    else if (line[i] == '"')
      quoted = !quoted;
    else if (line[i] == ',' && !quoted)
      fields.emplace_back();
    else
      fields.back() += line[i];
  }
  return fields;
}

std::string csv_line(const Row& row) {
  return fmt::format("{},{},{},{:.6g},{},{},{},{}", csv_field(row.suite), csv_field(row.name), csv_field(row.device),
                     row.weft, row.reference ? fmt::format("{:.6g}", *row.reference) : "",
                     csv_field(row.reference_name), row.ratio() ? fmt::format("{:.4f}", *row.ratio()) : "", row.unit);
}

}  // namespace

std::optional<double> Row::ratio() const {
  if (!reference) return {};
  return weft / *reference;
}

std::string table_head() {
  return fmt::format("{:<10} {:<56} {:>10} {:>10} {:<3} {:>7} {:>7}  {}\n", "suite", "case", "weft", "reference", "",
                     "ratio", "spread", "reference");
}

std::string table_line(const Row& row) {
  const std::string compared = row.reference
                                   ? fmt::format("{:>10.4g} {:<3} {:>7.3f}", *row.reference, row.unit, *row.ratio())
                                   : fmt::format("{:>10} {:<3} {:>7}", "", row.unit, "");
  return fmt::format("{:<10} {:<56} {:>10.4g} {} {:>6.1f}%  {}{}\n", row.suite, row.name, row.weft, compared,
                     100 * row.spread, row.reference_name, row.reference ? "" : ": not measured");
}

std::string table_mean(const std::string& suite, const std::vector<Row>& rows) {
  double sum = 0;
  int n = 0;
  for (const Row& row : rows)
    if (row.suite == suite && !row.beside && row.reference && row.reference_name != kBudget &&
        row.reference_name != kDocumented)
      sum += std::log(*row.ratio()), ++n;
  if (n < 2) return {};
  return fmt::format("{:<10} {:<56} {:>10} {:>10} {:<3} {:>7.3f}\n", suite, "geometric mean", "", "", "",
                     std::exp(sum / n));
}

void write_rows(const std::filesystem::path& path, const std::vector<Row>& rows, const std::set<std::string>& suites,
                const std::string& device) {
  std::vector<std::string> kept;
  std::ifstream old(path);
  for (std::string line; std::getline(old, line);) {
    const std::vector<std::string> fields = csv_fields(line);
    if (fields.size() < 3 || line == kHeader) continue;
    if (suites.count(fields[0]) && (fields[2] == device || fields[2] == kHost)) continue;
    kept.push_back(line);
  }
  old.close();
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
  std::ofstream out(path);
  out << kHeader << '\n';
  for (const std::string& line : kept) out << line << '\n';
  for (const Row& row : rows) out << csv_line(row) << '\n';
  if (!out.flush()) throw std::runtime_error(fmt::format("cannot write {}", path.string()));
}

}  // namespace weft::bench

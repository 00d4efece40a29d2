// docs/faults.md names the test of every fault; a name that leads nowhere would be a promise that
// nobody keeps.
#include <regex>
#include <sstream>

#include "core/files/input_file.h"
#include "support/catch.h"
#include "support/test_cases.h"

namespace {

namespace fs = std::filesystem;

/// The cells of a table's row.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream in(line.substr(1));
  for (std::string cell; std::getline(in, cell, '|');) {
    const auto begin = cell.find_first_not_of(' ');
    const auto end = cell.find_last_not_of(' ');
    cells.push_back(begin == std::string::npos ? "" : cell.substr(begin, end - begin + 1));
  }
  return cells;
}

bool exists(const std::string& file, const std::string& name) {
  const fs::path path = fs::path(OLMO_SOURCE_DIR) / file;
  if (!fs::is_regular_file(path)) return false;
  if (name.empty()) return path.extension() != ".cpp";  // a script is its own name
  const std::string more = "…";
  const bool prefix = name.ends_with(more);
  const std::string wanted = prefix ? name.substr(0, name.size() - more.size()) : name;
  const auto cases = olmo::test::declared_cases(path);
  return std::any_of(cases.begin(), cases.end(), [&](const auto& found) {
    return prefix ? found.name.starts_with(wanted) : found.name == wanted;
  });
}

}  // namespace

TEST_CASE("every row of docs/faults.md is complete, and every test that it names exists",
          "[layering]") {
  static const std::regex kTest("`([^`]+)`(?:: (.+))?");
  std::istringstream in(olmo::read_file(fs::path(OLMO_SOURCE_DIR) / "docs/faults.md"));
  int rows = 0;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("| ") || line.starts_with("| fault |")) continue;
    INFO(line);
    const auto cells = cells_of(line);
    REQUIRE(cells.size() == 4);
    for (const auto& cell : cells) CHECK_FALSE(cell.empty());
    ++rows;
    std::string rest = cells[2];
    for (std::string::size_type at = 0; at != std::string::npos;) {
      const auto next = rest.find("<br>", at);
      const std::string test = rest.substr(at, next == std::string::npos ? next : next - at);
      at = next == std::string::npos ? next : next + 4;
      INFO(test);
      std::smatch match;
      REQUIRE(std::regex_match(test, match, kTest));
      CHECK(exists(match[1], match[2]));
    }
  }
  CHECK(rows > 20);
}

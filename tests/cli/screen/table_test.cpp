#include "cli/screen/table.h"

#include <limits>
#include <sstream>

#include "core/process/terminal.h"
#include "support/catch.h"

using olmo::cli::TextTable;

namespace {

TextTable example() {
  TextTable table({"run", "name", "path", "loss", "score"});
  table.add({"20260131T200000Z-ab12cd34", "a long name of a run with many words in it 訓練",
             "/data/of/somebody/else/far/away/tokens-000.npy", "11.2605", "30.00 ± 4.61"});
  table.add({"20260131T210000Z-ef56ab78", "b", "/data/b.npy", "9.5", "4898.60 .. 18518.43"});
  return table;
}

std::size_t widest(const std::string& text) {
  std::size_t width = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    width = std::max(width, olmo::display_width(line));
  return width;
}

}  // namespace

TEST_CASE("a table is as wide as its cells in a file, and no wider than a terminal", "[cli]") {
  const auto table = example();
  CHECK(table.text(std::nullopt).find("many words in it 訓練") != std::string::npos);
  for (std::size_t columns : {60U, 80U, 100U, 132U}) {
    INFO(table.text(columns));
    CHECK(widest(table.text(columns)) <= columns);
  }
  CHECK(table.text(400) == table.text(std::nullopt));
}

TEST_CASE("a narrow table cuts words, keeps the end of a path, and never cuts a number", "[cli]") {
  for (std::size_t columns : {30U, 50U, 80U}) {
    const auto text = example().text(columns);
    INFO(text);
    for (const char* whole : {"11.2605", "30.00 ± 4.61", "4898.60 .. 18518.43"})
      CHECK(text.find(whole) != std::string::npos);
    CHECK(text.find("-000.npy") != std::string::npos);
    CHECK(text.find("…") != std::string::npos);
  }
}

TEST_CASE("a name of digits and dashes alone is cut like any other", "[cli]") {
  TextTable table({"run", "name", "loss"});
  table.add({std::string(90, '1'), std::string(200, '-'), "12.5 ± 0.3"});
  INFO(table.text(80));
  CHECK(widest(table.text(80)) <= 80);
  CHECK(table.text(80).find("12.5 ± 0.3") != std::string::npos);
}

TEST_CASE("columns without room follow in a table below, beside the first column again", "[cli]") {
  const auto text = example().text(50);
  INFO(text);
  CHECK(text.find("\n\nrun") != std::string::npos);
}

TEST_CASE(
    "a cell with line ends and commands stays on its line, and columns stand below each other",
    "[cli]") {
  TextTable table({"task", "n"});
  table.add({"a\nerror: b\x1b[31m", "1"});
  table.add({"c", "2"});
  std::istringstream lines(table.text(std::nullopt));
  std::vector<std::size_t> places;
  for (std::string line; std::getline(lines, line);)
    places.push_back(olmo::display_width(line.substr(0, line.find_last_of("n12"))));
  CHECK(places == std::vector<std::size_t>(3, places.front()));
  CHECK(table.text(std::nullopt).find("a error: b") != std::string::npos);
}

TEST_CASE("rows of text tell what is infinite from what is not there", "[cli]") {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const std::vector<olmo::store::SqlValue> values = {1.5, kInfinite, -kInfinite, std::monostate()};
  const std::vector<std::string> names = {"a", "b", "c", "d"};
  std::ostringstream csv, markdown;
  olmo::cli::write_csv_row(csv, names, values, true);
  olmo::cli::write_markdown_row(markdown, names, values, false);
  CHECK(csv.str() == "a,b,c,d\n1.5,inf,-inf,\n");
  CHECK(markdown.str() == "| 1.5 | inf | -inf |  |\n");
}

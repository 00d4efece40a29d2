// Lines, words, records and CSV: what the formats of import/log.h are made of.
#pragma once

#include <algorithm>
#include <deque>

#include "core/error.h"
#include "import/log.h"

namespace olmo::import {

/// The cells of a row, and their names.
class RowCells {
 public:
  RowCells() = default;
  RowCells(const RowCells&) = delete;  // its cells would name those of the other
  RowCells& operator=(const RowCells&) = delete;

  void add(std::string name, std::string text) {
    cells_.push_back({names_.emplace_back(std::move(name)), std::move(text)});
  }
  void clear() {
    cells_.clear();
    names_.clear();
  }
  [[nodiscard]] bool has(std::string_view name) const {
    return std::ranges::find(cells_, name, &LogCell::name) != cells_.end();
  }
  [[nodiscard]] const std::vector<LogCell>& cells() const { return cells_; }

 private:
  std::vector<LogCell> cells_;
  std::deque<std::string> names_;  // stay where they are while more are added
};

/// The lines of a text, without their ends.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  bool next();
  [[nodiscard]] std::string_view line() const { return line_; }
  [[nodiscard]] std::int64_t number() const { return number_; }  ///< from 1

 private:
  std::string_view rest_, line_;
  std::int64_t number_ = 0;
};

/// Without the escape sequences that colour a terminal's text.
std::string without_ansi(std::string_view line);

/// Without the commas between groups of three digits of a whole part; commas elsewhere stay.
std::string without_thousands(std::string_view text);

/// What `parse` returns of a record of a binary log. Its errors tell the record, as those of a text
/// tell the line.
template <typename Parse>
auto in_record(const std::string& file, std::int64_t number, const Parse& parse) {
  try {
    return parse();
  } catch (const Error& error) {
    fail_at_line(file, number, error.what());
  }
}

/// Rows under a header, in which no name stands twice; quotes may enclose commas, line ends and
/// doubled quotes.
void read_csv(std::string_view text, const std::string& file, const OnLogRow& on_row);

}  // namespace olmo::import

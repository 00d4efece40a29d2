// Tables for people (aligned text) and for programs (CSV, Markdown).
#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "store/database/sqlite.h"

namespace olmo::cli {

/// Aligned columns, as wide as their widest cell; numbers to the right. Where that is wider than
/// the terminal, long words are shortened with an ellipsis (paths at their front), and columns that
/// still have no room follow in tables of their own below, each with the first column again. A
/// number is never cut. What goes to a file or a pipe is left as it is.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) : rows_{std::move(header)} {}
  /// A cell stays on its line, whatever a file has put into it (safe_line).
  void add(std::vector<std::string> cells);
  /// `indent`: spaces before each line.
  void print(std::ostream& out, std::size_t indent = 0) const;
  /// As it is shown on a terminal of `columns`; nothing: in a file.
  [[nodiscard]] std::string text(std::optional<std::size_t> columns, std::size_t indent = 0) const;
  /// With the header.
  [[nodiscard]] std::size_t rows() const { return rows_.size(); }

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// A JSON value for a table cell: strings bare, null empty, floats with six significant digits.
/// Control characters, which a hostile file may hold, become spaces.
std::string text_of(const nlohmann::ordered_json& value);

/// Writes one row; `first` asks for the header before it.
using RowWriter = std::function<void(std::ostream&, const std::vector<std::string>&,
                                     const std::vector<store::SqlValue>&, bool first)>;
void write_csv_row(std::ostream& out, const std::vector<std::string>& names,
                   const std::vector<store::SqlValue>& values, bool first);
void write_markdown_row(std::ostream& out, const std::vector<std::string>& names,
                        const std::vector<store::SqlValue>& values, bool first);

}  // namespace olmo::cli

// Tables for people (aligned text) and for programs (CSV, Markdown).
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "store/sqlite.h"

namespace olmo::cli {

/// Aligned columns, as wide as their widest cell; numbers to the right.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  void print(std::ostream& out) const;

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

#include "cli/table.h"

#include <algorithm>
#include <cstdio>
#include <ostream>

#include <nlohmann/json.hpp>

#include "core/json_text.h"
#include "core/safe_text.h"

namespace olmo::cli {
namespace {

/// Floats with the digits that give the same bits back.
std::string exact_text(const store::SqlValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&value)) return nlohmann::json(*real).dump();
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return "";
}

bool looks_numeric(const std::string& cell) {
  return !cell.empty() && cell.find_first_not_of("0123456789.+-e") == std::string::npos;
}

}  // namespace

void TextTable::print(std::ostream& out) const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - row[i].size(), ' ');
      line += looks_numeric(row[i]) ? padding + row[i] : row[i] + padding;
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  }
}

std::string text_of(const nlohmann::ordered_json& value) {
  if (value.is_null()) return "";
  if (value.is_number_float()) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value.get<double>());
    return text;
  }
  return safe_line(value.is_string() ? value.get<std::string>() : json_text(value));
}

void write_csv_row(std::ostream& out, const std::vector<std::string>& names,
                   const std::vector<store::SqlValue>& values, bool first) {
  const auto write = [&](auto&& cells, auto&& text) {
    for (std::size_t i = 0; i < cells.size(); ++i) out << (i == 0 ? "" : ",") << text(cells[i]);
    out << "\n";
  };
  if (first) write(names, csv_text);
  write(values, [](const store::SqlValue& value) {
    const std::string text = exact_text(value);
    return std::holds_alternative<std::string>(value) ? csv_text(text) : csv_cell(text);
  });
}

void write_markdown_row(std::ostream& out, const std::vector<std::string>& names,
                        const std::vector<store::SqlValue>& values, bool first) {
  if (first) {
    for (const auto& name : names) out << "| " << markdown_text(name) << " ";
    out << "|\n";
    for (std::size_t i = 0; i < names.size(); ++i) out << "|---";
    out << "|\n";
  }
  for (const auto& value : values) out << "| " << markdown_text(exact_text(value)) << " ";
  out << "|\n";
}

}  // namespace olmo::cli

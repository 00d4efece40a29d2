#include "cli/screen/table.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <span>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "core/files/json.h"
#include "core/process/terminal.h"
#include "core/text/safe_text.h"
#include "core/text/text.h"

namespace olmo::cli {
namespace {

/// Floats with the digits that give the same bits back; `inf`, as others write and read it.
std::string exact_text(const store::SqlValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&value)) {
    if (std::isinf(*real)) return *real > 0 ? "inf" : "-inf";
    return nlohmann::json(*real).dump();
  }
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return "";
}

bool looks_numeric(const std::string& cell) {
  return !cell.empty() && cell.find_first_not_of("0123456789.+-e") == std::string::npos;
}

/// Numbers, "12.5 ± 0.3", "4.1 .. 5.2": what must not be cut. A name may consist of the same
/// characters, and is longer.
bool is_figure(const std::string& cell) {
  constexpr std::size_t kLongest = 36;
  if (display_width(cell) > kLongest) return false;
  std::string rest = cell;
  for (std::size_t at; (at = rest.find("±")) != std::string::npos;)
    rest.replace(at, std::string_view("±").size(), " ");
  return rest.find_first_not_of("0123456789.+-e %") == std::string::npos;
}

using Rows = std::vector<std::vector<std::string>>;

constexpr std::size_t kGap = 2;        ///< columns between two columns of a table
constexpr std::size_t kShortest = 12;  ///< words are cut no shorter than this

struct Column {
  std::size_t index = 0;
  std::size_t width = 0;
  std::size_t least = 0;  ///< as narrow as it may be made
};

std::vector<Column> columns_of(const Rows& rows) {
  std::vector<Column> columns(rows.front().size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    columns[i].index = i;
    for (const auto& row : rows) {
      const auto width = display_width(row.at(i));
      columns[i].width = std::max(columns[i].width, width);
      columns[i].least =
          std::max(columns[i].least, is_figure(row[i]) ? width : std::min(width, kShortest));
    }
  }
  return columns;
}

std::size_t width_of(std::span<const Column> columns) {
  std::size_t width = 0;
  for (const auto& column : columns) width += (width == 0 ? 0 : kGap) + column.width;
  return width;
}

/// Takes from the widest column first, down to what each needs at least.
void narrow(std::span<Column> columns, std::size_t room) {
  for (std::size_t width = width_of(columns); width > room; --width) {
    Column* widest = nullptr;
    for (auto& column : columns) {
      if (column.width > column.least && (widest == nullptr || column.width > widest->width))
        widest = &column;
    }
    if (widest == nullptr) return;
    --widest->width;
  }
}

/// As many of `columns`, from `begin`, as have room beside `first`; one at least.
std::size_t end_of_part(std::span<const Column> columns, std::size_t begin, std::size_t first,
                        std::size_t room) {
  std::size_t end = begin, width = first;
  while (end < columns.size() && (end == begin || width + kGap + columns[end].least <= room)) {
    width += kGap + columns[end].least;
    ++end;
  }
  return end;
}

std::string cell_text(const std::string& cell, std::size_t width) {
  // A path says most at its end.
  const bool is_path = cell.find('/') != std::string::npos && cell.find(' ') == std::string::npos;
  const std::string text = shortened(cell, width, is_path ? Keep::kEnd : Keep::kStart);
  const std::string padding(width - display_width(text), ' ');
  return looks_numeric(cell) ? padding + text : text + padding;
}

std::string part_text(const Rows& rows, std::span<const Column> columns, std::size_t indent) {
  std::string out;
  for (const auto& row : rows) {
    std::string line(indent, ' ');
    for (const auto& column : columns)
      line += cell_text(row[column.index], column.width) + std::string(kGap, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace

void TextTable::add(std::vector<std::string> cells) {
  for (auto& cell : cells) cell = safe_line(cell);
  rows_.push_back(std::move(cells));
}

void TextTable::print(std::ostream& out, std::size_t indent) const {
  out << text(&out == &std::cout ? terminal_width(STDOUT_FILENO) : std::nullopt, indent);
}

std::string TextTable::text(std::optional<std::size_t> columns, std::size_t indent) const {
  auto all = columns_of(rows_);
  if (!columns) return part_text(rows_, all, indent);
  const std::size_t room = *columns > indent ? *columns - indent : 1;
  std::string out;
  for (std::size_t begin = 1, end = 0; end < all.size(); begin = end) {
    end = end_of_part(all, begin, all.front().least, room);
    std::vector<Column> part(all.begin() + static_cast<std::ptrdiff_t>(begin),
                             all.begin() + static_cast<std::ptrdiff_t>(end));
    part.insert(part.begin(), all.front());
    narrow(part, room);
    out += (out.empty() ? "" : "\n") + part_text(rows_, part, indent);
  }
  return out;
}

std::string text_of(const nlohmann::ordered_json& value) {
  if (value.is_null()) return "";
  if (value.is_number_float()) return formatted("%.6g", value.get<double>());
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

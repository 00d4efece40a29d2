#include "import/text.h"

#include <algorithm>
#include <set>

#include "core/text/csv.h"
#include "core/text/number.h"

namespace olmo::import {
namespace {

/// `1,234,567`: groups of three after a first one of one to three.
bool has_groups(std::string_view whole) {
  const auto first = whole.find(',');
  if (first == whole.npos || first < 1 || first > 3) return false;
  for (auto rest = whole.substr(first); !rest.empty(); rest.remove_prefix(4)) {
    if (rest.size() < 4 || rest[0] != ',' || !std::all_of(&rest[1], &rest[1] + 3, is_digit))
      return false;
  }
  return true;
}

void check_header(const std::vector<std::string>& header, const std::string& file,
                  std::int64_t line) {
  std::set<std::string_view> seen;
  for (const auto& name : header) {
    if (!name.empty() && !seen.insert(name).second)
      fail_at_line(file, line, "has the column " + in_quotes(name) + " twice");
  }
}

}  // namespace

bool Lines::next() {
  if (rest_.empty()) return false;
  const auto end = rest_.find('\n');
  line_ = rest_.substr(0, end);
  rest_ = end == rest_.npos ? std::string_view() : rest_.substr(end + 1);
  ++number_;
  return true;
}

std::string without_ansi(std::string_view line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      plain += line[i];
      continue;
    }
    // ESC [ parameters, then one letter.
    if (line.substr(i + 1, 1) != "[") continue;
    i = std::min(line.find_first_not_of("0123456789;?", i + 2), line.size());
  }
  return plain;
}

std::string without_thousands(std::string_view text) {
  const auto begin = std::find_if(text.begin(), text.end(), is_digit);
  const auto end =
      std::find_if_not(begin, text.end(), [](char c) { return is_digit(c) || c == ','; });
  std::string whole(begin, end);
  if (has_groups(whole)) std::erase(whole, ',');
  return std::string(text.begin(), begin) + whole + std::string(end, text.end());
}

void read_csv(std::string_view text, const std::string& file, const OnLogRow& on_row) {
  CsvReader reader(text, file);
  std::vector<std::string> header, fields;
  if (!reader.next(header)) return;
  check_header(header, file, reader.line());
  std::vector<LogCell> cells(header.size());
  while (reader.next(fields)) {
    if (fields.size() != header.size())
      fail_at_line(file, reader.line(),
                   "has " + std::to_string(fields.size()) + " fields, the header has " +
                       std::to_string(header.size()));
    for (std::size_t i = 0; i < fields.size(); ++i) cells[i] = {header[i], std::move(fields[i])};
    on_row(reader.line(), cells);
  }
}

}  // namespace olmo::import

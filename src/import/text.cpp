#include "import/text.h"

#include <algorithm>
#include <set>

#include "core/text/number.h"

namespace olmo::import {
namespace {

/// Takes records off the front of a CSV text.
class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  /// False at the end. Empty lines are no records.
  bool next(std::vector<std::string>& fields) {
    while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) {
      if (text_[at_++] == '\n') ++line_;
    }
    if (at_ >= text_.size()) return false;
    begin_ = line_;
    fields.assign(1, "");
    while (at_ < text_.size() && text_[at_] != '\n') {
      const char c = text_[at_];
      if (c == '"' && fields.back().empty()) {
        take_quoted(fields.back());
        continue;
      }
      if (c == ',') {
        fields.emplace_back();
      } else if (c != '\r') {
        fields.back() += c;
      }
      ++at_;
    }
    return true;
  }
  [[nodiscard]] std::int64_t line() const { return begin_; }

 private:
  void take_quoted(std::string& field) {
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') {
        if (text_.substr(at_ + 1, 1) != "\"") {
          ++at_;
          return;
        }
        ++at_;
      }
      if (text_[at_] == '\n') ++line_;
      field += text_[at_];
    }
    fail_at_line(file_, begin_, "has a quote that is never closed");
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1, begin_ = 1;
};

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

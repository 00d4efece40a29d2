#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace olmo {

/// Takes records off the front of a CSV text (RFC 4180): quotes may enclose commas, line ends and
/// doubled quotes.
class CsvReader {
 public:
  /// `file` is named by errors; both must outlive this.
  CsvReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  /// False at the end. Empty lines are no records. Throws Error(kInput) "FILE:LINE: …" for a quote
  /// that is never closed.
  bool next(std::vector<std::string>& fields);
  /// At which the last record began, from 1.
  [[nodiscard]] std::int64_t line() const noexcept { return begin_; }

 private:
  void take_quoted(std::string& field);

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1, begin_ = 1;
};

}  // namespace olmo

// Pieces of HTML. A parameter named `html` is markup; all others are text and are escaped here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace olmo::report::page {

/// Rows of a table or entries of a list that a page shows; the rest is counted.
inline constexpr std::size_t kShownRows = 200;
/// Bytes of a text of unknown length that a page shows.
inline constexpr std::size_t kShownText = 400;

/// core's html_text: safe as content and in a quoted attribute.
std::string escape(std::string_view text);
/// At most `bytes` of a text, cut between characters and then ended by "…".
std::string clip(std::string_view text, std::size_t bytes = kShownText);
/// clip and escape: for what a record says.
std::string shown(std::string_view text, std::size_t bytes = kShownText);

/// <TAG class="CLASSES">HTML</TAG>
std::string element(const char* tag, const char* classes, const std::string& html);
std::string paragraph(const std::string& html);
/// A muted paragraph.
std::string note(const std::string& html);
/// A hash or a name of the machine's, to be copied whole.
std::string code(std::string_view text);
/// A list of texts; what is over kShownRows is counted.
std::string list_of(const std::vector<std::string>& texts);
std::string folded(const std::string& summary_html, const std::string& html);
std::string section(const char* id, const std::string& title, const std::string& html);
/// "not measured", with the reason.
std::string absent(std::string_view reason = {});
/// The coloured letter of a side.
std::string side_mark(char side);

struct Column {
  std::string title;
  bool number = false;  ///< set flush right
};

/// A table that becomes a list of cards on a phone. Cells are HTML.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// As many cells as columns. After kShownRows rows are only counted.
  void row(const std::vector<std::string>& cells_html, const char* classes = "");
  [[nodiscard]] bool empty() const { return rows_ == 0; }
  [[nodiscard]] std::string html() const;

 private:
  std::vector<Column> columns_;
  std::string body_;
  std::size_t rows_ = 0;
};

/// A whole document; `json` is embedded for programs unless that makes the page too large.
std::string document(const std::string& title, const std::string& body_html,
                     const std::string& json);

}  // namespace olmo::report::page

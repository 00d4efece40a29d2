// Pieces of HTML. A parameter named `html` is markup; all others are text and are escaped here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/interval.h"

namespace olmo::page {

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
/// One line in place of a section that has nothing to show.
std::string empty_section(const char* id, const std::string& title, const std::string& why_html);
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

/// Pairs of a word and what there is to say; nothing is left out.
class Facts {
 public:
  void add(const std::string& name, const std::string& html);
  [[nodiscard]] std::string html() const;

 private:
  std::string html_;
};

/// JSON for the page's script or for other programs, as an element that is not run.
std::string embedded_json(const char* id, const std::string& json);
/// A whole document; `json` is embedded for programs unless that makes the page too large.
std::string document(const std::string& title, const std::string& body_html,
                     const std::string& json);

// Numbers as text, the same in every locale: a point, commas between thousands, a true minus.

/// With so many significant digits, trailing zeros dropped; powers of ten below 1e-4 and from 1e6.
/// "not finite" for a NaN or an infinity.
std::string number(double value, int digits = 5);
/// As number, with a sign unless it is 0.
std::string signed_number(double value, int digits = 4);
/// A fixed number of decimals.
std::string fixed(double value, int decimals);
/// 1,234,567.
std::string count(std::int64_t value);
/// For an axis: 250k, 1.5M, 2B, 3T.
std::string compact(double value);
/// A fraction as "45.31 %".
std::string percent(double fraction);
/// A fraction as "45 %".
std::string whole_percent(double fraction);
/// How much of a whole is done, "99 %" until all of it is.
std::string done_percent(std::int64_t done, std::int64_t of);
/// A difference of fractions in percentage points, "+0.12", without the unit.
std::string points(double fraction);
/// Three digits, "< 0.0001" below.
std::string p_value(double p);
/// Seconds as s, min, h or days.
std::string duration(double seconds);
/// Six significant digits for a program, as 1.25e-05.
std::string short_number(double value);
/// "[−0.12, +0.31]"
std::string interval_text(const Interval& interval, int digits = 4);
/// All digits that give the same double again, "" if not finite: for CSV.
std::string exact(double value);

/// What every page does under a reader's hands (page/browser/files.h).
std::string script();

}  // namespace olmo::page

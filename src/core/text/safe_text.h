// Text that is safe to show. Names of runs, tasks, tensors and files come from outside and may hold
// anything: commands for a terminal, signs that turn the order of letters round or cannot be seen,
// formulas, markup, bytes that are no text. Every printer takes them through here (as JSON: through
// core/files/json.h; on stdout and stderr: CleanStream).
#pragma once

#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

namespace olmo {

/// Whether a code point shows what it is: no control character but line end and tab, none that
/// changes the direction of writing, none without width.
bool is_harmless(char32_t point);

/// Valid UTF-8 in which U+FFFD stands for what is_harmless refuses and for bytes that are no text.
std::string safe_text(std::string_view text);
/// safe_text on one line: spaces for line ends and tabs.
std::string safe_line(std::string_view text);

/// Text within HTML, attributes included.
std::string html_text(std::string_view text);
/// One line of plain Markdown: what would be a mark is escaped and nothing else, as people read it
/// in a terminal, too.
std::string markdown_text(std::string_view text);

/// A cell of CSV as RFC 4180 wants it: quoted where it holds a comma, a quote or a line end.
std::string csv_cell(std::string_view text);
/// csv_cell of a text: safe_text, with an apostrophe before what a spreadsheet would run as a
/// formula. Numbers stay numbers.
std::string csv_text(std::string_view text);

/// Redirects `stream` to a descriptor for as long as the object lives, and makes its text safe to
/// show on the way. Output that begins as JSON keeps unsafe characters as
/// escapes (`\u202e`), so that nothing is lost. Errors of writing are kept, not thrown.
class CleanStream : private std::streambuf {
 public:
  /// A descriptor that is closed now is never written to: a file may be opened under its number.
  CleanStream(std::ostream& stream, int descriptor);
  ~CleanStream() override;
  CleanStream(const CleanStream&) = delete;
  CleanStream& operator=(const CleanStream&) = delete;

  /// Writes what is left. Returns the errno of the first write that failed, 0 if all is out.
  int finish();

 private:
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int_type overflow(int_type c) override;
  int sync() override;

  /// Writes what can be looked at by now; at the end, all.
  void clean(bool at_end);
  void write(std::string_view bytes);

  std::ostream& stream_;
  std::streambuf* before_;
  int descriptor_;
  bool closed_;
  int error_ = 0;
  bool begun_ = false;
  bool json_ = false;
  std::string pending_;  ///< not yet looked at
};

}  // namespace olmo

// Charts for a terminal: the bins, axes and ticks of page/chart.h, drawn with Unicode's braille
// patterns (2 x 4 dots a character), or with plain marks.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "page/chart.h"

namespace olmo::page {

/// What a terminal can show.
struct TerminalInk {
  bool unicode = true;
  bool colour = true;
};

/// Escape sequences that begin and end the colour of curve `which`; empty without colours. After
/// the sixth they begin again.
std::string colour_of(const TerminalInk& ink, std::size_t which);
std::string end_of_colour(const TerminalInk& ink);

struct TerminalCurve {
  std::string name;       ///< in the legend; empty: none
  std::vector<Bin> bins;  ///< one whose mean is NaN is a cross at the top
};

inline constexpr std::size_t kLeastChartColumns = 20, kLeastChartRows = 5;

/// `rows` lines, each of exactly `columns` columns (escape sequences take none), at least those
/// above: the title with the legend, the plot with the ticks of `y` to the left, the ticks of `x`
/// below. Several curves are told by their colours; without colours by their marks. What does not
/// fit on an axis (a value that is not positive on a logarithmic one) is not drawn.
std::vector<std::string> terminal_chart(const std::string& title, const Axis& x, const Axis& y,
                                        std::span<const TerminalCurve> curves, std::size_t columns,
                                        std::size_t rows, const TerminalInk& ink);

/// The text, without Unicode's signs where the terminal has none.
std::string in_ink(const std::string& text, const TerminalInk& ink);

/// `text` with blanks behind it, or cut, so that it takes `columns`; for texts without escapes.
std::string padded(std::string_view text, std::size_t columns);

}  // namespace olmo::page

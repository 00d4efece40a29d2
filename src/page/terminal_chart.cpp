#include "page/terminal_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "core/process/terminal.h"
#include "core/text/safe_text.h"
#include "core/text/text.h"

namespace olmo::page {
namespace {

constexpr std::size_t kColours = 6;
constexpr std::array<const char*, kColours> kColourCodes = {"36", "33", "35", "32", "34", "31"};
constexpr std::array<char, kColours> kMarks = {'*', 'o', '+', 'x', '#', '%'};
constexpr std::uint32_t kBraille = 0x2800;

/// The plot: characters with dots in them, each with the curve that was drawn there last.
class Canvas {
 public:
  Canvas(std::size_t columns, std::size_t rows, const TerminalInk& ink, bool marks)
      : columns_(columns),
        rows_(rows),
        ink_(ink),
        marks_(marks),
        across_(marks ? 1 : 2),
        down_(marks ? 1 : 4),
        cells_(columns * rows) {}

  /// A line between two points, each a share of width and height from the lower left corner.
  void line(double x0, double y0, double x1, double y1, std::size_t curve) {
    const auto [ax, ay] = dot_at(x0, y0);
    const auto [bx, by] = dot_at(x1, y1);
    const long steps = std::max({std::labs(bx - ax), std::labs(by - ay), 1L});
    for (long i = 0; i <= steps; ++i)
      dot(ax + std::lround(static_cast<double>((bx - ax) * i) / static_cast<double>(steps)),
          ay + std::lround(static_cast<double>((by - ay) * i) / static_cast<double>(steps)), curve);
  }

  /// A cross at the top, for what has no place on the vertical axis.
  void cross(double x, std::size_t curve) {
    Cell& cell = cells_[static_cast<std::size_t>(dot_at(x, 1).first) / across_];
    cell = {.dots = 1, .curve = curve, .cross = true};
  }

  [[nodiscard]] std::string row(std::size_t row) const {
    std::string text;
    std::optional<std::size_t> colour;
    for (std::size_t column = 0; column < columns_; ++column) {
      const Cell& cell = cells_[row * columns_ + column];
      if (cell.dots != 0 && colour != cell.curve) {
        text += colour_of(ink_, cell.curve);
        colour = cell.curve;
      }
      text += character(cell);
    }
    return colour ? text + end_of_colour(ink_) : text;
  }

 private:
  struct Cell {
    std::uint32_t dots = 0;
    std::size_t curve = 0;
    bool cross = false;
  };

  [[nodiscard]] std::pair<long, long> dot_at(double x, double y) const {
    const auto place = [](double share, std::size_t dots) {
      return std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(dots - 1));
    };
    return {place(x, columns_ * across_), place(1 - y, rows_ * down_)};
  }

  void dot(long x, long y, std::size_t curve) {
    const auto column = static_cast<std::size_t>(x) / across_;
    const auto row = static_cast<std::size_t>(y) / down_;
    Cell& cell = cells_[row * columns_ + column];
    // The bits of a braille pattern: two columns of three dots, and a fourth row below.
    constexpr std::uint32_t kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    cell.dots |= kBits[static_cast<std::size_t>(y) % down_][static_cast<std::size_t>(x) % across_];
    cell.curve = curve;
  }

  [[nodiscard]] std::string character(const Cell& cell) const {
    if (cell.dots == 0) return " ";
    if (cell.cross) return "×";
    if (marks_) return std::string(1, kMarks[cell.curve % kColours]);
    std::string text;
    append_utf8(text, kBraille + cell.dots);
    return text;
  }

  std::size_t columns_, rows_;
  const TerminalInk& ink_;
  bool marks_;
  std::size_t across_, down_;  ///< dots of a character
  std::vector<Cell> cells_;
};

bool on_axis(const Axis& axis, double value) {
  return std::isfinite(value) && (axis.scale != Axis::Scale::kLog || value > 0);
}

void draw(Canvas& canvas, const Axis& x, const Axis& y, const TerminalCurve& curve,
          std::size_t which) {
  const Bin* before = nullptr;
  for (const Bin& bin : curve.bins) {
    if (std::isnan(bin.mean) && on_axis(x, bin.x)) canvas.cross(x.place(bin.x), which);
    if (!on_axis(x, bin.x) || !on_axis(y, bin.mean)) {
      before = nullptr;
      continue;
    }
    if (bin.broken) before = nullptr;
    const Bin& from = before == nullptr ? bin : *before;
    canvas.line(x.place(from.x), y.place(from.mean), x.place(bin.x), y.place(bin.mean), which);
    before = &bin;
  }
}

/// The ticks of the vertical axis, one text a row of the plot; those that find their row taken are
/// left out.
std::vector<std::string> labels_of_rows(const Axis& y, std::size_t rows, const TerminalInk& ink) {
  std::vector<std::string> labels(rows);
  for (const Tick& tick : y.ticks()) {
    const double place = y.place(tick.value);
    if (place < 0 || place > 1) continue;
    auto& label =
        labels[static_cast<std::size_t>(std::lround((1 - place) * static_cast<double>(rows - 1)))];
    if (label.empty()) label = in_ink(tick.label, ink);
  }
  return labels;
}

/// The ticks of the horizontal axis in one line, the name of the axis at its end or start, where it
/// has room.
std::string labels_below(const Axis& x, std::size_t columns, const TerminalInk& ink) {
  std::string line;
  for (const Tick& tick : x.ticks()) {
    const std::string label = in_ink(tick.label, ink);
    const std::size_t width = display_width(label);
    const auto middle = static_cast<std::size_t>(
        std::lround(x.place(tick.value) * static_cast<double>(columns - 1)));
    const std::size_t start =
        std::min(middle - std::min(middle, width / 2), columns - std::min(columns, width));
    const std::size_t used = display_width(line);
    if (start < used + (used > 0 ? 2 : 0) || start + width > columns) continue;
    line += std::string(start - used, ' ') + label;
  }
  const std::string name = in_ink(x.label, ink);
  const std::size_t used = display_width(line), width = display_width(name);
  if (used + 2 + width <= columns)
    line += std::string(columns - used - width, ' ') + name;
  else if (line.find_first_not_of(' ') >= width + 2)
    line.replace(0, width, name);
  return padded(line, columns);
}

std::string title_line(const std::string& title, std::span<const TerminalCurve> curves,
                       std::size_t columns, const TerminalInk& ink, bool marks) {
  std::string line = shortened(safe_line(title), columns);
  std::size_t used = display_width(line);
  for (std::size_t i = 0; i < curves.size(); ++i) {
    if (curves[i].name.empty()) continue;
    const std::string mark = marks ? std::string(1, kMarks[i % kColours]) : "──";
    const std::size_t room = columns - used, taken = 3 + display_width(mark);
    if (room < taken + 4) break;
    const std::string name =
        shortened(safe_line(curves[i].name), std::min<std::size_t>(room - taken, 40));
    line.append("  ").append(colour_of(ink, i)).append(mark);
    line.append(end_of_colour(ink)).append(" ").append(name);
    used += taken + display_width(name);
  }
  return line + std::string(columns - std::min(columns, used), ' ');
}

}  // namespace

std::string colour_of(const TerminalInk& ink, std::size_t which) {
  return ink.colour ? std::string("\x1b[") + kColourCodes[which % kColours] + "m" : "";
}

std::string end_of_colour(const TerminalInk& ink) { return ink.colour ? "\x1b[0m" : ""; }

std::string in_ink(const std::string& text, const TerminalInk& ink) {
  if (ink.unicode) return text;
  constexpr std::pair<std::uint32_t, const char*> kPlain[] = {
      {0x2212, "-"}, {0xD7, "x"}, {0xB7, "-"}, {0x2026, "."}, {0x2500, "-"}, {0xB1, "~"}};
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(std::string_view(text).substr(at));
    const auto found =
        std::ranges::find(kPlain, point.code, [](const auto& pair) { return pair.first; });
    if (point.code < 0x80)
      out += text[at];
    else if (found != std::end(kPlain))
      out += found->second;
    else  // as wide as what it stands for
      out += std::string(display_width(std::string_view(text).substr(at, point.size)), '?');
    at += point.size;
  }
  return out;
}

std::string padded(std::string_view text, std::size_t columns) {
  std::string line = shortened(text, columns);
  const std::size_t width = display_width(line);
  return line + std::string(columns - std::min(columns, width), ' ');
}

std::vector<std::string> terminal_chart(const std::string& title, const Axis& x, const Axis& y,
                                        std::span<const TerminalCurve> curves, std::size_t columns,
                                        std::size_t rows, const TerminalInk& ink) {
  columns = std::max(columns, kLeastChartColumns);
  rows = std::max(rows, kLeastChartRows);
  const std::size_t plot_rows = rows - 2;
  const bool marks = !ink.unicode || (!ink.colour && curves.size() > 1);
  const auto labels = labels_of_rows(y, plot_rows, ink);
  std::size_t left = 0;
  for (const auto& label : labels) left = std::max(left, display_width(label));
  left = std::min(left, columns / 2);
  const std::size_t plot_columns = columns - left - 1;
  Canvas canvas(plot_columns, plot_rows, ink, marks);
  // The first curve is drawn last, over the others.
  for (std::size_t i = curves.size(); i-- > 0;) draw(canvas, x, y, curves[i], i);
  const bool crossed = std::ranges::any_of(curves, [](const TerminalCurve& curve) {
    return std::ranges::any_of(curve.bins, [](const Bin& bin) { return std::isnan(bin.mean); });
  });
  std::vector<std::string> lines = {
      title_line(title + (crossed ? " (× not finite)" : ""), curves, columns, ink, marks)};
  for (std::size_t row = 0; row < plot_rows; ++row) {
    const std::string label = shortened(labels[row], left);
    const char* edge = ink.unicode ? (label.empty() ? "│" : "┤") : (label.empty() ? "|" : "+");
    lines.push_back(std::string(left - display_width(label), ' ') + label + edge + canvas.row(row));
  }
  lines.push_back(std::string(left + 1, ' ') + labels_below(x, plot_columns, ink));
  for (auto& line : lines) line = in_ink(line, ink);
  return lines;
}

}  // namespace olmo::page

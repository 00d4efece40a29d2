#include "page/terminal_chart.h"

#include <algorithm>
#include <cmath>

#include "core/process/terminal.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::page;

namespace {

constexpr TerminalInk kPlain{.unicode = false, .colour = false};
constexpr TerminalInk kGrey{.unicode = true, .colour = false};

/// Rises from 0 to 1 over the steps 0..n.
TerminalCurve rising(int n, const std::string& name = "") {
  TerminalCurve curve{.name = name, .bins = {}};
  for (int i = 0; i <= n; ++i) {
    const double y = static_cast<double>(i) / n;
    curve.bins.push_back({.x = static_cast<double>(i), .low = y, .mean = y, .high = y});
  }
  return curve;
}

Axis axis(double low, double high, Axis::Scale scale = Axis::Scale::kLinear) {
  Axis made;
  made.scale = scale;
  made.low = low;
  made.high = high;
  return made;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

/// Without escape sequences.
std::string bare(const std::string& line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b')
      i = line.find('m', i);
    else
      text += line[i];
  }
  return text;
}

}  // namespace

TEST_CASE("a terminal chart fills its place exactly, whatever the size and ink", "[page]") {
  const std::vector<TerminalCurve> curves = {rising(100, "first"), rising(7, "日本語の名前")};
  for (const std::size_t columns : {20U, 33U, 80U, 201U}) {
    for (const std::size_t rows : {5U, 12U, 60U}) {
      for (const TerminalInk ink : {kPlain, kGrey, TerminalInk{}}) {
        const auto lines =
            terminal_chart("loss", axis(0, 100), axis(0, 1), curves, columns, rows, ink);
        CHECK(lines.size() == rows);
        CHECK(std::ranges::all_of(
            lines, [&](const auto& line) { return display_width(bare(line)) == columns; }));
      }
    }
  }
}

TEST_CASE("a rising line leads from the lower left to the upper right corner", "[page]") {
  const std::vector<TerminalCurve> curves = {rising(50)};
  const auto lines = terminal_chart("", axis(0, 50), axis(0, 1), curves, 24, 8, kPlain);
  const auto lower = lines[6].find('*'), upper = lines[1].find('*');
  REQUIRE(lower != std::string::npos);
  REQUIRE(upper != std::string::npos);
  CHECK(lines[6][4] == '*');
  CHECK(lines[1].back() == '*');
  CHECK(lower < upper);
}

TEST_CASE("a flat line at the top has the upper dots of the braille patterns", "[page]") {
  TerminalCurve curve{.name = "",
                      .bins = {{.x = 0, .low = 1, .mean = 1, .high = 1},
                               {.x = 10, .low = 1, .mean = 1, .high = 1}}};
  const auto lines = terminal_chart("", axis(0, 10), axis(0, 1), std::vector{curve}, 24, 6, kGrey);
  CHECK(lines[1].find("⠉⠉⠉") != std::string::npos);
  CHECK(lines[2].find("⠉") == std::string::npos);
}

TEST_CASE("the ticks of a terminal chart are those of its axes", "[page]") {
  const Axis y = axis(1, 1000, Axis::Scale::kLog);
  const auto text =
      joined(terminal_chart("", axis(0, 100), y, std::vector{rising(3)}, 80, 30, kPlain));
  for (const Tick& tick : y.ticks()) CHECK(text.find(tick.label) != std::string::npos);
  for (const Tick& tick : axis(0, 100).ticks()) CHECK(text.find(tick.label) != std::string::npos);
}

TEST_CASE("the name of an axis stands at its start where a tick has its end", "[page]") {
  Axis x = axis(1, 10);
  x.label = "step";
  x.counts = true;
  const auto below = [&](std::size_t columns) {
    return terminal_chart("", x, axis(0, 1), std::vector{rising(3)}, columns, 8, kPlain).back();
  };
  CHECK(below(60).find("  step  ") != std::string::npos);
  CHECK(below(60).ends_with("10"));
  x.high = 14;
  CHECK(below(60).ends_with("step"));
}

TEST_CASE("curves are told by colours, and by marks where there are none", "[page]") {
  const std::vector<TerminalCurve> curves = {
      {.name = "a", .bins = {{.x = 0, .low = 1, .mean = 1, .high = 1}}},
      {.name = "b", .bins = {{.x = 10, .low = 0, .mean = 0, .high = 0}}}};
  const auto draw = [&](const TerminalInk& ink) {
    return joined(terminal_chart("", axis(0, 10), axis(0, 1), curves, 40, 8, ink));
  };
  CHECK(draw({}).find("\x1b[36m") != std::string::npos);
  CHECK(draw({}).find("\x1b[33m") != std::string::npos);
  for (const TerminalInk& ink : {kPlain, kGrey}) {
    CHECK(draw(ink).find('\x1b') == std::string::npos);
    CHECK(std::ranges::count(draw(ink), '*') == 2);  // in the legend, and in the plot
    CHECK(std::ranges::count(draw(ink), 'o') == 2);
  }
}

TEST_CASE("a plain terminal gets nothing but ASCII", "[page]") {
  Axis y = axis(-1, 1);
  y.label = "×10";
  const auto text = joined(
      terminal_chart("Verlust – Größe", axis(0, 1), y, std::vector{rising(3, "ü")}, 40, 8, kPlain));
  CHECK(std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
}

TEST_CASE("names in a terminal chart cannot command the terminal", "[page]") {
  const auto text = joined(terminal_chart("a\x1b[2Jb\n", axis(0, 1), axis(0, 1),
                                          std::vector{rising(3, "\x1b]0;x\x07")}, 40, 8, kGrey));
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find('\x07') == std::string::npos);
}

TEST_CASE("what a logarithmic axis cannot show is not drawn", "[page]") {
  const std::vector<TerminalCurve> curves = {{.name = "",
                                              .bins = {{.x = 1, .low = -1, .mean = -1, .high = -1},
                                                       {.x = 2, .low = 0, .mean = 0, .high = 0}}}};
  const auto text = joined(
      terminal_chart("", axis(0, 10), axis(1, 10, Axis::Scale::kLog), curves, 40, 8, kPlain));
  CHECK(text.find('*') == std::string::npos);
}

TEST_CASE("a value that is not finite is a cross at the top, and its title says so", "[page]") {
  auto curve = rising(10);
  curve.bins[5].mean = std::nan("");
  const std::vector<TerminalCurve> curves = {curve};
  const auto lines = terminal_chart("loss", axis(0, 10), axis(0, 1), curves, 42, 8, kGrey);
  CHECK(lines[0].starts_with("loss (× not finite)"));
  CHECK(lines[1].find("×") != std::string::npos);
  CHECK(lines[2].find("×") == std::string::npos);
}

TEST_CASE("a chart without values is empty and whole", "[page]") {
  CHECK(terminal_chart("t", axis(0, 1), axis(0, 1), {}, 40, 8, {}).size() == 8);
}

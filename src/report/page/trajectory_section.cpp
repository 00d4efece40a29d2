// Noise floor and trajectory.
#include <algorithm>
#include <array>
#include <cmath>

#include "page/chart.h"
#include "page/html.h"
#include "report/page/sections.h"

namespace olmo::report::page {
namespace {

using Scale = Axis::Scale;

constexpr std::size_t kMarksOnChart = 200;
/// Beyond so many margins a difference is drawn on the signed logarithmic axis.
constexpr double kLinearMargins = 12;

Axis axis_of_steps(const std::vector<std::int64_t>& tokens, Scale scale, bool tokens_known) {
  std::vector<double> ends;
  if (!tokens.empty()) {
    const auto [first, last] = std::minmax_element(tokens.begin(), tokens.end());
    ends = {static_cast<double>(*first), static_cast<double>(*last)};
  }
  Axis axis =
      axis_over(ends, scale, tokens_known ? "tokens" : "steps (tokens are not recorded)", false);
  axis.counts = true;
  return axis;
}

Axis axis_of_difference(std::vector<double> values, double margin, const std::string& label) {
  double largest = 0;
  for (const double value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
  }
  const bool far = margin > 0 && largest > kLinearMargins * margin;
  values.push_back(1.3 * margin);
  values.push_back(-1.3 * margin);
  Axis axis = axis_over(values, far ? Scale::kSigned : Scale::kLinear,
                        far ? label + ", logarithmic beyond the margin" : label);
  axis.knee = far ? margin : 1;
  return axis;
}

void draw_marks(Chart& chart, std::span<const Mark> marks) {
  for (const Mark& mark : marks.first(std::min(marks.size(), kMarksOnChart)))
    chart.mark(static_cast<double>(mark.tokens), mark.side == 'B' ? "event-b" : "event-a",
               std::string(1, mark.side) + ", " + place_of(mark) + ": " + mark.kind + ". " +
                   clip(mark.text, 120));
}

/// A column of the steps to be drawn.
struct DrawnColumn {
  const char* title;
  const char* unit;
  const std::vector<double> store::StepColumns::*values;
  bool may_be_log;
  bool from_zero;
};

/// The step at some numbers of tokens; empty where one of the two is not known.
std::vector<Point> steps_at(const Side& side) {
  constexpr std::size_t kKnots = 500;
  std::vector<Point> points;
  if (!side.run || !side.run->tokens_known || !side.run->steps.steps_known) return points;
  const store::StepColumns& steps = side.run->steps;
  const std::size_t n = steps.tokens.size();
  for (std::size_t knot = 0; knot < std::min(n, kKnots); ++knot) {
    const std::size_t i = knot * (n - 1) / std::max<std::size_t>(1, std::min(n, kKnots) - 1);
    points.push_back({static_cast<double>(steps.tokens[i]), static_cast<double>(steps.step[i])});
  }
  return points;
}

std::string curve_chart(std::span<const NamedSide> sides, const DrawnColumn& quantity,
                        std::span<const Mark> marks) {
  std::vector<double> values;
  std::vector<std::int64_t> ends;
  bool tokens_known = true;
  for (const NamedSide& named : sides) {
    if (named.side == nullptr || !named.side->run) continue;
    const store::RecordedRun& run = *named.side->run;
    const auto& column = run.steps.*quantity.values;
    if (column.empty() || run.steps.tokens.empty()) continue;
    values.insert(values.end(), column.begin(), column.end());
    ends.insert(ends.end(), {run.steps.tokens.front(), run.steps.tokens.back()});
    tokens_known = tokens_known && run.tokens_known;
  }
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return {};
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const bool log = quantity.may_be_log && *low > 0 && *high > 30 * *low;
  const std::string range = "From " + number(*low, 4) + " to " + number(*high, 4) + ".";
  if (quantity.from_zero) values = {0, *high};
  Axis y = axis_over(values, log ? Scale::kLog : Scale::kLinear, quantity.unit);
  if (quantity.from_zero) y.low = 0;
  y.counts = quantity.from_zero;
  Chart chart(quantity.title, range, axis_of_steps(ends, Scale::kLinear, tokens_known), y);
  draw_marks(chart, marks);
  for (const NamedSide& named : sides) {
    if (named.side == nullptr || !named.side->run) continue;
    const store::StepColumns& steps = named.side->run->steps;
    chart.curve(binned(steps.tokens, steps.*quantity.values), side_look(named.letter),
                steps_at(*named.side));
  }
  return chart.empty() ? std::string() : chart.html();
}

std::string difference_chart(const Trajectory& t, std::span<const Point> steps) {
  if (t.loss.tokens.empty()) return {};
  Chart chart("Difference of the loss, B minus A",
              "The margin is ±" + number(t.margin, 4) + ", the largest difference " +
                  number(t.largest, 4) + ".",
              axis_of_steps(t.loss.tokens, Scale::kLinear, t.tokens_known),
              axis_of_difference(t.loss.values, t.margin, "nats"));
  if (t.last.points > 0)
    chart.stretch(static_cast<double>(t.last.from_tokens), chart.x().high, "late",
                  "tested stretch");
  chart.band(-t.margin, t.margin, "band", "margin");
  chart.rule(t.margin, "edge");
  chart.rule(-t.margin, "edge");
  chart.rule(0, "zero");
  draw_marks(chart, t.marks);
  chart.curve(binned(t.loss.tokens, t.loss.values), {"diff", "B − A"}, steps);
  if (t.last.points > 0) {
    const std::array<Point, 2> mean = {
        {{static_cast<double>(t.last.from_tokens), t.last.mean}, {chart.x().high, t.last.mean}}};
    chart.line(mean, {"mean", "mean"});
  }
  return chart.html();
}

/// Many points, as a power law is straight on logarithmic axes only.
std::vector<Point> fitted(const Growth& growth, const Axis& x) {
  constexpr int kPoints = 100;
  std::vector<Point> points;
  for (int i = 0; i <= kPoints; ++i) {
    const double tokens = x.low * std::pow(x.high / x.low, static_cast<double>(i) / kPoints);
    points.push_back(
        {tokens, std::exp(growth.log_level +
                          growth.slope * std::min(0.0, std::log(tokens / growth.knee_tokens)))});
  }
  return points;
}

std::string growth_chart(const Trajectory& t, const NoiseFloor& noise,
                         std::span<const Point> steps) {
  std::vector<double> sizes = t.loss.values;
  for (double& value : sizes) value = value == 0 ? std::nan("") : std::fabs(value);
  std::vector<double> all = sizes;
  all.insert(all.end(), noise.envelope.begin(), noise.envelope.end());
  if (std::none_of(sizes.begin(), sizes.end(), [](double v) { return std::isfinite(v); }))
    return {};
  Chart chart("Growth of the distance",
              t.growth ? "Power law with the exponent " + number(t.growth->slope, 3) + "."
                       : "Too few points for a fit.",
              axis_of_steps(t.loss.tokens, Scale::kLog, t.tokens_known),
              axis_over(all, Scale::kLog, "|difference|, nats"));
  chart.curve(binned(t.loss.tokens, sizes), {"diff", "|B − A|"}, steps);
  std::vector<Point> envelope;
  for (std::size_t i = 0; i < std::min(noise.envelope.size(), noise.envelope_tokens.size()); ++i)
    envelope.push_back(
        {noise.envelope_tokens[i], noise.envelope[i] > 0 ? noise.envelope[i] : std::nan("")});
  chart.line(envelope, {"noise", "largest among repeats"});
  if (t.growth) chart.line(fitted(*t.growth, chart.x()), {"fit", "fit"});
  return chart.html();
}

std::string last_stretch(const Trajectory& t) {
  Table table({{"Last stretch", false}, {"", false}});
  const LastStretch& last = t.last;
  table.row({"Tested", "the last " + number(100 * t.share, 3) + " % of the tokens, from " +
                           count(last.from_tokens) + " on: " + count(last.points) + " points"});
  table.row({"Mean loss", side_mark('A') + number(t.last_a, 6) + " &ensp;" + side_mark('B') +
                              number(t.last_b, 6)});
  table.row({"Difference",
             "<b>" + signed_number(last.mean) + "</b> nats" +
                 (t.last_interval95 ? ", 95 % interval " + interval_text(*t.last_interval95) : "") +
                 (t.test && !t.test->too_few ? "; " + shown(t.test->method, 160)
                                             : "; too few points for a test")});
  table.row({"Margin", "±" + number(t.margin, 4) + " nats. " + shown(t.margin_source)});
  if (t.drift)
    table.row({"Drift", count(t.drift->positive) + " of " + count(t.drift->blocks) +
                            " blocks above 0 (sign test p " + p_value(t.drift->sign_p) +
                            "), slope " + signed_number(t.drift->slope, 3) + " per point (p " +
                            p_value(t.drift->slope_p) + ")"});
  return table.html();
}

std::string distances(const Trajectory& t) {
  std::string text = "Loss of the first common step: " + number(t.first_loss_relative, 3) +
                     " apart, relative. Largest difference: " + number(t.largest, 4) + " nats (" +
                     number(t.largest_relative, 3) + " relative), " +
                     number(t.largest_smoothed, 4) + " after smoothing over 1 %.";
  if (t.growth)
    text += " |Difference| grows as tokens<sup>" + number(t.growth->slope, 3) + "</sup>" +
            (t.growth->saturated
                 ? " until " + compact(t.growth->knee_tokens) + " tokens, then stays at " +
                       number(std::exp(t.growth->log_level), 3) + " nats"
                 : "") +
            ".";
  if (t.loss.only_a > 0 || t.loss.only_b > 0)
    text += " Without a partner: " + count(t.loss.only_a) + " points of A, " +
            count(t.loss.only_b) + " of B.";
  if (t.binned) text += " Batch sizes differ: means in bins of " + count(t.bin_tokens) + " tokens.";
  std::vector<std::string> found;
  for (const Parting& parting : t.partings)
    found.push_back(sentence_of(parting, t.unit_of_partings));
  return paragraph(text) + (found.empty() ? "" : "<h3>Where they part</h3>\n" + list_of(found)) +
         (t.caveats.empty() ? "" : element("div", "caveats", list_of(t.caveats)) + "\n");
}

/// Every run that was looked at: whose it is, and why it counts or not.
std::string repeats_table(const std::vector<Repeat>& runs) {
  Table table({{"Run", false},
               {"Side", false},
               {"Seed", true},
               {"Host", false},
               {"Tags", false},
               {"Mean loss of the last stretch", true},
               {"Counts", false}});
  for (const Repeat& run : runs)
    table.row({code(run.run_id), run.side ? side_mark(*run.side) : "–",
               run.seed ? std::to_string(*run.seed) : "–", shown(run.host, 80), shown(run.tags, 80),
               run.taken ? number(run.mean, 6) : "–",
               (run.taken ? "yes" : "no: " + shown(run.left_out)) + "<br><span class=\"note\">" +
                   shown(run.known_by) + "</span>"});
  return table.html();
}

/// Each pair of branches, and those without a partner.
std::string branches_table(const Branches& branches) {
  if (branches.pairs.empty() && branches.unpaired.empty()) return "";
  Table table({{"From step", true},
               {"Steps", true},
               {"Run of A", false},
               {"Run of B", false},
               {"Difference, nats", true}});
  for (const BranchPair& pair : branches.pairs)
    table.row({count(pair.from_step), count(pair.steps), code(pair.run_a), code(pair.run_b),
               signed_number(pair.difference) + (pair.equal_bits ? " (equal bits)" : "")});
  std::vector<std::string> alone;
  for (const UnpairedBranch& branch : branches.unpaired)
    alone.push_back(branch.run_id + (branch.side ? std::string(" of ") + *branch.side : "") + ": " +
                    branch.reason + ".");
  return "<h3>Branches from common checkpoints</h3>\n" + (table.empty() ? "" : table.html()) +
         (alone.empty() ? "" : paragraph("Without a partner:") + list_of(alone));
}

}  // namespace

std::string noise_section(const ParityReport& report) {
  const NoiseFloor& noise = report.noise;
  const std::string to_run =
      noise.to_run.empty() ? "" : "<b>To run</b>: " + shown(noise.to_run, 1500);
  const bool alone = noise.k_a < 2 && noise.k_b < 2 && noise.looked_at.size() <= 2 &&
                     noise.branches.pairs.empty() && noise.branches.unpaired.empty();
  if (alone)
    return empty_section("noise", "Repeated runs",
                         "One run a side: what chance does is not known. " + to_run);
  std::string html =
      paragraph("What chance alone does, from repeated runs of a side: " + count(noise.k_a) +
                " independent of A, " + count(noise.k_b) + " of B" +
                (noise.pairs > 0 ? ", " + count(noise.pairs) + " pairs of one seed" : "") + ".");
  html += repeats_table(noise.looked_at) + branches_table(noise.branches);
  html += paragraph(
      "Standard deviation between runs: " +
      (noise.seed_deviation ? number(*noise.seed_deviation, 4) + " nats"
                            : element("span", "absent", "needs repeated runs")) +
      ". Label permutation test: " +
      (noise.p
           ? "p " + p_value(*noise.p) +
                 (noise.minimum_p ? " (smallest possible " + p_value(*noise.minimum_p) + ")" : "")
           : element("span", "absent", "needs two runs a side")) +
      ".");
  if (!to_run.empty()) html += element("div", "caveats", paragraph(to_run));
  return section("noise", "Repeated runs", html);
}

std::string loss_charts(std::span<const NamedSide> sides, std::span<const Mark> marks) {
  return curve_chart(sides, {"Training loss", "nats", &store::StepColumns::loss, false, false},
                     marks) +
         curve_chart(
             sides,
             {"Gradient norm", "before clipping", &store::StepColumns::grad_norm, true, false},
             {}) +
         curve_chart(sides, {"Learning rate", "", &store::StepColumns::lr, false, false}, {});
}

std::string throughput_chart(std::span<const NamedSide> sides) {
  return curve_chart(
      sides, {"Throughput", "tokens/s", &store::StepColumns::tokens_per_second, false, true}, {});
}

std::string place_of(const Mark& mark) {
  return mark.step == kUnknownStep ? count(mark.tokens) + " tokens" : "step " + count(mark.step);
}

std::string events_table(std::span<const Mark> marks) {
  if (marks.empty()) return note("No spike, restart, gap or skipped step.");
  Table table(
      {{"Event", false}, {"Side", false}, {"Step", true}, {"Tokens", true}, {"What", false}});
  for (const Mark& mark : marks)
    table.row({shown(mark.kind, 60), side_mark(mark.side),
               mark.step == kUnknownStep ? "–" : count(mark.step), count(mark.tokens),
               shown(mark.text)});
  const auto n = static_cast<std::int64_t>(marks.size());
  return folded(count(n) + (n == 1 ? " event" : " events"), table.html());
}

std::string trajectory_section(const ParityReport& report) {
  const std::array<NamedSide, 2> sides = {{{'A', &report.a, nullptr}, {'B', &report.b, nullptr}}};
  const std::span<const Mark> marks =
      report.trajectory ? std::span<const Mark>(report.trajectory->marks) : std::span<const Mark>();
  std::string html;
  if (report.trajectory) {
    const Trajectory& t = *report.trajectory;
    const std::vector<Point> steps = steps_at(report.a);
    html += last_stretch(t) + difference_chart(t, steps) + distances(t) +
            growth_chart(t, report.noise, steps);
  } else {
    html += note("No training steps on both sides to compare.");
  }
  html += loss_charts(sides, marks);
  if (report.trajectory) html += "<h3>Events</h3>\n" + events_table(marks);
  return section("trajectory", "Trajectory", html);
}

}  // namespace olmo::report::page

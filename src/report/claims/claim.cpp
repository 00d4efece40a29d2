#include "report/claims/claim.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text/number.h"
#include "core/text/text.h"

namespace olmo::report {
namespace {

struct Default {
  const char* name;
  double value;
  const char* reason;
};
constexpr Default kTrajectoryLoss = {
    "loss", kSmallestLossMargin,
    "the smallest deviation between equal trainings that is on record; rounding stays below it"};
constexpr Default kOutcomeLoss = {
    "loss", 0.01,
    "two to five times the deviation between equal trainings with different seeds, 0.002 to 0.004"};
constexpr Default kMacro = {"macro", 0.5,
                            "half a point, below what published comparisons call a difference"};
constexpr Default kTask = {"task", 1, "one point, about the rounding of published scores"};
constexpr Default kBpb = {"bpb", kBpbMargin, "as many bits as the loss may differ in nats"};

Margin margin_of(const Default& usual, const MarginSources& sources,
                 std::optional<RepeatDeviation> deviation = {}, double smallest = 0,
                 double largest = 0) {
  if (const auto found = sources.declared.find(usual.name); found != sources.declared.end())
    return {found->second.value, MarginSource::kDeclared, found->second.who, found->second.when,
            "declared by " + found->second.who + " at " + found->second.when};
  if (const auto found = sources.command_line.find(usual.name); found != sources.command_line.end())
    return {found->second, MarginSource::kCommandLine, "", "", "of the command line"};
  if (!deviation) return {usual.value, MarginSource::kDefault, "", "", usual.reason};
  const double found = deviation->factor * deviation->pooled;
  const double value = std::clamp(found, smallest, largest);
  std::string reason = number_text(deviation->factor) + " standard deviations between repeats, " +
                       number_text(deviation->pooled) + " each";
  if (value < found) reason += ", but not more than " + number_text(largest);
  if (value > found) reason += ", but not less than " + number_text(smallest);
  return {value, MarginSource::kRepeats, "", "", reason};
}

}  // namespace

const char* to_string(Scope scope) { return scope == Scope::kModels ? "models" : "setups"; }

const char* to_string(MarginSource source) {
  if (source == MarginSource::kDeclared) return "declared";
  if (source == MarginSource::kCommandLine) return "command line";
  return source == MarginSource::kRepeats ? "repeats" : "default";
}

const Margin& Margins::of(Endpoint endpoint) const {
  if (endpoint == Endpoint::kLoss) return loss;
  if (endpoint == Endpoint::kMacro) return macro;
  return endpoint == Endpoint::kBpb ? bpb : task;
}

GivenMargins parse_margins(const std::string& text) {
  GivenMargins given;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    at = end + 1;
    const auto equals = part.find('=');
    const std::string name = part.substr(0, equals);
    const auto value = parse_number<double>(part.substr(equals + 1));
    const bool known = name == "loss" || name == "macro" || name == "task" || name == "bpb";
    if (!known || !value || !(*value > 0) || !std::isfinite(*value) || given.contains(name))
      throw Error(
          ErrorKind::kUsage,
          "margin: expected loss=NATS, macro=POINTS, task=POINTS or bpb=BITS, each once and "
          "positive, separated by commas; received `" +
              part + "`");
    given[name] = *value;
  }
  return given;
}

Margins resolve_margins(const MarginSources& sources) {
  const Default& loss = sources.one_trajectory ? kTrajectoryLoss : kOutcomeLoss;
  return {.loss = margin_of(loss, sources, sources.loss_deviation, kSmallestLossMargin,
                            kLargestLossMargin),
          .macro = margin_of(kMacro, sources, sources.macro_deviation, kMacro.value,
                             kLargestMacroMargin),
          .bpb = margin_of(kBpb, sources),
          .task = margin_of(kTask, sources)};
}

}  // namespace olmo::report

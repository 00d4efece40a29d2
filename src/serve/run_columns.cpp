#include "serve/run_columns.h"

#include <cmath>

#include "core/text/text.h"
#include "page/html.h"

namespace olmo::serve {
namespace {

using namespace page;

constexpr char kNone[] = "<span class=\"note\">–</span>";

SortValue sorted(const std::optional<double>& value) {
  return value ? SortValue(*value) : SortValue();
}
SortValue sorted(const std::string& text) { return text.empty() ? SortValue() : SortValue(text); }

std::string text_html(const std::string& text) { return text.empty() ? kNone : shown(text, 120); }

std::string compact_html(const std::optional<double>& value) {
  return value ? compact(*value) : kNone;
}

std::string step_html(const RunEntry& run) {
  if (!run.summary.step) return kNone;
  const auto step = *run.summary.step, of = run.summary.run.max_steps;
  std::string html = count(step);
  if (of > 0) html += " <span class=\"note\">of " + count(of) + "</span>";
  return html;
}

std::string tags_html(const RunEntry& run) {
  std::string html;
  for (const auto& tag : run.summary.tags)
    html += (html.empty() ? "" : " ") + element("span", "tag", shown(tag, 60));
  return html.empty() ? kNone : html;
}

std::optional<double> as_double(const std::optional<std::int64_t>& value) {
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

std::optional<double> positive(std::int64_t value) {
  return value > 0 ? std::optional(static_cast<double>(value)) : std::nullopt;
}

std::string ago(double seconds) {
  if (seconds < 120) return count(static_cast<std::int64_t>(seconds)) + " s ago";
  if (seconds < 7200) return count(static_cast<std::int64_t>(seconds / 60)) + " min ago";
  if (seconds < 172'800) return count(static_cast<std::int64_t>(seconds / 3600)) + " h ago";
  return count(static_cast<std::int64_t>(seconds / 86'400)) + " days ago";
}

constexpr RunColumn kColumns[] = {
    {"status", "Status", false, true,
     [](const RunEntry& run) { return state_html(run) + record_html(run); },
     [](const RunEntry& run) { return SortValue(run.now.state); }},
    {"step", "Step", true, true, step_html,
     [](const RunEntry& run) { return sorted(as_double(run.summary.step)); }},
    {"tokens", "Tokens", true, true,
     [](const RunEntry& run) { return compact_html(as_double(run.summary.tokens)); },
     [](const RunEntry& run) { return sorted(as_double(run.summary.tokens)); }},
    {"loss", "Loss", true, true, [](const RunEntry& run) { return loss_html(run, 5); },
     [](const RunEntry& run) { return sorted(run.summary.ce_loss); }},
    {"speed", "Tokens/s", true, true,
     [](const RunEntry& run) { return compact_html(run.summary.tokens_per_second); },
     [](const RunEntry& run) { return sorted(run.summary.tokens_per_second); }},
    {"evaluations", "Evaluations", true, true,
     [](const RunEntry& run) {
       return run.summary.evaluations > 0 ? count(run.summary.evaluations) : std::string(kNone);
     },
     [](const RunEntry& run) { return sorted(positive(run.summary.evaluations)); }},
    {"created", "Created (UTC)", false, true,
     [](const RunEntry& run) { return shown(short_time(run.summary.run.created_utc), 40); },
     [](const RunEntry& run) { return sorted(run.summary.run.created_utc); }},
    {"tags", "Tags", false, true, tags_html,
     [](const RunEntry& run) { return sorted(joined(run.summary.tags)); }},
    {"host", "Host", false, true, [](const RunEntry& run) { return text_html(run.summary.host); },
     [](const RunEntry& run) { return sorted(run.summary.host); }},
    {"parameters", "Parameters", true, false,
     [](const RunEntry& run) { return compact_html(positive(run.summary.run.n_parameters)); },
     [](const RunEntry& run) { return sorted(positive(run.summary.run.n_parameters)); }},
    {"attempts", "Attempts", true, false,
     [](const RunEntry& run) { return count(run.summary.attempts); },
     [](const RunEntry& run) { return SortValue(static_cast<double>(run.summary.attempts)); }},
    {"ranks", "Ranks", true, false,
     [](const RunEntry& run) {
       return compact_html(positive(run.summary.last_attempt.world_size.value_or(0)));
     },
     [](const RunEntry& run) {
       return sorted(positive(run.summary.last_attempt.world_size.value_or(0)));
     }},
    {"seed", "Seed", true, false,
     [](const RunEntry& run) { return std::to_string(run.summary.run.seed); },
     [](const RunEntry& run) { return SortValue(static_cast<double>(run.summary.run.seed)); }},
    {"written", "Last written", true, false,
     [](const RunEntry& run) { return ago(run.unwritten_seconds); },
     [](const RunEntry& run) { return SortValue(-run.unwritten_seconds); }},
    {"database", "Database", false, false, [](const RunEntry& run) { return text_html(run.place); },
     [](const RunEntry& run) { return sorted(run.place); }},
    {"id", "Run id", false, false,
     [](const RunEntry& run) { return code(clip(run.summary.run.run_id, 80)); },
     [](const RunEntry& run) { return sorted(run.summary.run.run_id); }},
};

}  // namespace

std::span<const RunColumn> run_columns() { return kColumns; }

const RunColumn* run_column(const std::string& id) {
  for (const RunColumn& column : kColumns)
    if (column.id == id) return &column;
  return nullptr;
}

std::string state_html(const RunEntry& run) {
  using monitor::Activity;
  const std::string& state = run.now.state;
  const bool bad = state == "failed" || state == "diverged";
  const bool unsure = run.now.activity == Activity::kGone || run.now.activity == Activity::kUnknown;
  const char* classes = bad                                   ? "bad"
                        : unsure || state == "stopped"        ? "warn"
                        : run.now.activity == Activity::kRuns ? "good"
                                                              : "";
  std::string html = element("span", classes, shown(state, 40));
  if (unsure) html += " <span class=\"note\">written " + ago(run.unwritten_seconds) + "</span>";
  return html;
}

std::string record_html(const RunEntry& run) {
  if (run.record.state == report::RecordCheck::State::kSound) return {};
  return std::string(" <span class=\"") + (run.record.is_damaged() ? "bad" : "note") +
         "\" title=\"" + shown(run.record.reason, 600) + "\">" + to_string(run.record.state) +
         "</span>";
}

std::string loss_html(const RunEntry& run, int digits) {
  const auto& loss = run.summary.ce_loss;
  if (!run.summary.step && !run.summary.tokens) return kNone;
  // Each step has one.
  return loss && std::isfinite(*loss) ? number(*loss, digits)
                                      : element("span", "bad", "not finite");
}

std::string short_time(const std::string& utc) {
  if (utc.size() < 16 || utc[10] != 'T') return utc;
  return utc.substr(0, 10) + " " + utc.substr(11, 5);
}

}  // namespace olmo::serve

#include "cli/import_output.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "config/file.h"
#include "config/run_columns.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/text/text.h"
#include "model/model_config.h"
#include "models/told_model.h"

namespace olmo::cli {
namespace {

using import::StepLog;

constexpr std::size_t kWidth = 80;
constexpr std::size_t kIndent = 32;
constexpr std::size_t kMostLines = 3;

/// A name as a log has it, printable and no longer than its place.
std::string shown(const std::string& name) {
  constexpr std::size_t kLongest = kWidth - kIndent - 1;
  std::string text = name;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text.size() <= kLongest ? text : text.substr(0, kLongest - 3) + "...";
}

/// `label` and the names beside it, in a few lines.
std::string line_of(const std::string& label, const std::vector<std::string>& names) {
  std::string text = "  " + label + std::string(kIndent - 2 - label.size(), ' ');
  std::size_t column = kIndent, lines = 1;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name = shown(names[i]) + (i + 1 < names.size() ? "," : "");
    const bool breaks = column > kIndent && column + 1 + name.size() > kWidth;
    if (breaks && lines == kMostLines) {
      text +=
          "\n" + std::string(kIndent, ' ') + "and " + std::to_string(names.size() - i) + " more";
      break;
    }
    if (breaks) {
      text += "\n" + std::string(kIndent, ' ');
      column = kIndent;
      ++lines;
    } else if (column > kIndent) {
      text += " ";
      ++column;
    }
    text += name;
    column += name.size();
  }
  return text + "\n";
}

void add_notes(const StepLog& log, std::vector<std::string>& notes) {
  constexpr std::size_t kMostRestarts = 5;
  const std::string file = std::filesystem::path(log.path).filename().string() + ": ";
  const auto add = [&](std::int64_t count, const std::string& what, const std::string& so) {
    if (count > 0) notes.push_back(file + counted(count, what) + so);
  };
  add(log.skipped, "row", " without a loss (their metrics are kept)");
  add(log.unplaced, "row", " with metrics, but without step or tokens: left out");
  add(log.repeated, "row",
      log.repeated == 1 ? " is followed by one of the same step: left out"
                        : " are followed by one of the same step: left out");
  add(log.headers, "header line", " within the file");
  add(log.rounded, "token count",
      " above 2^24, which an event file rounds: left out (--tokens-per-step N)");
  if (log.cut) notes.push_back(file + "ends within a record, which is left out");
  if (log.run && !log.run->exit_code)
    notes.push_back(file + "tells no end of the run, which goes on or was killed");
  else if (log.run && *log.run->exit_code != 0)
    notes.push_back(file + "the run ended with exit code " + std::to_string(*log.run->exit_code));
  if (log.reversed) notes.push_back(file + "the last step comes first: turned round");
  for (std::size_t i = 0; i < std::min(log.restarts.size(), kMostRestarts); ++i)
    notes.push_back(file + log.restarts[i].message);
  if (log.restarts.size() > kMostRestarts)
    add(static_cast<std::int64_t>(log.restarts.size() - kMostRestarts), "further time",
        " the log goes back");
}

bool skips_steps(const StepLog& log) {
  return log.steps_known && std::ranges::adjacent_find(log.steps, [](const auto& a, const auto& b) {
                              return b.position > a.position + 1;
                            }) != log.steps.end();
}

/// W&B wraps each key as `{desc: …, value: …}`.
bool is_wrapped(const Json& value) {
  if (!value.is_object() || !value.contains("value")) return false;
  return value.size() == 1 || (value.size() == 2 && value.contains("desc"));
}

/// The keys that are W&B's own are left out.
Json unwrapped(const Json& config) {
  Json result = Json::object();
  for (const auto& [key, value] : config.items()) {
    if (key == "wandb_version" || key == "_wandb") continue;
    result[key] = is_wrapped(value) ? value["value"] : value;
  }
  return result;
}

bool is_of_wandb(const Json& config) {
  std::size_t wrapped = 0;
  for (const auto& [key, value] : config.items()) wrapped += is_wrapped(value);
  return wrapped > 0 && (config.contains("wandb_version") || 2 * wrapped > config.size());
}

}  // namespace

constexpr char kGpuCount[] = "gpu_count";

namespace {

ForeignConfig described(const Json& config) {
  const auto seed = config.find("seed");
  const bool has_seed = seed != config.end() && seed->is_number_integer() && *seed >= 0;
  ForeignConfig foreign{.text = json_text(config), .n_parameters = {}, .max_steps = {}};
  if (has_seed) foreign.seed = seed->get<std::uint64_t>();
  if (auto told = models::read_told_model(config)) {
    foreign.n_parameters = model::count_parameters(told->config).total;
    foreign.translated = !told->in_olmo_keys.empty();
    if (foreign.translated) foreign.text = std::move(told->in_olmo_keys);
  }
  // Without the key the length would be a default of ours.
  if (config.contains("max_duration"))
    if (const auto columns = config::run_columns(foreign.text))
      foreign.max_steps = columns->max_steps;
  return foreign;
}

}  // namespace

ForeignConfig foreign_config(const std::string& json) { return described(Json::parse(json)); }

ForeignConfig read_foreign_config(const std::string& path) {
  if (path.empty()) return {};
  const Json config = config::to_json(config::read_config_file(path).root);
  return described(is_of_wandb(config) ? unwrapped(config) : config);
}

std::string read_foreign_machine(const std::string& path) {
  if (path.empty()) return "{}";
  const Json metadata = read_json_file(path);
  if (!metadata.is_object())
    throw Error(ErrorKind::kInput, path + ": W&B's metadata must be a JSON object");
  constexpr std::array<std::pair<const char*, const char*>, 6> kFacts = {
      {{"host", "host"},
       {"os", "os"},
       {"gpu", "gpu"},
       {kGpuCount, "gpus_of_a_node"},
       {"python", "python"},
       {"startedAt", "started_utc"}}};
  Json machine = Json::object();
  for (const auto& [theirs, ours] : kFacts) {
    const auto found = metadata.find(theirs);
    if (found == metadata.end() || found->is_null()) continue;
    const bool counts = theirs == std::string_view(kGpuCount);
    if (counts ? !found->is_number_unsigned() : !found->is_string())
      throw Error(ErrorKind::kInput, path + ": `" + theirs + "` must be " +
                                         (counts ? "a whole number" : "text") + ", is " +
                                         json_text(*found).substr(0, 40));
    machine[ours] = *found;
  }
  return json_text(machine);
}

std::string mapping_text(const StepLog& log) {
  std::string text = shown(std::filesystem::path(log.path).filename().string()) + " (" +
                     std::string(to_string(log.format)) + ")\n";
  for (const auto target : import::kImportTargets) {
    const auto column = log.columns.find(target);
    if (column == log.columns.end()) continue;
    const auto scale = log.scales.find(std::string(target));
    std::string name = column->second;
    if (scale != log.scales.end()) name += " * " + nlohmann::json(scale->second).dump();
    if (const auto shift = log.shifts.find(std::string(target)); shift != log.shifts.end())
      name += (shift->second < 0 ? " - " : " + ") + std::to_string(std::abs(shift->second));
    text += line_of(std::string(target), {name});
  }
  if (!log.metric_names.empty())
    text += line_of(counted(std::ssize(log.metric_names), "metric"), log.metric_names);
  if (!log.ignored.empty())
    text += line_of(std::to_string(log.ignored.size()) + " ignored", log.ignored);
  return text;
}

nlohmann::ordered_json mapping_json(const StepLog& log) {
  return {{"path", log.path},
          {"format", to_string(log.format)},
          {"columns", log.columns},
          {"scales", log.scales},
          {"shifts", log.shifts},
          {"metrics", log.metric_names},
          {"ignored", log.ignored},
          {"steps", log.steps.size()},
          {"rows_without_loss", log.skipped}};
}

std::vector<std::string> import_notes(const std::vector<StepLog>& logs,
                                      const import::StepLogOptions& options,
                                      import::FileOrder order, const LossMeaning& losses) {
  std::vector<std::string> notes;
  if (logs.size() > 1) {
    std::string files;
    for (const auto& log : logs)
      files += (files.empty() ? "" : ", ") + std::filesystem::path(log.path).filename().string();
    notes.push_back("one run in " + counted(std::ssize(logs), "file") + ", " +
                    std::string(to_string(order)) + ": " + files);
  }
  const StepLog& first = logs.front();
  const auto step = first.columns.find("step");
  if (step != first.columns.end() && import::metric_of(step->second) == "_step")
    notes.emplace_back("_step counts the calls of wandb.log, unless the trainer gave it its step");
  if (!first.steps_known)
    notes.emplace_back(
        "no step is known: the tokens are the axis (--tokens-per-step N tells the steps)");
  const bool tokens = std::ranges::all_of(logs, [](const StepLog& log) {
    return std::all_of(log.steps.begin(), log.steps.end(),
                       [](const auto& row) { return row.tokens.has_value(); });
  });
  if (!tokens)
    notes.emplace_back("not all tokens are known: the steps are the axis (--tokens-per-step N)");
  if (first.columns.contains("tokens_per_second_per_device") &&
      !first.columns.contains("tokens_per_second") && !options.devices)
    notes.emplace_back("throughput is of one device; --devices N makes the run's of it");
  if (!losses.mean)
    notes.emplace_back(
        "whether the losses are means over labels or over tokens is not known (--loss-mean)");
  if (!losses.span && skips_steps(first))
    notes.emplace_back(
        "whether a loss is that of its step or the mean since the row before is not known "
        "(--loss-span)");
  for (const auto& log : logs) add_notes(log, notes);
  return notes;
}

}  // namespace olmo::cli

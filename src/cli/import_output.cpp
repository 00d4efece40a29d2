#include "cli/import_output.h"

#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

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
std::string listed(const std::string& label, const std::vector<std::string>& names) {
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

std::string counted(std::int64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
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
  if (log.reversed) notes.push_back(file + "the last step comes first: turned round");
  for (std::size_t i = 0; i < std::min(log.restarts.size(), kMostRestarts); ++i)
    notes.push_back(file + log.restarts[i].message);
  if (log.restarts.size() > kMostRestarts)
    add(static_cast<std::int64_t>(log.restarts.size() - kMostRestarts), "further time",
        " the log goes back");
}

}  // namespace

std::string mapping_text(const StepLog& log) {
  std::string text = shown(std::filesystem::path(log.path).filename().string()) + " (" +
                     std::string(to_string(log.format)) + ")\n";
  for (const auto target : import::kImportTargets) {
    const auto column = log.columns.find(target);
    if (column == log.columns.end()) continue;
    const auto scale = log.scales.find(std::string(target));
    std::string name = column->second;
    if (scale != log.scales.end()) name += " * " + nlohmann::json(scale->second).dump();
    text += listed(std::string(target), {name});
  }
  if (!log.metric_names.empty())
    text += listed(std::to_string(log.metric_names.size()) +
                       (log.metric_names.size() == 1 ? " metric" : " metrics"),
                   log.metric_names);
  if (!log.ignored.empty())
    text += listed(std::to_string(log.ignored.size()) + " ignored", log.ignored);
  return text;
}

nlohmann::ordered_json mapping_json(const StepLog& log) {
  return {{"path", log.path},          {"format", to_string(log.format)}, {"columns", log.columns},
          {"scales", log.scales},      {"metrics", log.metric_names},     {"ignored", log.ignored},
          {"steps", log.steps.size()}, {"rows_without_loss", log.skipped}};
}

std::vector<std::string> import_notes(const std::vector<StepLog>& logs,
                                      const import::StepLogOptions& options,
                                      import::FileOrder order) {
  std::vector<std::string> notes;
  if (logs.size() > 1) {
    std::string files;
    for (const auto& log : logs)
      files += (files.empty() ? "" : ", ") + std::filesystem::path(log.path).filename().string();
    notes.push_back("one run in " + counted(static_cast<std::int64_t>(logs.size()), "file") + ", " +
                    std::string(to_string(order)) + ": " + files);
  }
  const StepLog& first = logs.front();
  const auto step = first.columns.find("step");
  if (step != first.columns.end() && import::metric_of(step->second) == "_step")
    notes.emplace_back("_step counts the calls of wandb.log, unless the trainer gave it its step");
  if (!first.steps_known)
    notes.emplace_back(
        "no step is known: the tokens are the axis (--tokens-per-step N tells the steps)");
  const bool tokens = std::all_of(logs.begin(), logs.end(), [](const StepLog& log) {
    return std::all_of(log.steps.begin(), log.steps.end(),
                       [](const auto& row) { return row.tokens.has_value(); });
  });
  if (!tokens)
    notes.emplace_back("not all tokens are known: the steps are the axis (--tokens-per-step N)");
  if (first.columns.contains("tokens_per_second_per_device") &&
      !first.columns.contains("tokens_per_second") && !options.devices)
    notes.emplace_back("throughput is of one device; --devices N makes the run's of it");
  for (const auto& log : logs) add_notes(log, notes);
  return notes;
}

}  // namespace olmo::cli

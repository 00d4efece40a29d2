#include "store/checkpoint/checkpoint.h"

#include <cmath>
#include <iomanip>
#include <iostream>
#include <map>

#include <nlohmann/json.hpp>

#include "cli/compute/compute.h"
#include "cli/given_path.h"
#include "cli/screen/table.h"
#include "core/compute/named_tensors.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/process/activity.h"
#include "core/text/safe_text.h"
#include "core/text/text.h"
#include "store/checkpoint/checkpoint_diff.h"
#include "store/checkpoint/checkpoint_folder.h"

namespace olmo::cli::compute {
namespace {

using store::CheckpointDataset;
using store::CheckpointReader;
using store::TensorDifference;
using Verdict = TensorDifference::Verdict;

std::int64_t elements(const CheckpointDataset& dataset) {
  std::int64_t count = 1;
  for (const std::int64_t extent : dataset.shape) count *= extent;
  return count;
}

/// Enough digits to give the same float64 back; words for what JSON has no number for.
Json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

/// As many digits as an fp32 has.
std::string element_text(double value) { return formatted("%.9g", value); }

void row(const std::string& name, const std::string& value) {
  std::cout << std::left << std::setw(26) << name << value << '\n';
}

Json tensor_json(const CheckpointDataset& dataset) {
  return {{"path", dataset.path},
          {"dtype", dataset.dtype},
          {"shape", dataset.shape},
          {"bytes", dataset.bytes},
          {"sha256", dataset.sha256.hex()}};
}

/// Counts per group: model, optim/exp_avg, ….
struct Group {
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
};

std::map<std::string, Group> groups_of(const CheckpointReader& reader) {
  std::map<std::string, Group> groups;
  for (const auto& dataset : reader.datasets()) {
    if (dataset.dtype == "json") continue;
    Group& group = groups[dataset.path.substr(1, dataset.path.rfind('/') - 1)];
    ++group.tensors;
    group.elements += elements(dataset);
  }
  return groups;
}

Json inspect_json(const CheckpointReader& reader, bool with_tensors) {
  Json result = {{"checkpoint", reader.path().string()},
                 {"bytes", reader.bytes()},
                 {"manifest_sha256", reader.manifest_digest().hex()},
                 {"summary", reader.summary()},
                 {"config", reader.config()},
                 {"trainer", reader.trainer()}};
  if (reader.kind() == store::CheckpointKind::kFull) result["optim_state"] = reader.optim_state();
  for (const auto& [name, group] : groups_of(reader)) {
    result["groups"][name] = {{"tensors", group.tensors}, {"elements", group.elements}};
  }
  if (with_tensors) {
    for (const auto& dataset : reader.datasets()) {
      if (dataset.dtype != "json") result["tensors"].push_back(tensor_json(dataset));
    }
  }
  return result;
}

/// Nested objects as "outer.inner", a line each.
void rows_of(const Json& object, const std::string& prefix) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object()) {
      rows_of(value, prefix + key + ".");
    } else {
      row("  " + prefix + key, value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
}

void inspect_text(const CheckpointReader& reader, const CheckpointOptions& options) {
  const Json& summary = reader.summary();
  const auto text = [&](const char* key) {
    const Json value = summary.value(key, Json());
    return value.is_string() ? value.get<std::string>() : value.is_null() ? "-" : json_text(value);
  };
  row("checkpoint", reader.path().string());
  row("format", text("format") + ", version " + text("format_version"));
  row("kind", text("kind") + (summary.at("ephemeral").get<bool>() ? ", ephemeral" : ""));
  row("step", text("step"));
  row("tokens seen", text("tokens_seen"));
  row("run", text("run_id"));
  row("created", text("created_utc"));
  row("revision", text("git_revision"));
  row("bytes", std::to_string(reader.bytes()));
  row("manifest", "sha256 " + reader.manifest_digest().hex());
  row("tensors", "sha256 " + reader.tensors_digest().hex());
  for (const auto& [name, group] : groups_of(reader)) {
    row("  " + name, std::to_string(group.elements) + " values in " +
                         std::to_string(group.tensors) + " tensors");
  }
  row("trainer", "");
  rows_of(reader.trainer(), "");
  if (options.config) {
    std::cout << "config\n" << reader.config().dump(2) << '\n';
  } else {
    row("config", "shown by --config");
  }
  if (!options.tensors) return;
  TextTable tensors({"tensor", "shape", "dtype", "sha256"});
  for (const auto& dataset : reader.datasets()) {
    if (dataset.dtype != "json")
      tensors.add({dataset.path, shape_text(dataset.shape), dataset.dtype, dataset.sha256.hex()});
  }
  std::cout << '\n';
  tensors.print(std::cout);
}

Json difference_json(const TensorDifference& difference) {
  Json result = {{"name", difference.name}, {"verdict", store::to_string(difference.verdict)}};
  if (difference.verdict != Verdict::kDifferent) return result;
  result["elements"] = difference.elements;
  result["unequal"] = difference.unequal;
  result["unequal_nans"] = difference.unequal_nans;
  result["max_abs"] = number(difference.max_abs);
  result["max_ulp"] = difference.max_ulp;
  result["first"] = {{"index", difference.first_index},
                     {"a", number(difference.first_a)},
                     {"b", number(difference.first_b)}};
  return result;
}

std::string difference_text(const TensorDifference& difference) {
  std::string text = difference.name + ": " + store::to_string(difference.verdict);
  if (difference.verdict != Verdict::kDifferent) return text;
  text += " in " + std::to_string(difference.unequal) + " of " +
          std::to_string(difference.elements) + " values, max |a-b| " +
          element_text(difference.max_abs) + ", max ulp " + std::to_string(difference.max_ulp);
  if (difference.unequal_nans > 0)
    text += ", NaN on a side in " + std::to_string(difference.unequal_nans);
  return text + ", first at " + std::to_string(difference.first_index) + ": " +
         element_text(difference.first_a) + " and " + element_text(difference.first_b);
}

}  // namespace

int inspect_checkpoint(const CheckpointOptions& options) {
  require_own_checkpoint("checkpoint inspect", options.path);
  const CheckpointReader reader(store::resolve_checkpoint(options.path));
  if (options.json) {
    std::cout << json_text(inspect_json(reader, options.tensors)) << '\n';
  } else {
    inspect_text(reader, options);
  }
  return 0;
}

int verify_checkpoint(const CheckpointOptions& options) {
  require_own_checkpoint("checkpoint verify", options.path);
  const CheckpointReader reader(store::resolve_checkpoint(options.path));
  const std::vector<std::string> problems =
      during("reading every byte of " + reader.path().string(), [&] { return reader.verify(); });
  if (options.json) {
    const Json result = {{"checkpoint", reader.path().string()},
                         {"ok", problems.empty()},
                         {"datasets", reader.datasets().size()},
                         {"bytes", reader.bytes()},
                         {"manifest_sha256", reader.manifest_digest().hex()},
                         {"tensors_sha256", reader.tensors_digest().hex()},
                         {"problems", problems}};
    std::cout << json_text(result) << '\n';
  } else {
    for (const auto& problem : problems) std::cout << safe_line(problem) << '\n';
    std::cout << safe_line(reader.path().string()) << ": "
              << (problems.empty() ? "every byte is as it was saved"
                                   : "damaged in " + counted(std::ssize(problems), "dataset"))
              << " (" << reader.datasets().size() << " datasets, " << reader.bytes() << " bytes)\n";
  }
  return problems.empty() ? 0 : static_cast<int>(ErrorKind::kCheckFailed);
}

int diff_checkpoints(const CheckpointOptions& options) {
  const auto differences = during("comparing the tensors of both", [&] {
    return store::diff_sources(store::open_tensor_source(options.path, options.weights_only),
                               store::open_tensor_source(options.other, options.weights_only));
  });
  std::int64_t unequal = 0;
  Json list = Json::array();
  for (const auto& difference : differences) {
    if (difference.verdict == Verdict::kEqual) continue;
    ++unequal;
    if (options.json) {
      list.push_back(difference_json(difference));
    } else {
      std::cout << difference_text(difference) << '\n';
    }
  }
  if (options.json) {
    const Json result = {{"a", options.path},     {"b", options.other},
                         {"equal", unequal == 0}, {"tensors", differences.size()},
                         {"unequal", unequal},    {"differences", std::move(list)}};
    std::cout << json_text(result) << '\n';
  } else {
    std::cout << (unequal == 0
                      ? "all " + std::to_string(differences.size()) + " tensors have the same bits"
                      : std::to_string(unequal) + " of " + std::to_string(differences.size()) +
                            " tensors differ")
              << '\n';
  }
  return unequal == 0 ? 0 : static_cast<int>(ErrorKind::kCheckFailed);
}

}  // namespace olmo::cli::compute

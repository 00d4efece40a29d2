#include "audit/replay.h"

#include <algorithm>
#include <chrono>

#include "core/clock.h"
#include "core/compute/gpu.h"
#include "core/error.h"
#include "store/checkpoint/checkpoint_folder.h"
#include "store/checkpoint/checkpoint_manifest.h"
#include "train/preparation.h"
#include "train/train_state.h"

namespace olmo::audit {
namespace {

namespace fs = std::filesystem;

std::string name_of(std::int64_t step) { return "step" + std::to_string(step); }

/// The place in the training that a sound checkpoint holds must be the recorded one.
void check_chain(const AuditedRun& recorded, const train::Start& start,
                 std::vector<store::Finding>& findings) {
  const auto& state = start.saved.state;
  const auto row = recorded.rows.find(state.step);
  if (row == recorded.rows.end() || row->second.chain_hash == state.chain.hex()) return;
  findings.push_back({state.step, "chain_hash",
                      "step " + std::to_string(state.step) + ": the chain in " +
                          start.path.string() + " is not the recorded one"});
}

/// The latest sound checkpoint up to `step`.
std::optional<train::Start> find_start(const AuditedRun& recorded, const CheckpointPlaces& places,
                                       std::int64_t step, std::vector<store::Finding>& findings) {
  for (auto i = recorded.checkpoints.rbegin(); i != recorded.checkpoints.rend(); ++i) {
    if (i->first > step) continue;
    const auto path = find_checkpoint(recorded, places, i->first);
    if (!path) continue;
    const auto wrong = verify_checkpoint(recorded, i->first, *path);
    findings.insert(findings.end(), wrong.begin(), wrong.end());
    if (!wrong.empty()) continue;
    train::Start start = train::read_start(*path);
    check_chain(recorded, start, findings);
    return start;
  }
  return std::nullopt;
}

/// Whether `folder` holds the files that were recorded, by name and digest.
bool holds(const fs::path& folder, const std::vector<store::InputRecord>& recorded) {
  std::vector<train::InputFile> files;
  std::error_code ignored;
  for (const auto& file : recorded) {
    files.push_back({file.kind, folder / fs::path(file.path).filename()});
    if (!fs::exists(files.back().path, ignored)) return false;
  }
  return std::ranges::equal(train::describe_inputs(files), recorded, {},
                            &store::InputRecord::sha256, &store::InputRecord::sha256);
}

/// Where the weights of load_weights lie that the run read. The place that its config names may
/// hold others by now, as the folder of a run that went on does.
std::optional<fs::path> find_weights(const AuditedRun& recorded,
                                     const config::TrainConfig& config) {
  std::vector<store::InputRecord> files;
  std::ranges::copy_if(recorded.inputs, std::back_inserter(files),
                       [](const auto& input) { return input.kind == "weights"; });
  if (!config.load_weights || files.empty()) return std::nullopt;
  const fs::path first = files.front().path, named = *config.load_weights;
  const bool one_file = first.extension() == ".safetensors" && files.size() == 1;
  const auto in = [&](const fs::path& folder) {
    return one_file ? folder / first.filename() : folder;
  };
  if (holds(first.parent_path(), files)) return in(first.parent_path());
  const fs::path now = train::place_of_weights(named);
  const fs::path folder = fs::is_directory(now) ? now : now.parent_path();
  if (holds(folder, files)) return in(folder);
  throw Error(ErrorKind::kInput,
              "audit: the weights that the run " + recorded.run_id +
                  " began from are not here: " + "it read " + first.string() + ", SHA-256 " +
                  files.front().sha256 + ", and " + now.string() +
                  " holds others; say with load_weights=PLACE where they are, or with "
                  "--checkpoints where one of its own checkpoints before the steps to audit is");
}

/// What of a branch can be audited: the steps after the first of its own checkpoints that is here.
std::string auditable_of(const AuditedRun& recorded, const CheckpointPlaces& places) {
  for (const auto& [step, checkpoint] : recorded.checkpoints) {
    if (step >= recorded.last_step() || !find_checkpoint(recorded, places, step)) continue;
    return "--steps " + std::to_string(step + 1) + ".." + std::to_string(recorded.last_step()) +
           ", which follow its own checkpoint of step " + std::to_string(step);
  }
  return "no step, unless --checkpoints says where one of its own checkpoints is";
}

/// Whether the run of `recorded` began from this checkpoint, by its chain and its place in the
/// data. The hashes of the state that it began from are compared as those of any step.
bool is_start_of(const AuditedRun& recorded, const config::TrainConfig& config,
                 const train::Start& start) {
  const auto& first = recorded.attempts.front();
  const auto begin = store::data_begin_of(recorded.attempts);
  const bool same_chain =
      !train::takes_counters(config) || start.saved.state.chain.hex() == first.start_link;
  return same_chain && begin && *begin == train::begin_of_branch(start.saved, config) &&
         recorded.state_hashes.contains(first.start_step);
}

/// What a branch took over, where that is here as it was. Not of an older record, which does not
/// tell where in the data it began.
std::optional<train::Start> find_taken_over(const AuditedRun& recorded,
                                            const config::TrainConfig& config) {
  if (!config.load_path || recorded.attempts.empty()) return std::nullopt;
  for (const std::string& place : {*config.load_path, recorded.attempts.front().resumed_from}) {
    if (place.empty()) continue;
    try {
      const fs::path path = store::resolve_checkpoint(place);
      const store::CheckpointReader reader(path);
      if (is_start_of(recorded, config, train::read_start_documents(reader)))
        return train::read_start(path);
    } catch (const Error&) {
      continue;  // not there, or not sound: the sentence that refuses the audit says so
    }
  }
  return std::nullopt;
}

void require_startable(const AuditedRun& recorded, const config::TrainConfig& config,
                       const CheckpointPlaces& places) {
  if (!config.load_path && recorded.first_step() == 1) return;
  std::string from = recorded.attempts.empty() ? "" : recorded.attempts.front().resumed_from;
  if (from.empty()) from = config.load_path.value_or("");
  throw Error(ErrorKind::kUsage,
              "audit: the run " + recorded.run_id + " is a branch: it began at step " +
                  std::to_string(recorded.first_step() - 1) + " from another run's checkpoint" +
                  (from.empty() ? "" : " (" + from + ")") +
                  ", which is not here as it was. Say with load_path=PLACE where it is; or audit "
                  "of this run " +
                  auditable_of(recorded, places));
}

}  // namespace

std::optional<fs::path> find_checkpoint(const AuditedRun& recorded, const CheckpointPlaces& places,
                                        std::int64_t step) {
  const auto found = recorded.checkpoints.find(step);
  if (found == recorded.checkpoints.end()) return std::nullopt;
  std::vector<fs::path> candidates;
  if (places.given) {
    candidates = {*places.given / name_of(step)};
  } else {
    candidates = {fs::path(found->second.path), places.database.parent_path() / name_of(step)};
  }
  std::error_code ignored;
  for (const auto& path : candidates)
    if (fs::exists(path / store::kManifestName, ignored)) return path;
  return std::nullopt;
}

std::vector<store::Finding> verify_checkpoint(const AuditedRun& recorded, std::int64_t step,
                                              const fs::path& path) {
  const std::string at = "step " + std::to_string(step) + ": ";
  std::vector<store::Finding> findings;
  try {
    const store::CheckpointReader reader(path);
    if (reader.manifest_digest().hex() != recorded.checkpoints.at(step).sha256) {
      findings.push_back(
          {step, "checkpoint",
           at + path.string() +
               ": its manifest is not the recorded one, the checkpoint was replaced"});
    }
    for (const auto& sentence : reader.verify())
      findings.push_back({step, "checkpoint", at + path.string() + ": " + sentence});
  } catch (const Error& error) {
    findings.push_back({step, "checkpoint", at + error.what()});
  }
  return findings;
}

std::vector<store::StateHash> hashes_of(const store::CheckpointReader& checkpoint) {
  std::vector<store::StateHash> hashes;
  for (const auto& dataset : checkpoint.datasets()) {
    if (dataset.dtype == "json") continue;
    for (const std::string part : {"model", "optim"}) {
      const std::string prefix = "/" + part + "/";
      if (dataset.path.starts_with(prefix))
        hashes.push_back({part, dataset.path.substr(prefix.size()), dataset.sha256.hex()});
    }
  }
  return hashes;
}

Replay::Replay(const AuditedRun& recorded, const config::TrainConfig& config, const Policy& policy,
               const CheckpointPlaces& places, std::int64_t step,
               std::vector<store::Finding>& findings)
    : stepper_(config, policy, data::BatchSource(config::batch_config(config))) {
  std::optional<train::Start> start = find_start(recorded, places, step, findings);
  const auto of = start ? train::StartOf::kThisRun : train::StartOf::kAnother;
  if (!start) start = find_taken_over(recorded, config);
  std::optional<fs::path> weights;
  if (!start) {
    require_startable(recorded, config, places);
    weights = find_weights(recorded, config);
  }
  started_from_ = start                 ? start->path.string()
                  : weights             ? weights->string()
                  : config.load_weights ? *config.load_weights
                                        : "initial weights";
  train::begin_at(stepper_, start, of, weights);
}

std::optional<store::StepRecord> Replay::advance(OpTrace* trace) {
  const auto start = std::chrono::steady_clock::now();
  std::optional<store::StepRecord> computed =
      with_device_errors(stepper_.model().policy(), [&]() -> std::optional<store::StepRecord> {
        const train::StepGradients gradients = stepper_.gradients(trace);
        if (!gradients.finite()) return std::nullopt;
        return stepper_.update(gradients, trace);
      });
  if (!computed) return computed;
  store::StepRecord& row = *computed;
  row.seconds = seconds_since(start);
  row.tokens_per_second = static_cast<double>(stepper_.config().tokens_per_step()) / row.seconds;
  return computed;
}

}  // namespace olmo::audit

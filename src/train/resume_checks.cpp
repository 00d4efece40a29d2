#include "train/resume_checks.h"

#include <nlohmann/json.hpp>

#include "config/key_table.h"
#include "config/run_columns.h"
#include "core/error.h"
#include "core/files/recorded_json.h"
#include "store/runs/policy_json.h"
#include "store/runs/provenance.h"
#include "store/runs/recorded_run.h"
#include "train/preparation.h"

namespace olmo::train {
namespace {

namespace fs = std::filesystem;
using store::InputRecord;

std::string steps_text(std::int64_t first, std::int64_t last) {
  return last < first ? "no step"
                      : "steps " + std::to_string(first) + " to " + std::to_string(last);
}

std::vector<InputRecord> of_kind(const std::vector<InputRecord>& inputs, const std::string& kind) {
  std::vector<InputRecord> found;
  for (const auto& input : inputs)
    if (input.kind == kind) found.push_back(input);
  return found;
}

std::string content_of(const InputRecord& input) {
  return std::to_string(input.bytes) + " bytes with SHA-256 " + input.sha256;
}

void check_kind(const std::string& kind, const std::vector<InputRecord>& before,
                const std::vector<InputRecord>& now, std::vector<std::string>& changes) {
  if (kind == "tokenizer" && before.size() != now.size()) {  // it may be absent on a machine
    changes.push_back("the tokenizer " +
                      (now.empty() ? before.front().path + " is not on this machine: not compared"
                                   : now.front().path + " was not there when the run began"));
    return;
  }
  if (before.size() != now.size()) {
    throw Error(ErrorKind::kInput, "the run read " + std::to_string(before.size()) + " files as `" +
                                       kind + "`, and now has " + std::to_string(now.size()) +
                                       ": it goes on with the same content in the same order only");
  }
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (before[i].bytes != now[i].bytes || before[i].sha256 != now[i].sha256) {
      throw Error(ErrorKind::kInput, now[i].path + ": holds " + content_of(now[i]) +
                                         ", but the run began with " + content_of(before[i]) +
                                         " (" + before[i].path +
                                         "): a run goes on with the content that it began with");
    }
    if (before[i].path != now[i].path)
      changes.push_back("`" + kind + "` was " + before[i].path + ", is " + now[i].path +
                        ", with the same content");
  }
}

void check_batch(const store::RunDb& db, const Start& start, const std::string& run_id,
                 const config::TrainConfig& config, data::BatchSource& batches) {
  const auto step = start.saved.state.step;
  const auto rows = store::read_steps(db.records(), run_id, step, step);
  if (rows.empty()) return;  // the checkpoint from which the run took over another
  const std::string& recorded = rows.begin()->second.batch_hash;
  batches.begin_at(begin_of_run(start.saved, config));
  const auto now = batches.batch(static_cast<std::uint64_t>(step)).digest.hex();
  if (now == recorded) return;
  throw Error(ErrorKind::kInput, "the batch of step " + std::to_string(step) + " would be " + now +
                                     ", recorded is " + recorded +
                                     ": the token files have another order or content");
}

/// Whether a key says where something lies or what computes. Such a key is not compared itself: the
/// content of the files, the folders and the policy are.
bool is_placement(const std::string& key) {
  return config::rule_of(key).effect == config::Effect::kPlacement;
}

void check_policy(const Json& before, const Json& now, const std::optional<fs::path>& checkpoint) {
  const Json numerics = before.value("numerics", Json("?"));
  if (numerics != now["numerics"]) {
    throw Error(ErrorKind::kUsage,
                "numerics=" + now["numerics"].get<std::string>() +
                    ": the run was trained under numerics=" +
                    (numerics.is_string() ? numerics.get<std::string>() : numerics.dump()) +
                    ", and one run keeps to one; set it as it was, " + way_on(checkpoint));
  }
  if (now["numerics"] != "fast") return;
  for (const auto& [key, is] : now.items()) {  // `fast` computes with what a user can set
    const Json was = before.value(key, Json());
    if (was == is || !is_placement(key)) continue;
    throw Error(ErrorKind::kUsage, "under numerics=fast `" + key + "` decides the bits: it was " +
                                       was.dump() + ", is " + is.dump() + "; set it as it was, " +
                                       way_on(checkpoint));
  }
}

std::string place_of(const store::RunDb& db, const std::string& run_id) {
  return db.path().string() + ", run " + run_id;
}

void collect(const std::string& path, const Json& before, const Json& now,
             std::vector<std::string>& out) {
  if (before == now) return;
  if (!before.is_object() || !now.is_object()) {
    out.push_back("`" + path + "` was " + before.dump() + ", is " + now.dump());
    return;
  }
  const auto inner = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  for (const auto& [key, value] : before.items())
    collect(inner(key), value, now.value(key, Json()), out);
  for (const auto& [key, value] : now.items()) {
    if (!before.contains(key)) collect(inner(key), Json(), value, out);
  }
}

}  // namespace

Json recorded_config(const store::RunDb& db, const std::string& run_id) {
  return recorded_object(db.run(run_id).config, place_of(db, run_id) + ": its config");
}

std::string way_on(const std::optional<fs::path>& checkpoint) {
  if (!checkpoint) return "or choose another --run-dir for a run of its own";
  return "or begin a run of its own, whose record starts there: load_path=" + checkpoint->string() +
         " with another --run-dir";
}

void require_vouched_for(const store::RunDb& db, const std::string& run_id, const Start& start) {
  const auto last = start.saved.state.step;
  const auto sound = store::sound_steps(db.records(), run_id, last);
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::kDamaged, db.path().string() + ": " + what + ", " + way_on(start.path));
  };
  if (sound.altered) refuse(sound.altered->sentence);
  if (sound.last < last) {
    refuse("of the run " + run_id + " it holds " + steps_text(sound.first + 1, sound.last) +
           " without a gap, but " + start.path.string() + " needs them up to " +
           std::to_string(last) +
           ": it is an older copy, or its end was lost (a run.db is copied with its run.db-wal); "
           "put the right file back");
  }
  const bool takes_over = sound.first == last && last > 0;  // its link lies in the other run
  if (sound.link && sound.last == last && *sound.link != start.saved.state.chain && !takes_over) {
    refuse("step " + std::to_string(last) + " of the run " + run_id +
           " has another hash chain than " + start.path.string() +
           ": they belong to different trainings, or one was altered");
  }
}

std::vector<std::string> check_successor(const store::RunDb& db, const std::string& run_id,
                                         const Successor& now, data::BatchSource& batches) {
  const std::optional<fs::path> checkpoint =
      now.start ? std::optional(now.start->path) : std::nullopt;
  std::vector<std::string> changes;
  const auto attempts = store::read_attempts(db.records(), run_id);
  if (!attempts.empty()) {
    const auto& last = attempts.back();
    const std::string where = place_of(db, run_id);
    Json before = recorded_object(last.policy, where + ": the policy of its last attempt");
    Json policy = store::policy_json(now.policy);
    check_policy(before, policy, checkpoint);
    for (Json* each : {&before, &policy}) each->erase("switches");
    changes = differences(before, policy);
    const Json build = recorded_object(last.build, where + ": the build of its last attempt");
    for (const auto& change : differences(build, store::build_json()))
      changes.push_back("build: " + change);
  }
  const auto recorded = each_once(store::read_inputs(db.records(), run_id));
  const auto inputs = each_once(now.inputs);
  std::vector<std::string> kinds = {"tokens", "label_mask", "tokenizer"};
  if (!now.start) kinds.emplace_back("weights");
  for (const auto& kind : kinds)
    check_kind(kind, of_kind(recorded, kind), of_kind(inputs, kind), changes);
  if (now.start && now.start->saved.state.step > 0)
    check_batch(db, *now.start, run_id, now.config, batches);
  const Json config = now.start ? *now.start->contents.config : recorded_config(db, run_id);
  for (auto& change : differences(without_placement(with_new_keys(config)),
                                  without_placement(to_json(now.config))))
    changes.push_back(std::move(change));
  return changes;
}

Json with_new_keys(const Json& recorded) {
  const auto columns = config::run_columns(recorded.dump());
  return columns ? to_json(columns->config) : recorded;
}

Json without_placement(const Json& config, const std::string& group) {
  Json rest = Json::object();
  for (const auto& [key, value] : config.items()) {
    if (is_placement(group + key)) continue;
    rest[key] = value.is_object() ? without_placement(value, group + key + ".") : value;
  }
  return rest;
}

std::vector<std::string> differences(const Json& before, const Json& now) {
  std::vector<std::string> out;
  collect("", before, now, out);
  return out;
}

}  // namespace olmo::train

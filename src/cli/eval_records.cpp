#include "cli/eval_records.h"

#include <charconv>

#include "cli/named_record.h"
#include "core/error.h"
#include "core/files/input_file.h"
#include "core/process/terminal.h"
#include "data/public/fetch.h"
#include "store/evaluations/evaluation_seal.h"
#include "store/runs/recorded_run.h"

namespace olmo::cli {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& sentence) { throw Error(ErrorKind::kUsage, sentence); }

}  // namespace

RecordedEvaluation::RecordedEvaluation(const std::string& run)
    : records(store::parse_run_name(run).database, store::OpenMode::kReadOnly),
      db(records),
      entry(db.entry(db.find(store::parse_run_name(run).run))) {
  const auto seals = store::check_seals(records, entry.evaluation_id);
  const std::string name = records.path().string() + ": " + entry.evaluation_id;
  if (!seals.altered.empty()) throw Error(ErrorKind::kDamaged, name + ": " + seals.altered.front());
  if (!seals.sealed && entry.status != "running") {
    log_line(
        "note: " + name +
        ": is not sealed, an older olmo-harness recorded it: an altered row would not be seen");
  }
  note_latest(store::parse_run_name(run), entry.evaluation_id, "evaluation", db.list().size(),
              "eval list");
}

std::filesystem::path task_data_folder(const std::string& given) {
  if (given.empty()) return data::default_data_folder();
  if (!std::filesystem::is_directory(given))
    throw Error(ErrorKind::kUsage, given + ": --data expects a folder");
  return given;
}

bool has_fetched_tasks() {
  return std::filesystem::exists(data::evaluation_data_folder(data::default_data_folder()) /
                                 "manifest.json");
}

std::optional<std::filesystem::path> if_given(const std::string& option) {
  return option.empty() ? std::nullopt : std::optional<std::filesystem::path>(option);
}

JoinedRun find_joined_run(const std::string& run, const std::string& database) {
  const auto named = store::parse_run_name(run);
  if (!is_there(named.database))
    refuse("--run " + run + ": there is no database " + named.database.string());
  std::error_code no_such_file;
  if (!database.empty() && !fs::equivalent(database, named.database, no_such_file))
    refuse("--run " + run + ": the evaluation goes into the run's database, " +
           named.database.string() + ", and not into --db " + database + ": leave --db out");
  // Writable, so that what cannot be recorded is told before the evaluation and not after it.
  const auto db = store::RunDb::open(named.database, store::OpenMode::kReadWrite);
  JoinedRun found;
  found.database = named.database;
  found.run_id = find_named_run(db, named);
  found.name = db.run(found.run_id).name;
  found.last_step = store::last_step(db.records(), found.run_id);
  return found;
}

std::optional<std::int64_t> step_of_name(const fs::path& folder) {
  const fs::path path = fs::absolute(folder).lexically_normal();
  const std::string name =
      path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
  for (const std::string_view prefix : {"step", "checkpoint-", "global_step"}) {
    if (!name.starts_with(prefix)) continue;
    std::int64_t step = 0;
    const auto* end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + prefix.size(), end, step);
    if (parsed.ec == std::errc() && step >= 0 && (parsed.ptr == end || *parsed.ptr == '-'))
      return step;
  }
  return std::nullopt;
}

evaluation::EvaluatedRun join_run(const JoinedRun& run, const models::ModelFiles& files,
                                  std::optional<std::int64_t> given) {
  const std::string checkpoint = files.path.string();
  if (files.run_id && *files.run_id != run.run_id)
    refuse(checkpoint + ": is a checkpoint of run " + *files.run_id + " and not of " + run.run_id +
           ": name its own run, or leave --run out");
  if (files.step && given && *files.step != *given)
    refuse(checkpoint + ": is of step " + std::to_string(*files.step) + " and not of step " +
           std::to_string(*given) + ": leave --step out");
  auto step = files.step ? files.step : given;
  std::string told = files.step ? "as the checkpoint says" : "as --step says";
  const auto named = step_of_name(files.path);
  if (!step && named) {
    step = named;
    told = "as the folder's name says";
  }
  if (!step)
    refuse(checkpoint + ": does not say of which step it is: give --step N, the step of run " +
           run.run_id + " that it was saved at");
  if (named && *named != *step)
    log_warning(checkpoint + ": is recorded as of step " + std::to_string(*step) + ", " + told +
                ", but its name says " + std::to_string(*named));
  if (run.last_step && *step > *run.last_step)
    log_warning("run " + run.run_id + " is recorded up to step " + std::to_string(*run.last_step) +
                ": step " + std::to_string(*step) + " lies beyond");
  log_line("belongs to step " + std::to_string(*step) + " (" + told + ") of run " + run.run_id +
           (run.name.empty() ? "" : ", " + run.name));
  return {run.run_id, *step};
}

void note_earlier(const JoinedRun& run, std::int64_t step, const std::string& evaluation_id) {
  store::RecordDatabase records(run.database, store::OpenMode::kReadOnly);
  const store::EvaluationDb evaluations(records);
  const auto own = evaluations.entry(evaluation_id).record;
  std::string repeat, other;
  for (const auto& [id, created, ended, status, record] : evaluations.list(run.run_id)) {
    if (id == evaluation_id || record.step != step || status != "finished") continue;
    if (record.content_key == own.content_key) repeat = id;
    const bool known = !record.weights_digest.empty() && !own.weights_digest.empty();
    if (known && record.weights_digest != own.weights_digest) other = id;
  }
  const std::string at = "step " + std::to_string(step) + " of run " + run.run_id;
  if (!repeat.empty())
    log_line("note: " + at + " was evaluated in the same way before, as " + repeat +
             ": both are kept, as a repeat");
  if (!other.empty())
    log_warning(at + " was evaluated with other weights, as " + other +
                ": of the two only one can be that step's; reports take the later evaluation");
}

}  // namespace olmo::cli

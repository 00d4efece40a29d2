#include "cli/eval_run.h"

#include <charconv>

#include "core/error.h"
#include "core/log.h"
#include "store/run_db.h"

namespace olmo::cli {
namespace {

namespace fs = std::filesystem;

std::optional<std::int64_t> integer_of(const store::SqlValue& value) {
  const auto* integer = std::get_if<std::int64_t>(&value);
  return integer == nullptr ? std::nullopt : std::optional(*integer);
}

[[noreturn]] void refuse(const std::string& sentence) { throw Error(ErrorKind::kUsage, sentence); }

}  // namespace

JoinedRun find_joined_run(const std::string& run, const std::string& database) {
  const auto named = store::parse_run_name(run);
  if (!fs::exists(named.database))
    refuse("--run " + run + ": there is no database " + named.database.string());
  std::error_code no_such_file;
  if (!database.empty() && !fs::equivalent(database, named.database, no_such_file))
    refuse("--run " + run + ": the evaluation goes into the run's database, " +
           named.database.string() + ", and not into --db " + database + ": leave --db out");
  // Writable, so that what cannot be recorded is told before the evaluation and not after it.
  const auto db = store::RunDb::open(named.database, store::OpenMode::kReadWrite);
  JoinedRun found;
  found.database = named.database;
  found.run_id = db.find_run(named.run);
  db.query("SELECT name, step FROM run_overview WHERE run_id = ?", {found.run_id},
           [&](const auto&, const auto& row) {
             found.name = std::get<std::string>(row[0]);
             found.last_step = integer_of(row[1]);
           });
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
  const store::RecordDatabase records(run.database, store::OpenMode::kReadOnly);
  const auto earlier = [&](const std::string& which) {
    std::string found;
    records.query(
        "SELECT max(e.evaluation_id) FROM evaluations e JOIN evaluations this ON "
        "this.evaluation_id = ?3 WHERE e.run_id = ?1 AND e.step = ?2 AND e.evaluation_id <> ?3 AND "
        "e.status = 'finished' AND " +
            which,
        {run.run_id, step, evaluation_id}, [&](const auto&, const auto& row) {
          if (const auto* id = std::get_if<std::string>(&row[0])) found = *id;
        });
    return found;
  };
  const std::string at = "step " + std::to_string(step) + " of run " + run.run_id;
  if (const auto id = earlier("e.content_key = this.content_key"); !id.empty())
    log_line("note: " + at + " was evaluated in the same way before, as " + id +
             ": both are kept, as a repeat");
  if (const auto id = earlier("e.weights_digest <> '' AND this.weights_digest <> '' AND "
                              "e.weights_digest <> this.weights_digest");
      !id.empty())
    log_warning(at + " was evaluated with other weights, as " + id +
                ": of the two only one can be that step's; reports take the later evaluation");
}

}  // namespace olmo::cli

#include "train/resume.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/hash.h"
#include "core/process/terminal.h"
#include "store/checkpoint/checkpoint_folder.h"
#include "store/run_files.h"
#include "store/runs/recorded_run.h"
#include "store/runs/run_folder.h"
#include "train/resume_checks.h"

namespace olmo::train {
namespace {

namespace fs = std::filesystem;

std::string lines_of(const std::vector<std::string>& sentences) {
  std::string text;
  for (const auto& sentence : sentences) text += "\n  " + sentence;
  return text;
}

[[noreturn]] void throw_other_config(const std::string& what, const Json& before,
                                     const config::TrainConfig& config) {
  throw Error(ErrorKind::kUsage, what +
                                     ": was made with another config, so resuming would be another "
                                     "training (load_path and load_weights begin a run of its own "
                                     "from it):" +
                                     lines_of(differences(with_new_keys(before), to_json(config))));
}

/// Finds the parts of a Resumption, in the order in which they depend on each other.
class Search {
 public:
  Search(const SessionOptions& options, const fs::path& database, const config::TrainConfig& config,
         const ReadStart& read)
      : options_(options),
        database_(database),
        config_(config),
        read_(read),
        latest_(*options.resume == store::kLatestName),
        folders_(store::list_step_folders(options.run_dir)),
        identity_(store::read_identity(options.run_dir)) {}

  Resumption run() {
    if (!latest_) {
      named_ = read_(store::resolve_checkpoint(*options_.resume));
      require_config(*named_);
    }
    result_.run_id = run_of_folder();
    if (!result_.run_id && has_folders()) throw_none_sound();
    if (result_.run_id) {
      if (named_ && named_->saved.run_id != *result_.run_id) throw_other_run(*named_);
      open_record();
      check_place();
      if (named_) require_vouched_for(*db_, *result_.run_id, *named_);
      if (latest_ && has_folders()) named_ = newest_sound();
    }
    if (!named_ && result_.run_id) require_config_of_record();
    result_.start = std::move(named_);
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool has_folders() const {
    return !folders_.whole.empty() || !folders_.broken.empty();
  }

  /// Nothing: the folder holds no run yet.
  std::optional<std::string> run_of_folder() {
    if (identity_) return identity_->run_id;
    // Of an older olmo-harness, or killed before it could write run.json.
    if (named_ && store::same_place(named_->path.parent_path(), options_.run_dir))
      return named_->saved.run_id;
    for (const auto& entry : folders_.whole) {
      if (auto start = try_read(entry.path)) return start->saved.run_id;
    }
    if (has_folders()) return std::nullopt;
    if (named_ || !store::same_place(database_.parent_path(), options_.run_dir) ||
        !store::holds_tables(database_))
      return std::nullopt;
    const auto db = store::RunDb::open(database_, store::OpenMode::kReadOnly);
    const auto found = db.latest_run_of(config::experiment_digest(config_).hex());
    return found.empty() ? std::nullopt : std::optional(found);
  }

  void open_record() {
    if (fs::exists(database_))
      db_.emplace(store::RunDb::open(database_, store::OpenMode::kReadOnly));
    if (db_ && db_->has_run(*result_.run_id)) {
      db_->records().check_pages();
      require_format(database_.string() + ", run " + *result_.run_id,
                     db_->run(*result_.run_id).chain_format);
      return;
    }
    const auto at = identity_ ? identity_->database : database_;
    const bool elsewhere = !store::same_place(at, database_) && fs::exists(at);
    throw Error(
        ErrorKind::kDamaged,
        database_.string() + ": does not hold the run " + *result_.run_id + " of " +
            options_.run_dir.string() +
            (elsewhere ? ", whose record is " + at.string() + ": give --db " + at.string()
                       : "; its record is lost or lies elsewhere: put the file back or name "
                         "it with --db, " +
                             way_on(best_path())));
  }

  /// A folder that is not where its run began.
  void check_place() {
    if (!identity_) return;
    const auto& folder = options_.run_dir;
    if (!store::same_place(folder, identity_->folder)) {
      const bool copy = store::is_copy(folder, *identity_);
      const bool own_record = store::same_place(database_.parent_path(), folder);
      if (copy && !own_record) {
        throw Error(ErrorKind::kUsage,
                    folder.string() + ": is a copy of " + identity_->folder.string() +
                        ", and both would write the run " + *result_.run_id + " of " +
                        database_.string() + ": go on in the original, " + way_on(best_path()));
      }
      note("moved", "the run folder was " + identity_->folder.string() + ", is " +
                        fs::absolute(folder).string() + (copy ? ", a copy of it" : ""));
    }
    if (!store::same_place(database_, identity_->database)) {
      note("moved", "the database was " + identity_->database.string() + ", is " +
                        fs::absolute(database_).string());
    }
  }

  /// The first sound checkpoint that the record vouches for.
  std::optional<Start> newest_sound() {
    for (const auto& entry : folders_.whole) {
      auto start = try_read(entry.path);
      if (!start) continue;
      const std::string where = entry.path.string();
      if (start->saved.run_id != *result_.run_id) {
        passed_over_.push_back(where + ": belongs to the run " + start->saved.run_id);
        continue;
      }
      require_config(*start);
      const auto& state = start->saved.state;
      if (store::was_left(db_->records(), *result_.run_id, state.step, state.chain.hex())) {
        passed_over_.push_back(where + ": belongs to a line of steps that the run has left");
        continue;
      }
      require_vouched_for(*db_, *result_.run_id, *start);
      tell_of_fallback(*start);
      return start;
    }
    throw_none_sound();
  }

  /// Nothing if it is damaged: then it is among those that are passed over.
  std::optional<Start> try_read(const fs::path& path) {
    if (cached_ && cached_->path == path) return std::exchange(cached_, std::nullopt);
    if (std::ranges::find(unreadable_, path) != unreadable_.end()) return std::nullopt;
    cached_.reset();  // its tensors, before those of the next one
    try {
      cached_ = read_(path);
      return cached_;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kDamaged && error.kind() != ErrorKind::kInput) throw;
      unreadable_.push_back(path);
      passed_over_.emplace_back(error.what());
      return std::nullopt;
    }
  }

  void tell_of_fallback(const Start& start) {
    const auto step = start.saved.state.step;
    for (const auto& broken : folders_.broken) {
      if (broken.step > step) passed_over_.push_back(broken.why);
    }
    if (passed_over_.empty()) return;
    for (const auto& why : passed_over_) log_warning("passing over a checkpoint: " + why);
    log_warning("going on from " + start.path.string());
    note("fallback", "from " + start.path.string() +
                         ", since newer ones cannot be used:" + lines_of(passed_over_));
  }

  [[noreturn]] void throw_none_sound() {
    for (const auto& broken : folders_.broken) passed_over_.push_back(broken.why);
    throw Error(ErrorKind::kDamaged,
                options_.run_dir.string() +
                    ": none of its checkpoints can be resumed from, and a training is not started "
                    "anew beside them: put back a sound one, or choose another --run-dir:" +
                    lines_of(passed_over_));
  }

  [[noreturn]] void throw_other_run(const Start& start) {
    throw Error(ErrorKind::kUsage, start.path.string() + ": belongs to the run " +
                                       start.saved.run_id + ", but " + options_.run_dir.string() +
                                       " holds the run " + *result_.run_id +
                                       ": give it a --run-dir of its own");
  }

  /// A record has one format from its first step to its last, or its chain could not be followed.
  void require_format(const std::string& where, std::int64_t format) const {
    if (format == kChainFormat) return;
    throw Error(ErrorKind::kUsage,
                where + ": its hash chain has format " + std::to_string(format) +
                    ", and a run goes on in the format that it began with, expected " +
                    std::to_string(kChainFormat) +
                    ": finish it with the olmo-harness that began it, " + way_on(best_path()));
  }

  void require_config(const Start& start) const {
    require_format(start.path.string(), start.saved.chain_format);
    if (start.saved.experiment_digest == config::experiment_digest(config_).hex()) return;
    throw_other_config(start.path.string(), *start.contents.config, config_);
  }

  void require_config_of_record() const {
    if (db_->run(*result_.run_id).experiment_digest == config::experiment_digest(config_).hex())
      return;
    throw_other_config(database_.string() + ", run " + *result_.run_id,
                       recorded_config(*db_, *result_.run_id), config_);
  }

  [[nodiscard]] std::optional<fs::path> best_path() const {
    if (named_) return named_->path;
    if (folders_.whole.empty()) return std::nullopt;
    return folders_.whole.front().path;
  }

  void note(const std::string& kind, const std::string& message) {
    result_.events.push_back({kind, message});
  }

  const SessionOptions& options_;
  const fs::path& database_;
  const config::TrainConfig& config_;
  const ReadStart& read_;
  bool latest_;
  store::StepFolders folders_;
  std::optional<store::RunIdentity> identity_;
  std::optional<store::RunDb> db_;
  std::optional<Start> named_;   ///< what --resume leads to
  std::optional<Start> cached_;  ///< read to know its run, and not used yet
  std::vector<fs::path> unreadable_;
  std::vector<std::string> passed_over_;
  Resumption result_;
};

}  // namespace

Resumption find_resumption(const SessionOptions& options, const fs::path& database,
                           const config::TrainConfig& config, const ReadStart& read) {
  return Search(options, database, config, read).run();
}

}  // namespace olmo::train

// One of the two sides of a comparison, and the database that it is read from.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "report/record/recorded_evaluation.h"
#include "store/runs/recorded_run.h"
#include "store/runs/run_db.h"

namespace olmo::report {

struct Efficiency;

/// One side of a comparison. Either record may be absent, not both.
struct Side {
  std::string label;            ///< name of the run, or of what the command line named
  std::string database;         ///< file name
  std::string database_sha256;  ///< of the file, hex; empty if it cannot be read
  std::optional<store::RecordedRun> run;
  std::optional<EvaluationData> evaluation;
  /// How its run disagrees with itself (store/runs/retrained_steps.h), as follows its name; empty:
  /// it does not.
  std::string disagreement = {};
  /// Why its record was not held to its config (unchecked_of); empty: it was.
  std::string unchecked = {};

  [[nodiscard]] bool has_steps() const { return run && run->steps.size() > 0; }
};

/// A side as the pages show it, with its letter; the run or the evaluation may be absent.
struct NamedSide {
  char letter = 'A';
  const Side* side = nullptr;
  const Efficiency* efficiency = nullptr;
};

/// A database that is being read, and what its name on the command line stands for.
struct SideRecords {
  std::unique_ptr<store::RunDb> db;
  std::string run_id;     ///< empty: no run
  bool is_named = false;  ///< by an id, and not the latest of its database
  /// The finished ones of the run. Without a run the one named, or else those finished of the
  /// weights that the latest one has; where none is finished, the latest.
  std::vector<store::EvaluationEntry> evaluations;
  std::vector<store::EvaluationEntry> unfinished;  ///< the run's others
  std::unique_ptr<store::SealChecks> seals = std::make_unique<store::SealChecks>();

  [[nodiscard]] store::RecordDatabase& database() const { return db->records(); }
};

/// Opens `name` to be read and checks the pages of its file. Throws Error(kUsage) if it names
/// nothing, Error(kDamaged) if the file is no sound database.
SideRecords open_records(const store::RunName& name,
                         store::OpenMode reading = store::OpenMode::kReadOnly);

/// As report::read_evaluation; its seals are checked once.
EvaluationData read_evaluation(const SideRecords& records, const std::string& evaluation_id);

/// A side with its label and the name of its file; the records are not read yet.
Side name_side(const std::string& text, const store::RunName& name);
/// Gives the side the digest of its file, which is read whole.
void hash_database(Side& side, const store::RunName& name);

/// What is wrong with the records of a side; one sentence each.
std::vector<std::string> damage_of(const Side& side);

/// Of a run that tells steps and no tokens: its tokens, if every step has as many.
void give_tokens(store::RecordedRun& run, std::int64_t tokens_per_step);

/// As store::read_run; rows that it lacks and altered declarations are damage, too.
store::RecordedRun read_whole_run(const store::RecordDatabase& records, const std::string& run_id);

/// Reads the run of a side, if it has one.
void add_run(Side& side, const SideRecords& records);

}  // namespace olmo::report

// What a RUN on the command line of a report stands for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "report/parity.h"
#include "store/run_db.h"

namespace olmo::report {

/// A database that is being read, and what its name on the command line stands for.
struct Source {
  std::unique_ptr<store::RunDb> db;
  std::string run_id;                               ///< empty: no run
  std::vector<store::EvaluationEntry> evaluations;  ///< finished ones of the run, or the one named

  [[nodiscard]] store::RecordDatabase& records() const { return db->records(); }
};

/// Opens `name` to be read and checks the pages of its file. Throws Error(kUsage) if it names
/// nothing, Error(kDamaged) if the file is no sound database.
Source open_source(const store::RunName& name);

/// A side with its label and what identifies its file; the records are not read yet.
Side name_side(const std::string& text, const store::RunName& name);

/// What makes the side's records unfit, a sentence each; of a run's steps the first few.
std::vector<std::string> damage_of(const Side& side);

/// Reads the run of a side, if it has one.
void add_run(Side& side, const Source& source);

}  // namespace olmo::report

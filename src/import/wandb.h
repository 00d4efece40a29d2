// W&B's own record of a run (`run-ID.wandb`) as rows of a log.
#pragma once

#include "import/log.h"

namespace olmo::import {

/// Whether these are the first bytes of such a record.
bool is_wandb_record(std::string_view bytes);

/// A row for each call of wandb.log, with `_step` and `_timestamp`; what lies deeper is called
/// `eval/arc_easy/acc`. Its line is the record's number. Returns false if the file ends within a
/// record, as that of a trainer that was killed may. Throws Error(kInput) "FILE: byte N: …" or
/// "FILE:RECORD: …" for a damaged one.
bool read_wandb_record(std::string_view bytes, const std::string& file, const OnLogRow& on_row);

/// What the record tells of the run beside its history.
struct WandbRun {
  std::string name;
  std::string config = "{}";   ///< JSON object
  std::string machine = "{}";  ///< JSON object: host, os, python, gpu, gpus_of_a_node, as told
  std::vector<std::string> tags;
  std::optional<std::int64_t> exit_code;  ///< of the training; absent: no end is told
  bool is_export = false;                 ///< of a run of ours
};
/// Throws as read_wandb_record.
WandbRun read_wandb_run(std::string_view bytes, const std::string& file);

}  // namespace olmo::import

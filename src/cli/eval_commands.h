// The parts of `olmo-harness eval` that need no model.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "store/evaluation_db.h"

namespace olmo::cli {

/// What RecordedEvaluation takes.
inline constexpr char kRecordedHelp[] = "FILE.db, or FILE.db:EVALUATION_ID";

/// The evaluation that RUN (`FILE.db` or `FILE.db:EVALUATION_ID`) names, opened to be read.
struct RecordedEvaluation {
  explicit RecordedEvaluation(const std::string& run);

  store::RecordDatabase records;
  store::EvaluationDb db;
  store::EvaluationEntry entry;
};

/// `--data` may name the folder of `data fetch` (the default), or the evaluation data themselves.
/// Throws Error(kUsage) if it is no folder.
std::filesystem::path task_data_folder(const std::string& given);

/// An option that may be left out.
std::optional<std::filesystem::path> if_given(const std::string& option);

/// `eval --list`.
void list_definitions(const std::string& definitions, bool json);
/// `eval --rescore RUN`.
void rescore(const std::string& run, const std::filesystem::path& instances, bool json);

}  // namespace olmo::cli

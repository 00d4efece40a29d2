// The evaluations of a database. Typed rows; columns: store/database/schema.h, those of scores:
// core/evaluation_rows.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/evaluation_rows.h"
#include "store/database/record_database.h"

namespace olmo::store {

/// What was evaluated, and how.
struct EvaluationRecord {
  /// Of training: set if the evaluation was made by a run, or its checkpoint says which run made
  /// it.
  std::optional<std::string> run_id;
  std::optional<std::int64_t> attempt;  ///< set if the run itself evaluates
  std::optional<std::int64_t> step;
  std::string checkpoint;        ///< path; empty for the weights in the memory of a run
  std::string weights_digest;    ///< SHA-256, hex
  std::string tokenizer_digest;  ///< SHA-256 of tokenizer.json, hex; empty if no text is encoded
  std::string
      content_key;  ///< SHA-256 over all that decides the scores except tasks and their data
  std::string command_line;
  std::string settings;     ///< JSON text
  std::string policy;       ///< JSON text
  std::string build;        ///< JSON text
  std::string environment;  ///< JSON text
};

/// An evaluation as it is recorded.
struct EvaluationEntry {
  std::string evaluation_id;
  std::string created_utc;
  std::optional<std::string> ended_utc;
  std::string status;  ///< running, finished, failed, interrupted
  EvaluationRecord record;
};

/// A task or suite of an evaluation.
struct EvaluationTaskRecord {
  std::string task;
  std::string kind;        ///< rank_classification, perplexity
  std::string convention;  ///< olmo, oe, lm-eval, …
  std::string definition_digest;
  std::string data_digest;
  std::string primary_metric;
};

struct EvaluationTaskEntry {
  EvaluationTaskRecord record;
  std::string status;   ///< running, finished, failed, skipped
  std::string message;  ///< why it failed or was skipped
};

/// The evaluations of a database: one is written at a time, any number can be read. The database
/// may be a training run's (`RunDb::records()`), which then has to outlive this object, as any
/// other.
///
/// Rows of scores are committed within half a second (RecordDatabase); beginnings and ends at once.
/// Numbers that are not finite are kept: NaN as NULL.
class EvaluationDb {
 public:
  explicit EvaluationDb(RecordDatabase& records) : records_(records) {}

  // --- writing ---

  /// Makes a new evaluation durable and returns its id.
  std::string begin(const EvaluationRecord& evaluation);
  /// The latest evaluation with the content key, run and step of `wanted` that was begun and not
  /// finished, if any.
  [[nodiscard]] std::optional<std::string> find_unfinished(const EvaluationRecord& wanted) const;
  /// The latest evaluation with this content key.
  [[nodiscard]] std::optional<std::string> find_content(const std::string& content_key) const;
  /// Goes on with an evaluation; its rows stay.
  void resume(const std::string& evaluation_id);

  /// Begins a task, or goes on with it: rows that an earlier attempt left are kept if definition,
  /// data and convention have the same digests and names, else removed.
  void begin_task(const EvaluationTaskRecord& task);
  /// doc_id of the instances whose rows are there.
  [[nodiscard]] std::set<std::int64_t> done_instances(const std::string& task) const;
  /// Index of the documents whose rows are there.
  [[nodiscard]] std::set<std::int64_t> done_documents(const std::string& suite) const;
  /// All options of one instance: they are committed together.
  void record_options(std::span<const OptionRow> options);
  void record_documents(std::span<const DocumentRow> documents);
  /// The numbers of a task, in place of earlier ones.
  void record_metrics(const std::string& task, std::span<const EvaluationMetric> metrics);
  /// `status`: finished, failed or skipped; `message` says why.
  void end_task(const std::string& task, const std::string& status,
                const std::string& message = "");
  /// `status`: finished, failed or interrupted. Seals the rows
  /// (store/evaluations/evaluation_seal.h).
  void end(const std::string& status);
  void flush() { records_.flush(); }
  /// Of the evaluation that is being written.
  [[nodiscard]] const std::string& evaluation_id() const { return evaluation_id_; }

  // --- reading; what has been recorded but not yet flushed is not there ---

  /// The evaluation that `prefix` names unambiguously; empty: the latest. Throws Error(kUsage).
  [[nodiscard]] std::string find(const std::string& prefix) const;
  /// All, or those of one run, oldest first.
  [[nodiscard]] std::vector<EvaluationEntry> list(const std::string& run_id = "") const;
  /// Those of no run of this database (of a model from elsewhere, or in a database of its own), the
  /// newest first, at most `most`.
  [[nodiscard]] std::vector<EvaluationEntry> list_without_run(std::int64_t most) const;
  [[nodiscard]] std::int64_t count_without_run() const;
  [[nodiscard]] EvaluationEntry entry(const std::string& evaluation_id) const;
  /// In the order in which they were begun.
  [[nodiscard]] std::vector<EvaluationTaskEntry> tasks(const std::string& evaluation_id) const;
  /// By instance and continuation; one at a time, since there may be a million.
  void for_each_option(const std::string& evaluation_id, const std::string& task,
                       const std::function<void(const OptionRow&)>& visit) const;
  [[nodiscard]] std::vector<OptionRow> options(const std::string& evaluation_id,
                                               const std::string& task) const;
  /// One instance; empty if it is not there.
  [[nodiscard]] std::vector<OptionRow> instance(const std::string& evaluation_id,
                                                const std::string& task, std::int64_t doc_id) const;
  /// By index.
  void for_each_document(const std::string& evaluation_id, const std::string& suite,
                         const std::function<void(const DocumentRow&)>& visit) const;
  [[nodiscard]] std::vector<DocumentRow> documents(const std::string& evaluation_id,
                                                   const std::string& suite) const;
  [[nodiscard]] std::vector<EvaluationMetric> metrics(const std::string& evaluation_id,
                                                      const std::string& task) const;

 private:
  [[nodiscard]] bool has_tables() const { return records_.schema_version() >= 2; }

  [[nodiscard]] std::set<std::int64_t> done(const char* sql, const std::string& task) const;
  [[nodiscard]] std::optional<std::string> last_id(const std::string& which,
                                                   const std::vector<SqlValue>& parameters) const;

  RecordDatabase& records_;
  std::string evaluation_id_;
};

}  // namespace olmo::store

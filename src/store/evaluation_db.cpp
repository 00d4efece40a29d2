#include "store/evaluation_db.h"

#include <limits>

#include "core/error.h"
#include "store/evaluation_seal.h"

namespace olmo::store {
namespace {

using Row = RecordDatabase::Row;

double number_or_nan(const SqlValue& value) {
  const auto* number = std::get_if<double>(&value);
  return number == nullptr ? std::numeric_limits<double>::quiet_NaN() : *number;
}

std::optional<double> optional_number(const SqlValue& value) {
  const auto* number = std::get_if<double>(&value);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

std::optional<std::int64_t> optional_integer(const SqlValue& value) {
  const auto* number = std::get_if<std::int64_t>(&value);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

std::optional<std::string> optional_text(const SqlValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text == nullptr ? std::nullopt : std::optional(*text);
}

/// Calls `read(statement)` for every row.
template <typename Read>
void for_each_row(const RecordDatabase& records, std::string_view sql,
                  const std::vector<SqlValue>& parameters, const Read& read) {
  Statement statement = records.connection().prepare(sql);
  statement.bind_all(parameters);
  while (statement.step()) read(statement);
}

constexpr char kOptionColumns[] =
    "SELECT task, doc_id, cont_id, native_id, label, ctx_tokens, cont_tokens, cont_chars, "
    "cont_bytes, truncated_tokens, request_hash, logprob, is_greedy, unconditional_logprob, "
    "unconditional_logit_sum, rank, margin FROM evaluation_options WHERE evaluation_id = ? AND "
    "task = ?";

OptionRow read_option(const Statement& row) {
  return {.task = row.text(0),
          .doc_id = row.integer(1),
          .cont_id = row.integer(2),
          .native_id = row.text(3),
          .label = row.integer(4),
          .ctx_tokens = row.integer(5),
          .cont_tokens = row.integer(6),
          .cont_chars = row.integer(7),
          .cont_bytes = row.integer(8),
          .truncated_tokens = row.integer(9),
          .request_hash = row.text(10),
          .logprob = number_or_nan(row.column(11)),
          .is_greedy = row.integer(12) != 0,
          .unconditional_logprob = optional_number(row.column(13)),
          .unconditional_logit_sum = optional_number(row.column(14)),
          .rank = row.integer(15),
          .margin = number_or_nan(row.column(16))};
}

DocumentRow read_document(const Statement& row) {
  return {.suite = row.text(0),
          .source = row.text(1),
          .subdomain = row.text(2),
          .index = row.integer(3),
          .document = row.text(4),
          .windows = row.integer(5),
          .tokens = row.integer(6),
          .bytes = row.integer(7),
          .chars = row.integer(8),
          .words = row.integer(9),
          .text_hash = row.text(10),
          .nll = number_or_nan(row.column(11))};
}

constexpr char kEvaluationColumns[] =
    "SELECT evaluation_id, created_utc, ended_utc, status, run_id, attempt, step, checkpoint, "
    "weights_digest, tokenizer_digest, content_key, command_line, settings, policy, build, "
    "environment FROM evaluations ";

EvaluationEntry read_evaluation(const Statement& row) {
  return {.evaluation_id = row.text(0),
          .created_utc = row.text(1),
          .ended_utc = optional_text(row.column(2)),
          .status = row.text(3),
          .record = {.run_id = optional_text(row.column(4)),
                     .attempt = optional_integer(row.column(5)),
                     .step = optional_integer(row.column(6)),
                     .checkpoint = row.text(7),
                     .weights_digest = row.text(8),
                     .tokenizer_digest = row.text(9),
                     .content_key = row.text(10),
                     .command_line = row.text(11),
                     .settings = row.text(12),
                     .policy = row.text(13),
                     .build = row.text(14),
                     .environment = row.text(15)}};
}

}  // namespace

std::string EvaluationDb::begin(const EvaluationRecord& evaluation) {
  evaluation_id_ = new_record_id();
  records_.write(
      {{"INSERT INTO evaluations VALUES (?, ?, ?, ?, ?, NULL, 'running', ?, ?, ?, ?, ?, ?, ?, ?, "
        "?)",
        {evaluation_id_, optional_value(evaluation.run_id), optional_value(evaluation.attempt),
         optional_value(evaluation.step), utc_now(), evaluation.checkpoint,
         evaluation.weights_digest, evaluation.tokenizer_digest, evaluation.content_key,
         evaluation.command_line, evaluation.settings, evaluation.policy, evaluation.build,
         evaluation.environment}}});
  return evaluation_id_;
}

std::optional<std::string> EvaluationDb::find_unfinished(const EvaluationRecord& wanted) const {
  if (!has_tables()) return std::nullopt;
  std::optional<std::string> found;
  for_each_row(records_,
               "SELECT evaluation_id FROM evaluations WHERE content_key = ? AND run_id IS ? AND "
               "step IS ? AND status <> 'finished' ORDER BY rowid DESC LIMIT 1",
               {wanted.content_key, optional_value(wanted.run_id), optional_value(wanted.step)},
               [&](const Statement& row) { found = row.text(0); });
  return found;
}

void EvaluationDb::resume(const std::string& evaluation_id) {
  records_.write(
      {{"UPDATE evaluations SET status = 'running', ended_utc = NULL WHERE evaluation_id = ?",
        {evaluation_id}},
       {"DELETE FROM evaluation_seals WHERE evaluation_id = ?", {evaluation_id}}});
  evaluation_id_ = evaluation_id;
}

void EvaluationDb::begin_task(const EvaluationTaskRecord& task) {
  // The rows of a task that was another one go with it (ON DELETE CASCADE).
  records_.write(
      {{"DELETE FROM evaluation_tasks WHERE evaluation_id = ? AND task = ? AND (kind, convention, "
        "definition_digest, data_digest) IS NOT (?, ?, ?, ?)",
        {evaluation_id_, task.task, task.kind, task.convention, task.definition_digest,
         task.data_digest}},
       {"INSERT INTO evaluation_tasks VALUES (?, ?, ?, ?, ?, ?, ?, 'running', '') ON CONFLICT DO "
        "UPDATE SET primary_metric = excluded.primary_metric, status = 'running', message = ''",
        {evaluation_id_, task.task, task.kind, task.convention, task.definition_digest,
         task.data_digest, task.primary_metric}}});
}

std::set<std::int64_t> EvaluationDb::done_instances(const std::string& task) const {
  std::set<std::int64_t> done;
  for_each_row(
      records_,
      "SELECT DISTINCT doc_id FROM evaluation_options WHERE evaluation_id = ? AND task = ?",
      {evaluation_id_, task}, [&](const Statement& row) { done.insert(row.integer(0)); });
  return done;
}

std::set<std::int64_t> EvaluationDb::done_documents(const std::string& suite) const {
  std::set<std::int64_t> done;
  for_each_row(
      records_,
      "SELECT document_index FROM evaluation_documents WHERE evaluation_id = ? AND task = ?",
      {evaluation_id_, suite}, [&](const Statement& row) { done.insert(row.integer(0)); });
  return done;
}

void EvaluationDb::record_options(std::span<const OptionRow> options) {
  std::vector<Row> rows;
  for (const auto& option : options) {
    rows.push_back(
        {"INSERT OR REPLACE INTO evaluation_options VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, "
         "?, ?, ?, ?, ?, ?, ?, ?, ?)",
         {evaluation_id_, option.task, option.doc_id, option.cont_id, option.native_id,
          option.label, option.ctx_tokens, option.cont_tokens, option.cont_chars, option.cont_bytes,
          option.truncated_tokens, option.request_hash, option.logprob,
          static_cast<std::int64_t>(option.is_greedy), optional_value(option.unconditional_logprob),
          optional_value(option.unconditional_logit_sum), option.rank, option.margin}});
  }
  records_.add(std::move(rows));
}

void EvaluationDb::record_documents(std::span<const DocumentRow> documents) {
  std::vector<Row> rows;
  for (const auto& document : documents) {
    rows.push_back(
        {"INSERT OR REPLACE INTO evaluation_documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, "
         "?, ?, ?, ?, ?)",
         {evaluation_id_, document.suite, document.index, document.source, document.subdomain,
          document.document, document.windows, document.tokens, document.bytes, document.chars,
          document.words, document.text_hash, document.nll}});
  }
  records_.add(std::move(rows));
}

void EvaluationDb::record_metrics(const std::string& task,
                                  std::span<const EvaluationMetric> metrics) {
  std::vector<Row> rows = {{"DELETE FROM evaluation_metrics WHERE evaluation_id = ? AND task = ?",
                            {evaluation_id_, task}}};
  for (const auto& metric : metrics) {
    OLMO_CHECK(metric.task == task);
    rows.push_back({"INSERT INTO evaluation_metrics VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    {evaluation_id_, task, metric.scope, metric.metric, metric.value,
                     optional_value(metric.standard_error), optional_value(metric.low),
                     optional_value(metric.high), metric.n}});
  }
  records_.add(std::move(rows));
}

void EvaluationDb::end_task(const std::string& task, const std::string& status,
                            const std::string& message) {
  records_.write(
      {{"UPDATE evaluation_tasks SET status = ?, message = ? WHERE evaluation_id = ? "
        "AND task = ?",
        {status, message, evaluation_id_, task}}});
}

void EvaluationDb::end(const std::string& status) {
  records_.write({{"UPDATE evaluations SET status = ?, ended_utc = ? WHERE evaluation_id = ?",
                   {status, utc_now(), evaluation_id_}}});
  if (!records_.is_flushed())
    return;  // the disk refuses: it stays without a seal, and that is said
  std::vector<Row> rows;
  for (const auto& [task, seal] : compute_seals(records_, evaluation_id_)) {
    rows.push_back(
        {"INSERT OR REPLACE INTO evaluation_seals VALUES (?, ?, ?)", {evaluation_id_, task, seal}});
  }
  records_.write(std::move(rows));
}

std::string EvaluationDb::find(const std::string& prefix) const {
  const std::string where = records_.path().string();
  std::vector<std::string> ids;
  if (has_tables()) {
    for_each_row(records_,
                 "SELECT evaluation_id FROM evaluations WHERE substr(evaluation_id, 1, ?) = ? "
                 "ORDER BY rowid DESC LIMIT 3",
                 {static_cast<std::int64_t>(prefix.size()), prefix},
                 [&](const Statement& row) { ids.push_back(row.text(0)); });
  }
  if (ids.empty()) {
    throw Error(
        ErrorKind::kUsage,
        where + (prefix.empty() ? ": holds no evaluation"
                                : ": holds no evaluation whose id begins with '" + prefix + "'"));
  }
  if (!prefix.empty() && ids.size() > 1 && ids[0] != prefix) {
    throw Error(ErrorKind::kUsage, where + ": '" + prefix + "' names several evaluations (" +
                                       ids[0] + ", " + ids[1] + ", ...): give more of the id");
  }
  return ids.front();
}

std::vector<EvaluationEntry> EvaluationDb::list(const std::string& run_id) const {
  std::vector<EvaluationEntry> entries;
  if (!has_tables()) return entries;
  for_each_row(records_,
               std::string(kEvaluationColumns) + "WHERE ?1 = '' OR run_id = ?1 ORDER BY rowid",
               {run_id}, [&](const Statement& row) { entries.push_back(read_evaluation(row)); });
  return entries;
}

EvaluationEntry EvaluationDb::entry(const std::string& evaluation_id) const {
  std::optional<EvaluationEntry> found;
  for_each_row(records_, std::string(kEvaluationColumns) + "WHERE evaluation_id = ?",
               {evaluation_id}, [&](const Statement& row) { found = read_evaluation(row); });
  if (!found) {
    throw Error(ErrorKind::kUsage,
                records_.path().string() + ": holds no evaluation " + evaluation_id);
  }
  return *found;
}

std::vector<EvaluationTaskEntry> EvaluationDb::tasks(const std::string& evaluation_id) const {
  std::vector<EvaluationTaskEntry> entries;
  for_each_row(records_,
               "SELECT task, kind, convention, definition_digest, data_digest, primary_metric, "
               "status, message FROM evaluation_tasks WHERE evaluation_id = ? ORDER BY rowid",
               {evaluation_id}, [&](const Statement& row) {
                 entries.push_back({.record = {.task = row.text(0),
                                               .kind = row.text(1),
                                               .convention = row.text(2),
                                               .definition_digest = row.text(3),
                                               .data_digest = row.text(4),
                                               .primary_metric = row.text(5)},
                                    .status = row.text(6),
                                    .message = row.text(7)});
               });
  return entries;
}

std::vector<OptionRow> EvaluationDb::options(const std::string& evaluation_id,
                                             const std::string& task) const {
  std::vector<OptionRow> rows;
  for_each_row(records_, std::string(kOptionColumns) + " ORDER BY doc_id, cont_id",
               {evaluation_id, task},
               [&](const Statement& row) { rows.push_back(read_option(row)); });
  return rows;
}

std::vector<OptionRow> EvaluationDb::instance(const std::string& evaluation_id,
                                              const std::string& task, std::int64_t doc_id) const {
  std::vector<OptionRow> rows;
  for_each_row(records_, std::string(kOptionColumns) + " AND doc_id = ? ORDER BY cont_id",
               {evaluation_id, task, doc_id},
               [&](const Statement& row) { rows.push_back(read_option(row)); });
  return rows;
}

std::vector<DocumentRow> EvaluationDb::documents(const std::string& evaluation_id,
                                                 const std::string& suite) const {
  std::vector<DocumentRow> rows;
  for_each_row(records_,
               "SELECT task, source, subdomain, document_index, document, windows, tokens, bytes, "
               "chars, words, text_hash, nll FROM evaluation_documents WHERE evaluation_id = ? AND "
               "task = ? ORDER BY document_index",
               {evaluation_id, suite},
               [&](const Statement& row) { rows.push_back(read_document(row)); });
  return rows;
}

std::vector<EvaluationMetric> EvaluationDb::metrics(const std::string& evaluation_id,
                                                    const std::string& task) const {
  std::vector<EvaluationMetric> rows;
  for_each_row(records_,
               "SELECT scope, metric, value, standard_error, low, high, n FROM evaluation_metrics "
               "WHERE evaluation_id = ? AND task = ? ORDER BY scope, metric",
               {evaluation_id, task}, [&](const Statement& row) {
                 rows.push_back({.task = task,
                                 .scope = row.text(0),
                                 .metric = row.text(1),
                                 .value = number_or_nan(row.column(2)),
                                 .standard_error = optional_number(row.column(3)),
                                 .low = optional_number(row.column(4)),
                                 .high = optional_number(row.column(5)),
                                 .n = row.integer(6)});
               });
  return rows;
}

std::vector<EvaluationFlip> EvaluationDb::flips(const std::string& evaluation_a,
                                                const std::string& evaluation_b) const {
  std::vector<EvaluationFlip> flips;
  for_each_row(records_,
               "SELECT a.task, a.doc_id, a.native_id, a.label, a.chosen, b.chosen, a.margin, "
               "b.margin FROM evaluation_choices a JOIN evaluation_choices b ON b.evaluation_id = "
               "?2 AND b.task = a.task AND b.doc_id = a.doc_id AND b.chosen <> a.chosen WHERE "
               "a.evaluation_id = ?1 ORDER BY a.task, a.doc_id",
               {evaluation_a, evaluation_b}, [&](const Statement& row) {
                 flips.push_back({.task = row.text(0),
                                  .doc_id = row.integer(1),
                                  .native_id = row.text(2),
                                  .label = row.integer(3),
                                  .chosen_a = row.integer(4),
                                  .chosen_b = row.integer(5),
                                  .margin_a = number_or_nan(row.column(6)),
                                  .margin_b = number_or_nan(row.column(7))});
               });
  return flips;
}

}  // namespace olmo::store

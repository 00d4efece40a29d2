#include "store/evaluations/evaluation_db.h"

#include "core/error.h"
#include "store/database/table.h"
#include "store/evaluations/evaluation_seal.h"

namespace olmo::store {
namespace {

constexpr Column<EvaluationEntry> kEvaluationColumns[] = {
    column<&EvaluationEntry::evaluation_id>("evaluation_id"),
    column<&EvaluationEntry::created_utc>("created_utc"),
    column<&EvaluationEntry::ended_utc>("ended_utc"),
    column<&EvaluationEntry::status>("status"),
    column<&EvaluationEntry::record, &EvaluationRecord::run_id>("run_id"),
    column<&EvaluationEntry::record, &EvaluationRecord::attempt>("attempt"),
    column<&EvaluationEntry::record, &EvaluationRecord::step>("step"),
    column<&EvaluationEntry::record, &EvaluationRecord::checkpoint>("checkpoint"),
    column<&EvaluationEntry::record, &EvaluationRecord::weights_digest>("weights_digest"),
    column<&EvaluationEntry::record, &EvaluationRecord::tokenizer_digest>("tokenizer_digest"),
    column<&EvaluationEntry::record, &EvaluationRecord::content_key>("content_key"),
    column<&EvaluationEntry::record, &EvaluationRecord::command_line>("command_line"),
    column<&EvaluationEntry::record, &EvaluationRecord::settings>("settings"),
    column<&EvaluationEntry::record, &EvaluationRecord::policy>("policy"),
    column<&EvaluationEntry::record, &EvaluationRecord::build>("build"),
    column<&EvaluationEntry::record, &EvaluationRecord::environment>("environment"),
};
constexpr Table<EvaluationEntry> kEvaluations{"evaluations", "", kEvaluationColumns, 2};

constexpr Column<EvaluationTaskEntry> kTaskColumns[] = {
    column<&EvaluationTaskEntry::record, &EvaluationTaskRecord::task>("task"),
    column<&EvaluationTaskEntry::record, &EvaluationTaskRecord::kind>("kind"),
    column<&EvaluationTaskEntry::record, &EvaluationTaskRecord::convention>("convention"),
    column<&EvaluationTaskEntry::record, &EvaluationTaskRecord::definition_digest>(
        "definition_digest"),
    column<&EvaluationTaskEntry::record, &EvaluationTaskRecord::data_digest>("data_digest"),
    column<&EvaluationTaskEntry::record, &EvaluationTaskRecord::primary_metric>("primary_metric"),
    column<&EvaluationTaskEntry::status>("status"),
    column<&EvaluationTaskEntry::message>("message"),
};
constexpr Table<EvaluationTaskEntry> kTasks{"evaluation_tasks", "evaluation_id", kTaskColumns, 2};

constexpr Column<OptionRow> kOptionColumns[] = {
    column<&OptionRow::task>("task"),
    column<&OptionRow::doc_id>("doc_id"),
    column<&OptionRow::cont_id>("cont_id"),
    column<&OptionRow::native_id>("native_id"),
    column<&OptionRow::label>("label"),
    column<&OptionRow::ctx_tokens>("ctx_tokens"),
    column<&OptionRow::cont_tokens>("cont_tokens"),
    column<&OptionRow::cont_chars>("cont_chars"),
    column<&OptionRow::cont_bytes>("cont_bytes"),
    column<&OptionRow::truncated_tokens>("truncated_tokens"),
    column<&OptionRow::request_hash>("request_hash"),
    column<&OptionRow::logprob>("logprob"),
    column<&OptionRow::is_greedy>("is_greedy"),
    column<&OptionRow::unconditional_logprob>("unconditional_logprob"),
    column<&OptionRow::unconditional_logit_sum>("unconditional_logit_sum"),
    column<&OptionRow::rank>("rank"),
    column<&OptionRow::margin>("margin"),
};
constexpr Table<OptionRow> kOptions{"evaluation_options", "evaluation_id", kOptionColumns, 2};

constexpr Column<DocumentRow> kDocumentColumns[] = {
    column<&DocumentRow::suite>("task"),          column<&DocumentRow::index>("document_index"),
    column<&DocumentRow::source>("source"),       column<&DocumentRow::subdomain>("subdomain"),
    column<&DocumentRow::document>("document"),   column<&DocumentRow::windows>("windows"),
    column<&DocumentRow::tokens>("tokens"),       column<&DocumentRow::bytes>("bytes"),
    column<&DocumentRow::chars>("chars"),         column<&DocumentRow::words>("words"),
    column<&DocumentRow::text_hash>("text_hash"), column<&DocumentRow::nll>("nll"),
};
constexpr Table<DocumentRow> kDocuments{"evaluation_documents", "evaluation_id", kDocumentColumns,
                                        2};

constexpr Column<EvaluationMetric> kMetricColumns[] = {
    column<&EvaluationMetric::task>("task"),
    column<&EvaluationMetric::scope>("scope"),
    column<&EvaluationMetric::metric>("metric"),
    column<&EvaluationMetric::value>("value"),
    column<&EvaluationMetric::standard_error>("standard_error"),
    column<&EvaluationMetric::low>("low"),
    column<&EvaluationMetric::high>("high"),
    column<&EvaluationMetric::n>("n"),
};
constexpr Table<EvaluationMetric> kMetrics{"evaluation_metrics", "evaluation_id", kMetricColumns,
                                           2};

constexpr char kOfTask[] = "WHERE evaluation_id = ? AND task = ? ";
constexpr char kWithoutRun[] = "(run_id IS NULL OR run_id NOT IN (SELECT run_id FROM runs))";

}  // namespace

std::string EvaluationDb::begin(const EvaluationRecord& evaluation) {
  evaluation_id_ = new_record_id();
  records_.write({row_for<kEvaluations>("", {.evaluation_id = evaluation_id_,
                                             .created_utc = utc_now(),
                                             .ended_utc = {},
                                             .status = "running",
                                             .record = evaluation})});
  return evaluation_id_;
}

std::optional<std::string> EvaluationDb::find_unfinished(const EvaluationRecord& wanted) const {
  return last_id("WHERE content_key = ? AND run_id IS ? AND step IS ? AND status <> 'finished'",
                 {wanted.content_key, optional_value(wanted.run_id), optional_value(wanted.step)});
}

std::optional<std::string> EvaluationDb::find_content(const std::string& content_key) const {
  return last_id("WHERE content_key = ?", {content_key});
}

std::optional<std::string> EvaluationDb::last_id(const std::string& which,
                                                 const std::vector<SqlValue>& parameters) const {
  const auto found = read_one(records_, kEvaluations, which + " ORDER BY rowid", parameters);
  return found ? std::optional(found->evaluation_id) : std::nullopt;
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
       row_for<kTasks, Insert::kIgnore>(evaluation_id_,
                                        {.record = task, .status = "running", .message = ""}),
       {"UPDATE evaluation_tasks SET primary_metric = ?, status = 'running', message = '' WHERE "
        "evaluation_id = ? AND task = ?",
        {task.primary_metric, evaluation_id_, task.task}}});
}

std::set<std::int64_t> EvaluationDb::done(const char* sql, const std::string& task) const {
  std::set<std::int64_t> numbers;
  records_.query(sql, {evaluation_id_, task}, [&](const auto&, const auto& row) {
    numbers.insert(std::get<std::int64_t>(row[0]));
  });
  return numbers;
}

std::set<std::int64_t> EvaluationDb::done_instances(const std::string& task) const {
  return done("SELECT DISTINCT doc_id FROM evaluation_options WHERE evaluation_id = ? AND task = ?",
              task);
}

std::set<std::int64_t> EvaluationDb::done_documents(const std::string& suite) const {
  return done(
      "SELECT document_index FROM evaluation_documents WHERE evaluation_id = ? AND task = ?",
      suite);
}

void EvaluationDb::record_options(std::span<const OptionRow> options) {
  records_.add(rows_for<kOptions, Insert::kReplace>(evaluation_id_, options));
}

void EvaluationDb::record_documents(std::span<const DocumentRow> documents) {
  records_.add(rows_for<kDocuments, Insert::kReplace>(evaluation_id_, documents));
}

void EvaluationDb::record_metrics(const std::string& task,
                                  std::span<const EvaluationMetric> metrics) {
  for (const auto& metric : metrics) OLMO_CHECK(metric.task == task);
  auto rows = rows_for<kMetrics>(evaluation_id_, metrics);
  rows.insert(rows.begin(), {"DELETE FROM evaluation_metrics WHERE evaluation_id = ? AND task = ?",
                             {evaluation_id_, task}});
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
  std::vector<RecordDatabase::Row> rows;
  for (const auto& [task, seal] : compute_seals(records_, evaluation_id_)) {
    rows.push_back(
        {"INSERT OR REPLACE INTO evaluation_seals VALUES (?, ?, ?)", {evaluation_id_, task, seal}});
  }
  records_.write(std::move(rows));
}

std::string EvaluationDb::find(const std::string& prefix) const {
  const std::string what = "evaluation";
  return one_id_of(records_, what, prefix,
                   has_tables() ? ids_from(records_, what, prefix) : std::vector<std::string>());
}

std::vector<EvaluationEntry> EvaluationDb::list(const std::string& run_id) const {
  return read_all(records_, kEvaluations, "WHERE ?1 = '' OR run_id = ?1 ORDER BY rowid", {run_id});
}

std::vector<EvaluationEntry> EvaluationDb::list_without_run(std::int64_t most) const {
  return read_all(records_, kEvaluations,
                  std::string("WHERE ") + kWithoutRun + " ORDER BY rowid DESC LIMIT ?", {most});
}

std::int64_t EvaluationDb::count_without_run() const {
  if (!has_tables()) return 0;
  std::int64_t count = 0;
  records_.query(std::string("SELECT count(*) FROM evaluations WHERE ") + kWithoutRun, {},
                 [&](const auto&, const auto& row) { count = std::get<std::int64_t>(row[0]); });
  return count;
}

EvaluationEntry EvaluationDb::entry(const std::string& evaluation_id) const {
  auto found = read_one(records_, kEvaluations, "WHERE evaluation_id = ?", {evaluation_id});
  if (!found) {
    throw Error(ErrorKind::kUsage,
                records_.path().string() + ": holds no evaluation " + evaluation_id);
  }
  return *std::move(found);
}

std::vector<EvaluationTaskEntry> EvaluationDb::tasks(const std::string& evaluation_id) const {
  return read_all(records_, kTasks, "WHERE evaluation_id = ? ORDER BY rowid", {evaluation_id});
}

void EvaluationDb::for_each_option(const std::string& evaluation_id, const std::string& task,
                                   const std::function<void(const OptionRow&)>& visit) const {
  for_each(records_, kOptions, std::string(kOfTask) + "ORDER BY doc_id, cont_id",
           {evaluation_id, task}, visit);
}

std::vector<OptionRow> EvaluationDb::options(const std::string& evaluation_id,
                                             const std::string& task) const {
  return read_all(records_, kOptions, std::string(kOfTask) + "ORDER BY doc_id, cont_id",
                  {evaluation_id, task});
}

std::vector<OptionRow> EvaluationDb::instance(const std::string& evaluation_id,
                                              const std::string& task, std::int64_t doc_id) const {
  return read_all(records_, kOptions, std::string(kOfTask) + "AND doc_id = ? ORDER BY cont_id",
                  {evaluation_id, task, doc_id});
}

void EvaluationDb::for_each_document(const std::string& evaluation_id, const std::string& suite,
                                     const std::function<void(const DocumentRow&)>& visit) const {
  for_each(records_, kDocuments, std::string(kOfTask) + "ORDER BY document_index",
           {evaluation_id, suite}, visit);
}

std::vector<DocumentRow> EvaluationDb::documents(const std::string& evaluation_id,
                                                 const std::string& suite) const {
  return read_all(records_, kDocuments, std::string(kOfTask) + "ORDER BY document_index",
                  {evaluation_id, suite});
}

std::vector<EvaluationMetric> EvaluationDb::metrics(const std::string& evaluation_id,
                                                    const std::string& task) const {
  return read_all(records_, kMetrics, std::string(kOfTask) + "ORDER BY scope, metric",
                  {evaluation_id, task});
}

}  // namespace olmo::store

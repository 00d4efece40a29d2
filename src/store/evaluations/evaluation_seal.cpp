#include "store/evaluations/evaluation_seal.h"

#include "store/database/value_hash.h"

namespace olmo::store {
namespace {

/// The values of every row of `sql`, each with its type; NULL has no bits.
void add_rows(Sha256& hash, const RecordDatabase& records, const std::string& sql,
              const std::vector<SqlValue>& parameters) {
  std::uint64_t rows = 0;
  records.query(sql, parameters, [&](const auto&, const auto& values) {
    ++rows;
    for (const SqlValue& value : values) add_to(hash, value);
  });
  hash.update_u64(rows);
}

std::string seal_of_task(const RecordDatabase& records, const std::string& evaluation_id,
                         const std::string& task) {
  Sha256 hash;
  add_rows(hash, records,
           "SELECT evaluation_id, run_id, attempt, step, created_utc, checkpoint, weights_digest, "
           "tokenizer_digest, content_key, command_line, settings, policy, build, environment FROM "
           "evaluations WHERE evaluation_id = ?",
           {evaluation_id});
  // Columns by name: one that a later version adds must not change what was sealed before.
  for (const char* sql :
       {"SELECT evaluation_id, task, kind, convention, definition_digest, data_digest, "
        "primary_metric, status, message FROM evaluation_tasks "
        "WHERE evaluation_id = ? AND task = ?",
        "SELECT evaluation_id, task, doc_id, cont_id, native_id, label, ctx_tokens, cont_tokens, "
        "cont_chars, cont_bytes, truncated_tokens, request_hash, logprob, is_greedy, "
        "unconditional_logprob, unconditional_logit_sum, margin, rank FROM evaluation_options "
        "WHERE evaluation_id = ? AND task = ? ORDER BY doc_id, cont_id",
        "SELECT evaluation_id, task, document_index, source, subdomain, document, windows, tokens, "
        "bytes, chars, words, text_hash, nll FROM evaluation_documents "
        "WHERE evaluation_id = ? AND task = ? ORDER BY document_index",
        "SELECT evaluation_id, task, scope, metric, value, standard_error, low, high, n FROM "
        "evaluation_metrics WHERE evaluation_id = ? AND task = ? ORDER BY scope, metric"})
    add_rows(hash, records, sql, {evaluation_id, task});
  return hash.finish().hex();
}

}  // namespace

std::map<std::string, std::string> compute_seals(const RecordDatabase& records,
                                                 const std::string& evaluation_id) {
  std::map<std::string, std::string> seals;
  records.query("SELECT task FROM evaluation_tasks WHERE evaluation_id = ?", {evaluation_id},
                [&](const auto&, const auto& row) { seals[std::get<std::string>(row[0])]; });
  Sha256 all;
  all.update(seal_of_task(records, evaluation_id, ""));  // of an evaluation without tasks, too
  for (auto& [task, seal] : seals) {
    seal = seal_of_task(records, evaluation_id, task);
    all.update(seal);
  }
  seals[""] = all.finish().hex();
  return seals;
}

SealCheck check_seals(const RecordDatabase& records, const std::string& evaluation_id) {
  SealCheck check;
  if (records.schema_version() < 5) return check;
  std::map<std::string, std::string> recorded;
  records.query("SELECT task, sha256 FROM evaluation_seals WHERE evaluation_id = ?",
                {evaluation_id}, [&](const auto&, const auto& row) {
                  recorded[std::get<std::string>(row[0])] = std::get<std::string>(row[1]);
                });
  if (recorded.empty()) return check;
  check.sealed = true;
  const auto found = compute_seals(records, evaluation_id);
  for (const auto& [task, seal] : found) {
    if (task.empty()) continue;
    const auto was = recorded.find(task);
    if (was == recorded.end()) {
      check.altered.push_back(task + ": was added after the evaluation had ended");
    } else if (was->second != seal) {
      check.altered.push_back(task +
                              ": its rows, or what they were recorded under, are not those that "
                              "the evaluation ended with: altered or damaged");
    }
  }
  for (const auto& [task, seal] : recorded) {
    if (!found.contains(task)) check.altered.push_back(task + ": its rows were removed");
  }
  if (check.altered.empty() && recorded[""] != found.at(""))
    check.altered.emplace_back("the evaluation is not what it ended as: altered or damaged");
  return check;
}

}  // namespace olmo::store

#include "evaluation/session.h"

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "core/process/process.h"
#include "core/process/terminal.h"
#include "core/process_identity.h"
#include "dist/agreement.h"
#include "store/run_files.h"
#include "store/runs/policy_json.h"
#include "store/runs/provenance.h"

namespace olmo::evaluation {
namespace {

namespace fs = std::filesystem;

/// Of the policy, what decides bits: nothing but its name under `portable`, and what is rounded.
std::string numerics_key(const Policy& policy) {
  const std::string rounded = policy.mixed_precision == MixedPrecision::kNone
                                  ? ""
                                  : " " + to_string(policy.mixed_precision);
  if (policy.numerics == Numerics::kPortable) return "portable" + rounded;
  return "fast" + rounded + " " + to_string(policy.isa) + " " + std::to_string(policy.threads) +
         " " + build_info().libtorch;
}

std::string content_key(const Policy& policy, const store::EvaluationRecord& record) {
  Sha256 hash;
  for (const auto& part : {record.weights_digest, record.tokenizer_digest, numerics_key(policy),
                           std::string(build_info().version), record.settings}) {
    hash.update(part).update(std::string_view("\0", 1));
  }
  return hash.finish().hex();
}

void require_same_on_all(dist::Communicator& ranks, const store::EvaluationRecord& record,
                         const Policy& policy) {
  const std::vector<dist::Fact> facts = {{"weights", record.weights_digest},
                                         {"tokenizer", record.tokenizer_digest},
                                         {"numerics", numerics_key(policy)},
                                         {"build", record.build},
                                         {"tasks and texts", record.settings}};
  dist::require_same(ranks, facts, own_identity().host);
}

/// Begins the evaluation in the database, or goes on with one that was not finished. Returns which.
bool begin_or_resume(store::EvaluationDb& db, const store::EvaluationRecord& record) {
  const auto unfinished = db.find_unfinished(record);
  if (unfinished) {
    db.resume(*unfinished);
  } else {
    db.begin(record);
  }
  return unfinished.has_value();
}

/// How an evaluation ended with an error, which may be that memory ran out.
const char* end_by(const std::exception& error) {
  const auto* ours = dynamic_cast<const Error*>(&error);
  const bool asked = ours != nullptr && (ours->kind() == ErrorKind::kInterrupted ||
                                         ours->kind() == ErrorKind::kStopped);
  return asked ? "interrupted" : "failed";
}

}  // namespace

fs::path default_database(const models::LoadedModel& loaded) {
  const fs::path run =
      fs::absolute(loaded.files.path).lexically_normal().parent_path() / store::kRunDatabaseName;
  return loaded.files.run_id && fs::exists(run) ? run : fs::path("evaluations.db");
}

store::EvaluationRecord describe_evaluation(const model::Olmo& model, const Digest& weights_digest,
                                            const data::Tokenizer* tokenizer,
                                            const Json& settings) {
  store::EvaluationRecord record;
  record.weights_digest = weights_digest.hex();
  if (tokenizer != nullptr) record.tokenizer_digest = tokenizer->digest().hex();
  record.settings = json_text(settings);
  record.content_key = content_key(model.policy(), record);
  record.policy = json_text(store::policy_json(model.policy()));
  record.build = json_text(store::build_json());
  record.environment = json_text(store::environment_json());
  return record;
}

EvaluationSessionResult run_evaluation(models::LoadedModel& loaded,
                                       const data::Tokenizer* tokenizer, const EvaluationPlan& plan,
                                       const EvaluationSessionOptions& options) {
  const StopSignals signals;
  const auto check = [&] {
    signals.throw_if_requested(
        "the rows so far are recorded, and the same command goes on from them");
  };
  // Ranks stop together, before a pass; a rank of its own accord would leave the others waiting.
  const EvaluationRanks among{.ranks = options.ranks, .check = check};
  const auto on_progress = [&](const Progress& progress) {
    if (options.on_progress) options.on_progress(progress);
    if (options.ranks == nullptr) check();
  };
  auto record = describe_evaluation(loaded.model, loaded.weights_digest, tokenizer, to_json(plan));
  EvaluationSessionResult result;
  if (options.ranks != nullptr) require_same_on_all(*options.ranks, record, loaded.model.policy());
  if (options.ranks != nullptr && options.ranks->rank() > 0) {
    result.outcome = evaluate(loaded.model, tokenizer, plan, nullptr, on_progress, among);
    return result;
  }
  store::RecordDatabase database(options.database, store::OpenMode::kCreate);
  store::EvaluationDb db(database);
  record.checkpoint = fs::absolute(loaded.files.path).lexically_normal().string();
  record.run_id = options.run ? options.run->run_id : loaded.files.run_id;
  record.step = options.run ? options.run->step : loaded.files.step;
  record.command_line = options.command_line;
  result.resumed = begin_or_resume(db, record);
  result.evaluation_id = db.evaluation_id();
  try {
    result.outcome = evaluate(loaded.model, tokenizer, plan, &db, on_progress, among);
  } catch (const std::exception& error) {
    db.end(end_by(error));
    throw;
  }
  db.end(result.outcome.has_failures() ? "failed" : "finished");
  return result;
}

}  // namespace olmo::evaluation

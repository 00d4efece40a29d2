#include "report/record/recorded_evaluation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "core/text/text.h"

namespace olmo::report {
namespace {

/// Larger numbers are no sums of log-likelihoods; below it, sums of squares stay finite.
constexpr double kLargestScore = 1e100;
constexpr std::int64_t kLargestCount = std::int64_t{1} << 40;

bool is_score(double value) { return std::abs(value) <= kLargestScore; }
bool is_count(std::int64_t value) { return value >= 0 && value <= kLargestCount; }

/// FNV-1a: texts that are SHA-256 already only have to be folded into 64 bits.
constexpr std::uint64_t kFnvStart = 0xcbf29ce484222325U;
std::uint64_t fold(std::uint64_t hash, const std::string& text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

std::int32_t clamped(std::int64_t value) {
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(value, 0, std::numeric_limits<std::int32_t>::max()));
}

/// How many units of a task have a fault, and the first that has.
struct Fault {
  const char* what;
  std::int64_t count = 0;
  std::int64_t first = 0;

  void add(std::int64_t unit) {
    if (count++ == 0) first = unit;
  }
};

template <std::size_t N>
void report_faults(const std::array<Fault, N>& faults, const std::string& task, const char* unit,
                   std::vector<std::string>& damage) {
  for (const Fault& fault : faults) {
    if (fault.count == 0) continue;
    damage.push_back(task + ": " + fault.what + ": " + std::to_string(fault.count) + " " + unit +
                     (fault.count > 1 ? "s, the first is " : ", ") + std::to_string(fault.first));
  }
}

/// Puts the rows of a task, ordered by instance and option, together.
class InstanceReader {
 public:
  explicit InstanceReader(EvaluatedTask& task) : task_(task) {}

  void add(const OptionRow& row) {
    if (!open_ || row.doc_id != current_.doc_id) {
      close();
      start(row.doc_id, row.label);
    }
    if (row.cont_id != current_.options) gap_ = true;
    if (row.label != label_) wrong_label_ = true;
    if (!is_score(row.logprob) || !is_score(row.margin)) unscored_ = true;
    if (row.rank == 1) {
      ++chosen_;
      current_.chosen = current_.options;
      current_.margin = row.margin;
    }
    if (row.request_hash.empty()) requests_known_ = false;
    current_.requests = fold(current_.requests, row.request_hash);
    current_.tokens += clamped(row.ctx_tokens) + std::int64_t{clamped(row.cont_tokens)};
    if (row.ctx_tokens == 1) task_.has_bare_requests = true;
    if (row.cont_id == label_) {
      current_.answer_bytes = clamped(row.cont_bytes);
      current_.answer_tokens = clamped(row.cont_tokens);
    }
    task_.logprobs.push_back(row.logprob);
    ++current_.options;
  }

  void close() {
    if (!open_) return;
    open_ = false;
    if (label_ < 0 || label_ >= current_.options) wrong_label_ = true;
    if (!is_sound()) {
      task_.logprobs.resize(static_cast<std::size_t>(current_.first_option));
      return;
    }
    current_.label = static_cast<std::int32_t>(label_);
    if (!requests_known_) current_.requests = 0;
    task_.instances.push_back(current_);
  }

  void report(std::vector<std::string>& damage) const {
    report_faults(faults_, task_.task, "instance", damage);
  }

 private:
  void start(std::int64_t doc_id, std::int64_t label) {
    current_ = {};
    current_.doc_id = doc_id;
    current_.first_option = static_cast<std::int64_t>(task_.logprobs.size());
    current_.requests = kFnvStart;
    label_ = label;
    chosen_ = 0;
    gap_ = unscored_ = wrong_label_ = false;
    open_ = requests_known_ = true;
  }

  bool is_sound() {
    const std::array<bool, 4> found = {gap_, unscored_, chosen_ != 1, wrong_label_};
    for (std::size_t i = 0; i < found.size(); ++i)
      if (found[i]) faults_[i].add(current_.doc_id);
    return std::none_of(found.begin(), found.end(), [](bool fault) { return fault; });
  }

  EvaluatedTask& task_;
  EvaluatedInstance current_;
  std::int64_t label_ = 0, chosen_ = 0;
  bool open_ = false, gap_ = false, unscored_ = false, wrong_label_ = false;
  bool requests_known_ = true;
  std::array<Fault, 4> faults_ = {{{"options are missing"},
                                   {"a score is missing or not finite"},
                                   {"not exactly one option has rank 1"},
                                   {"the label is none of the options"}}};
};

EvaluatedTask read_task(const store::EvaluationDb& db, const std::string& evaluation_id,
                        const store::EvaluationTaskRecord& record, const Asked& asked,
                        std::vector<std::string>& damage) {
  EvaluatedTask task{.task = record.task,
                     .convention = record.convention,
                     .definition_digest = record.definition_digest,
                     .data_digest = record.data_digest,
                     .primary_metric = record.primary_metric,
                     .asked = asked,
                     .has_bare_requests = false,
                     .instances = {},
                     .logprobs = {}};
  InstanceReader reader(task);
  db.for_each_option(evaluation_id, record.task, [&](const OptionRow& row) { reader.add(row); });
  reader.close();
  reader.report(damage);
  return task;
}

EvaluatedSuite read_suite(const store::EvaluationDb& db, const std::string& evaluation_id,
                          const store::EvaluationTaskRecord& record, const Asked& asked,
                          std::vector<std::string>& damage) {
  EvaluatedSuite suite{.suite = record.task,
                       .convention = record.convention,
                       .definition_digest = record.definition_digest,
                       .data_digest = record.data_digest,
                       .asked = asked,
                       .documents = {}};
  std::array<Fault, 2> faults = {
      {{"the score is missing or not finite"}, {"the count of tokens or bytes is impossible"}}};
  db.for_each_document(evaluation_id, record.task, [&](const DocumentRow& row) {
    const bool scored = is_score(row.nll), counted = is_count(row.tokens) && is_count(row.bytes);
    if (!scored) faults[0].add(row.index);
    if (!counted) faults[1].add(row.index);
    if (!scored || !counted) return;
    suite.documents.push_back({.source = row.source,
                               .index = row.index,
                               .tokens = row.tokens,
                               .bytes = row.bytes,
                               .text = row.text_hash.empty() ? 0 : fold(kFnvStart, row.text_hash),
                               .nll = row.nll});
  });
  report_faults(faults, suite.suite, "document", damage);
  return suite;
}

void read_tasks(const store::EvaluationDb& db, EvaluationData& data) {
  auto entries = db.tasks(data.evaluation_id);
  if (entries.empty()) data.damage.push_back("the evaluation holds no task");
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.record.task < b.record.task; });
  const AskedParts asked(data.settings);
  for (const auto& entry : entries) {
    if (entry.status != "finished")
      data.damage.push_back(entry.record.task + ": is " + entry.status + " and not finished" +
                            (entry.message.empty() ? "" : ": " + entry.message));
    if (entry.record.kind == "perplexity")
      data.suites.push_back(read_suite(db, data.evaluation_id, entry.record,
                                       asked.of(entry.record.task), data.damage));
    else
      data.tasks.push_back(read_task(db, data.evaluation_id, entry.record,
                                     asked.of(entry.record.task), data.damage));
  }
}

}  // namespace

bool is_cost_metric(const std::string& name) { return name == "bpb" || name == "ce_loss"; }

bool EvaluatedTask::is_cost() const {
  if (is_cost_metric(primary_metric)) return true;
  return !instances.empty() &&
         std::all_of(instances.begin(), instances.end(),
                     [](const EvaluatedInstance& instance) { return instance.options == 1; });
}

EvaluationData read_evaluation(store::RecordDatabase& records, const std::string& evaluation_id) {
  store::SealChecks seals;
  return read_evaluation(records, evaluation_id, seals);
}

EvaluationData read_evaluation(store::RecordDatabase& records, const std::string& evaluation_id,
                               store::SealChecks& seals) {
  const store::EvaluationDb db(records);
  const store::EvaluationEntry entry = db.entry(evaluation_id);
  EvaluationData data{.evaluation_id = entry.evaluation_id,
                      .created_utc = entry.created_utc,
                      .checkpoint = entry.record.checkpoint,
                      .weights_digest = entry.record.weights_digest,
                      .tokenizer_digest = entry.record.tokenizer_digest,
                      .step = entry.record.step,
                      .settings = entry.record.settings,
                      .policy = entry.record.policy,
                      .build = entry.record.build,
                      .environment = entry.record.environment,
                      .tasks = {},
                      .suites = {},
                      .sealed = false,
                      .damage = {}};
  if (entry.status != "finished")
    data.damage.push_back("the evaluation is " + entry.status + " and not finished");
  const store::SealCheck& found = seals.of(records, evaluation_id);
  data.sealed = found.sealed;
  data.damage.insert(data.damage.end(), found.altered.begin(), found.altered.end());
  read_tasks(db, data);
  return data;
}

std::vector<std::string> damage_at_step(const std::string& evaluation_id,
                                        std::optional<std::int64_t> step,
                                        const std::vector<std::string>& damage) {
  const std::string at = step ? " at step " + std::to_string(*step) : "";
  std::vector<std::string> sentences;
  for (const auto& sentence : damage)
    sentences.push_back("the evaluation " + evaluation_id + at + ": " + sentence);
  return sentences;
}

std::string limits_text(const EvaluationData& data) {
  std::vector<std::string> limited, kinds;
  std::set<std::optional<std::int64_t>> limits;
  const auto add = [&](const Asked& asked, const char* what, const std::string& of,
                       const char* each) {
    limits.insert(asked.limit);
    if (!asked.limit) return;
    limited.push_back(std::to_string(*asked.limit) + " " + what + " of " + of);
    const std::string kind = std::string(what) + " " + each;
    if (!std::ranges::count(kinds, kind)) kinds.push_back(kind);
  };
  for (const EvaluatedTask& task : data.tasks) add(task.asked, "instances", task.task, "a task");
  for (const EvaluatedSuite& suite : data.suites) {
    add(suite.asked, suite.convention == "catwalk" ? "documents" : "instances",
        "each source of " + suite.suite, "a source");
  }
  if (limits.size() > 1 || limited.size() < 2) return joined(limited);
  return std::to_string(**limits.begin()) + " " + joined(kinds, " and ");
}

}  // namespace olmo::report

#include "report/recorded_evaluation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "store/evaluation_seal.h"

namespace olmo::report {
namespace {

using store::Statement;

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
  static constexpr char kColumns[] =
      "SELECT doc_id, cont_id, label, rank, logprob, margin, request_hash, cont_bytes, cont_tokens "
      "FROM evaluation_options WHERE evaluation_id = ? AND task = ? ORDER BY doc_id, cont_id";

  explicit InstanceReader(EvaluatedTask& task) : task_(task) {}

  void add(const Statement& row) {
    const std::int64_t doc_id = row.integer(0);
    if (!open_ || doc_id != current_.doc_id) {
      close();
      start(doc_id, row.integer(2));
    }
    const std::int64_t option = row.integer(1);
    if (option != current_.options) gap_ = true;
    if (row.integer(2) != label_) wrong_label_ = true;
    const double logprob = row.real(4), margin = row.real(5);
    if (!is_score(logprob) || !is_score(margin)) unscored_ = true;
    if (row.integer(3) == 1) {
      ++chosen_;
      current_.chosen = current_.options;
      current_.margin = margin;
    }
    const std::string request = row.text(6);
    if (request.empty()) requests_known_ = false;
    current_.requests = fold(current_.requests, request);
    if (option == label_) {
      current_.answer_bytes = clamped(row.integer(7));
      current_.answer_tokens = clamped(row.integer(8));
    }
    task_.logprobs.push_back(logprob);
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

template <typename Read>
void for_each_row(const store::RecordDatabase& records, const char* sql,
                  const std::string& evaluation_id, const std::string& task, const Read& read) {
  Statement statement = records.connection().prepare(sql);
  statement.bind_all({evaluation_id, task});
  while (statement.step()) read(statement);
}

EvaluatedTask read_task(const store::RecordDatabase& records, const std::string& evaluation_id,
                        const store::EvaluationTaskRecord& record,
                        std::vector<std::string>& damage) {
  EvaluatedTask task{.task = record.task,
                     .convention = record.convention,
                     .definition_digest = record.definition_digest,
                     .data_digest = record.data_digest,
                     .primary_metric = record.primary_metric,
                     .instances = {},
                     .logprobs = {}};
  InstanceReader reader(task);
  for_each_row(records, InstanceReader::kColumns, evaluation_id, record.task,
               [&](const Statement& row) { reader.add(row); });
  reader.close();
  reader.report(damage);
  return task;
}

EvaluatedSuite read_suite(const store::RecordDatabase& records, const std::string& evaluation_id,
                          const store::EvaluationTaskRecord& record,
                          std::vector<std::string>& damage) {
  EvaluatedSuite suite{.suite = record.task,
                       .convention = record.convention,
                       .definition_digest = record.definition_digest,
                       .data_digest = record.data_digest,
                       .documents = {}};
  std::array<Fault, 2> faults = {
      {{"the score is missing or not finite"}, {"the count of tokens or bytes is impossible"}}};
  for_each_row(records,
               "SELECT document_index, source, tokens, bytes, text_hash, nll FROM "
               "evaluation_documents WHERE evaluation_id = ? AND task = ? ORDER BY document_index",
               evaluation_id, record.task, [&](const Statement& row) {
                 const std::string hash = row.text(4);
                 EvaluatedDocument document{.source = row.text(1),
                                            .index = row.integer(0),
                                            .tokens = row.integer(2),
                                            .bytes = row.integer(3),
                                            .text = hash.empty() ? 0 : fold(kFnvStart, hash),
                                            .nll = row.real(5)};
                 const bool scored = is_score(document.nll);
                 const bool counted = is_count(document.tokens) && is_count(document.bytes);
                 if (!scored) faults[0].add(document.index);
                 if (!counted) faults[1].add(document.index);
                 if (scored && counted) suite.documents.push_back(std::move(document));
               });
  report_faults(faults, suite.suite, "document", damage);
  return suite;
}

void read_tasks(const store::RecordDatabase& records, const store::EvaluationDb& db,
                EvaluationData& data) {
  auto entries = db.tasks(data.evaluation_id);
  if (entries.empty()) data.damage.push_back("the evaluation holds no task");
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.record.task < b.record.task; });
  for (const auto& entry : entries) {
    if (entry.status != "finished")
      data.damage.push_back(entry.record.task + ": is " + entry.status + " and not finished" +
                            (entry.message.empty() ? "" : ": " + entry.message));
    if (entry.record.kind == "perplexity")
      data.suites.push_back(read_suite(records, data.evaluation_id, entry.record, data.damage));
    else
      data.tasks.push_back(read_task(records, data.evaluation_id, entry.record, data.damage));
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
  const auto seals = store::check_seals(records, evaluation_id);
  data.sealed = seals.sealed;
  data.damage.insert(data.damage.end(), seals.altered.begin(), seals.altered.end());
  read_tasks(records, db, data);
  return data;
}

}  // namespace olmo::report

#include "evaluation/evaluators.h"

#include <nlohmann/json.hpp>

#include "eval/load_task.h"
#include "eval/scoring.h"
#include "eval/selection.h"
#include "evaluation/session.h"
#include "evaluation/shuffled_subset.h"

namespace olmo::evaluation {
namespace {

namespace fs = std::filesystem;

/// The keys of one evaluator, or of its `data`. A value that cannot be used is named with its key;
/// one that is null is not there.
class EvaluatorKeys {
 public:
  EvaluatorKeys(const Json& keys, std::string where) : keys_(keys), where_(std::move(where)) {
    if (!keys_.is_object()) fail("must be a map, got " + keys_.dump());
  }

  [[nodiscard]] const Json* find(const char* key) const {
    const auto found = keys_.find(key);
    return found == keys_.end() || found->is_null() ? nullptr : &*found;
  }
  [[nodiscard]] std::string text(const char* key, const std::string& otherwise) const {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_string()) fail(key, "must be text", *value);
    return value->get<std::string>();
  }
  [[nodiscard]] std::int64_t integer(const char* key, std::int64_t otherwise,
                                     std::int64_t low) const {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    const bool fits = value->is_number_integer() &&
                      !(value->is_number_unsigned() && value->get<std::uint64_t>() > INT64_MAX) &&
                      value->get<std::int64_t>() >= low;
    if (!fits) fail(key, "must be an integer from " + std::to_string(low), *value);
    return value->get<std::int64_t>();
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::kUsage, where_ + ": " + what);
  }

 private:
  [[noreturn]] void fail(const char* key, const std::string& expected, const Json& got) const {
    fail("`" + std::string(key) + "` " + expected + ", got " + got.dump());
  }

  const Json& keys_;
  std::string where_;
};

/// Continuations or instances that it takes; nothing: all.
std::optional<std::int64_t> sample_limit(const EvaluatorKeys& evaluator,
                                         const config::TrainConfig& config) {
  const auto batches = evaluator.integer("subset_num_batches", config.eval_subset_num_batches, -1);
  const auto batch = evaluator.integer("device_eval_batch_size", config.device_eval_batch_size, 1);
  std::int64_t samples = 0;
  if (batches <= 0 || __builtin_mul_overflow(batches, batch, &samples)) return std::nullopt;
  return samples;
}

/// Instances whose continuations all lie among the first `samples` of the task.
std::int64_t whole_instances(const eval::Task& task, std::int64_t samples) {
  std::int64_t count = 0;
  for (const auto& example : eval::load_task(task).examples) {
    samples -= std::ssize(example.options);
    if (samples < 0) break;
    ++count;
  }
  return count;
}

/// The files of a data set, by label; OLMo's own configs name URLs.
std::map<std::string, std::vector<std::string>> data_sets(const std::string& label,
                                                          const EvaluatorKeys& data) {
  std::map<std::string, std::vector<std::string>> sets;
  const Json *paths = data.find("paths"), *datasets = data.find("datasets");
  try {
    if (paths != nullptr && !paths->empty()) {
      sets[label] = paths->get<std::vector<std::string>>();
    } else if (datasets != nullptr) {
      sets = datasets->get<std::map<std::string, std::vector<std::string>>>();
    }
  } catch (const Json::exception&) {
    data.fail("`paths` must be a list of files, `datasets` a map of labels to lists of files");
  }
  std::erase_if(sets, [](const auto& set) { return set.second.empty(); });
  if (sets.empty())
    data.fail("needs token files in `paths` or `datasets` (type: lm), or `type: downstream`");
  return sets;
}

data::TokenDtype dtype_of(const EvaluatorKeys& data, const std::string& otherwise) {
  const auto name = data.text("memmap_dtype", otherwise);
  if (name != "uint16" && name != "uint32")
    data.fail("`memmap_dtype` must be uint16 or uint32, got " + Json(name).dump());
  return data::parse_token_dtype(name);
}

std::string metric_key(const eval::Task& task) {
  const auto primary =
      std::find_if(task.metrics.begin(), task.metrics.end(),
                   [&](const auto& metric) { return metric.name == task.primary_metric; });
  OLMO_CHECK(primary != task.metrics.end());
  const bool cost = eval::find_score(primary->score).is_cost;
  return "eval/downstream" + (cost ? "_" + primary->name : std::string()) + "/" + task.name + "_" +
         primary->name;
}

void add_metrics(const EvaluationPlan& plan, const EvaluationOutcome& outcome,
                 std::vector<std::pair<std::string, double>>& metrics) {
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    for (const auto& metric : outcome.tasks[i].metrics) {
      if (metric.metric == plan.tasks[i].primary_metric)
        metrics.emplace_back(metric_key(plan.tasks[i]), metric.value);
    }
  }
  const std::map<std::string, std::string> words = {{"ce_loss", "CrossEntropyLoss"},
                                                    {"ppl", "Perplexity"}};
  for (std::size_t i = 0; i < plan.suites.size(); ++i) {
    for (const auto& metric : outcome.suites[i].metrics) {
      const auto word = words.find(metric.metric);
      if (word == words.end()) continue;
      for (const auto& source : plan.suites[i].sources) {
        if (metric.scope == "source=" + source.name)
          metrics.emplace_back("eval/" + source.name + "/" + word->second, metric.value);
      }
    }
  }
}

}  // namespace

EvaluationMemory memory_of(const config::TrainConfig& config) {
  EvaluationMemory memory;
  const std::int64_t length = config.model.max_sequence_length, most = most_rows(length);
  for (const Json& keys : Json::parse(config.evaluators.text)) {
    std::optional<std::int64_t> samples;
    try {
      samples = sample_limit(EvaluatorKeys(keys, "evaluators"), config);
    } catch (const Error&) {  // told where the evaluators are made
    }
    memory.rows =
        std::max(memory.rows, samples ? std::min(*samples, most / length + 1) * length : most);
  }
  memory.rows = std::min(memory.rows, most);
  return memory;
}

Evaluators::Evaluators(const config::TrainConfig& config, const std::optional<fs::path>& tokenizer,
                       const fs::path& data_folder)
    : max_length_(config.model.max_sequence_length),
      eos_token_id_(static_cast<std::uint32_t>(config.model.eos_token_id)) {
  const Json list = Json::parse(config.evaluators.text);
  if (list.empty()) return;
  if (tokenizer) tokenizer_ = data::Tokenizer::load(*tokenizer);
  const auto catalog = eval::load_catalog();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string label =
        EvaluatorKeys(list[i], "evaluators." + std::to_string(i)).text("label", "");
    const EvaluatorKeys evaluator(list[i], "evaluators: " + label);
    const std::string type = evaluator.text("type", "lm");
    const auto samples = sample_limit(evaluator, config);
    if (type == "downstream") {
      add_task(label, samples, catalog, data_folder);
    } else if (type == "lm") {
      add_suite(label, evaluator.find("data"), samples, config);
    } else {
      evaluator.fail("`type` must be `downstream` or `lm`, got `" + type + "`");
    }
  }
}

EvaluationPlan Evaluators::empty_plan() const {
  EvaluationPlan plan;
  plan.max_length = max_length_;
  plan.eos_token_id = plan.prefix_token = eos_token_id_;
  plan.unconditional = false;  // OLMo's in-loop evaluation has no domain prompts
  return plan;
}

void Evaluators::add_task(const std::string& label, std::optional<std::int64_t> samples,
                          const eval::TaskCatalog& catalog, const fs::path& data_folder) {
  if (!tokenizer_) {
    notes_.push_back("evaluator " + label + " is left out: the tokenizer is not here");
    return;
  }
  try {
    const auto tasks = eval::select(catalog, std::vector{label}, {.task_data = data_folder}).tasks;
    if (tasks.empty())
      throw Error(ErrorKind::kUsage, "evaluators: " + label +
                                         ": is a perplexity suite, which `type: lm` evaluates from "
                                         "`data.datasets`; `type: downstream` takes tasks");
    std::optional<std::int64_t> limit;
    if (samples) limit = whole_instances(tasks.front(), *samples);
    // Tasks with the same limit share a plan, and so a queue.
    auto plan = std::ranges::find_if(plans_, [&](const EvaluationPlan& other) {
      return other.suites.empty() && other.limit == limit;
    });
    if (plan == plans_.end()) {
      plan = plans_.insert(plans_.end(), empty_plan());
      plan->limit = limit;
    }
    plan->tasks.insert(plan->tasks.end(), tasks.begin(), tasks.end());
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInput) throw;
    notes_.push_back("evaluator " + label + " is left out: " + error.what());
  }
}

void Evaluators::add_suite(const std::string& label, const Json* of_data,
                           std::optional<std::int64_t> samples, const config::TrainConfig& config) {
  const Json none = Json::object();
  const EvaluatorKeys data(of_data == nullptr ? none : *of_data, "evaluators: " + label + ": data");
  const auto dtype = dtype_of(data, config.data.memmap_dtype);
  eval::Selection selection;
  selection.add(eval::suite_of_token_files(label, data_sets(label, data), dtype));
  for (const auto& note : selection.notes()) notes_.push_back("evaluator " + note);
  if (selection.suites.empty()) return;
  auto& suite = selection.suites.front();
  const auto instances = instances_of(suite, max_length_);
  EvaluationPlan plan = empty_plan();
  if (samples) {
    const auto seed = data.find("seed") == nullptr
                          ? config.seed
                          : static_cast<std::uint64_t>(data.integer("seed", 0, 0));
    plan.only_documents = shuffled_subset(instances, *samples, seed);
  }
  plan.suites.push_back(std::move(suite));
  plans_.push_back(std::move(plan));
}

EvaluationMemory Evaluators::memory() const {
  constexpr std::int64_t kBytesOfTokenizer = 800;  // for each id, as measured with 50,277
  EvaluationMemory most;
  for (const auto& plan : plans_) {
    const EvaluationMemory memory = memory_of(plan);
    most = {std::max(most.rows, memory.rows), std::max(most.texts, memory.texts)};
  }
  if (tokenizer_)
    most.texts += kBytesOfTokenizer * static_cast<std::int64_t>(tokenizer_->vocab_size());
  return most;
}

Json Evaluators::settings() const {
  Json all = to_json(empty_plan());
  for (const auto& plan : plans_) {
    Json of_plan = to_json(plan);
    for (const char* group : {"tasks", "suites"}) {
      for (Json& entry : of_plan[group]) {
        for (const char* part : {"limit", "only_documents"})
          if (!of_plan[part].is_null()) entry[part] = of_plan[part];
        all[group].push_back(std::move(entry));
      }
    }
  }
  return all;
}

std::vector<std::pair<std::string, double>> Evaluators::run(model::Olmo& model,
                                                            const Occasion& occasion) {
  const auto* tokenizer = tokenizer_ ? &*tokenizer_ : nullptr;
  auto record = describe_evaluation(model, occasion.weights, tokenizer, settings());
  record.step = occasion.step;
  std::optional<store::RecordDatabase> own;  // metrics are made from rows, on every rank
  if (occasion.run != nullptr) {
    record.run_id = occasion.run->run_id();
    record.attempt = occasion.run->attempt();
  } else {
    own.emplace(store::kInMemory, store::OpenMode::kCreate);
  }
  store::EvaluationDb db(own ? *own : occasion.run->records());
  db.begin(record);
  const EvaluationRanks among{.ranks = &occasion.ranks, .passes = occasion.passes, .check = [&] {
                                occasion.signals.throw_if_requested("the evaluation is not whole");
                              }};
  std::vector<std::pair<std::string, double>> metrics;
  bool failed = false;
  try {
    for (const auto& plan : plans_) {
      const auto outcome = evaluate(model, tokenizer, plan, &db, {}, among);
      failed = failed || outcome.has_failures();
      add_metrics(plan, outcome, metrics);
    }
  } catch (const Error& error) {
    const bool asked =
        error.kind() == ErrorKind::kStopped || error.kind() == ErrorKind::kInterrupted;
    db.end(asked ? "interrupted" : "failed");
    if (!asked) throw;
    return {};
  }
  db.end(failed ? "failed" : "finished");
  return metrics;
}

}  // namespace olmo::evaluation

#include <algorithm>

#include <nlohmann/json.hpp>

#include "config/file.h"
#include "config/group_reader.h"
#include "config/other_words.h"
#include "core/error.h"
#include "core/text/text.h"

namespace olmo::config {
namespace {

using Kind = ConfigNode::Kind;

/// OLMo's list of evaluators, whose `data` have the rows of the config's own. What a loader would
/// do is not noted of each.
std::vector<EvaluatorConfig> read_evaluators(Findings& findings,
                                             OnMisread on_misread = OnMisread::kDefault) {
  std::vector<EvaluatorConfig> evaluators;
  const auto* list = findings.document.root.at_path("evaluators");
  if (list == nullptr || list->kind != Kind::kList) return evaluators;
  const auto notes = findings.notes;
  for (std::size_t i = 0; i < list->children.size(); ++i) {
    const ConfigNode& item = list->children[i];
    const auto path = "evaluators." + std::to_string(i);
    EvaluatorConfig& evaluator = evaluators.emplace_back();
    if (item.kind != Kind::kMap || item.find("label") == nullptr) {
      findings.errors.push_back(findings.line(&item, path, "expects a map with the key `label`"));
      findings.unread.push_back(path);
      continue;
    }
    findings.require_keys(item, path, "label type data device_eval_batch_size subset_num_batches");
    GroupReader reader(findings, item, path + ".", path + ".", on_misread);
    reader.read_key("label", evaluator.label);
    reader.read_key("type", evaluator.type);
    reader.read_group("data", "data", evaluator.data);
    reader.read_key("device_eval_batch_size", evaluator.device_eval_batch_size);
    reader.read_key("subset_num_batches", evaluator.subset_num_batches);
  }
  findings.notes = notes;
  return evaluators;
}

/// Numbers that could not be read, each with the range that the checks have for it.
void report_misread(Findings& findings) {
  if (findings.misread.empty()) return;
  std::map<std::string, std::string> ranges;
  TrainConfig beyond;
  Findings ignored{findings.document};
  GroupReader reader(ignored, findings.document.root, "", "", OnMisread::kBeyondAnyRange);
  visit_keys(beyond, reader);
  const auto evaluators = read_evaluators(ignored, OnMisread::kBeyondAnyRange);
  for (const auto& problems : {validate(beyond), problems_of(evaluators, beyond.model)})
    for (const auto& [key, message, blocks] : problems)
      ranges.emplace(key, ", which " + message.substr(0, message.rfind(", got ")));
  for (const auto& [path, line, expected, got] : findings.misread)
    findings.errors.push_back({line, findings.document.where(line) + ": `" + path + "` expects " +
                                         expected + ranges[path] + ", got " + got});
}

bool bool_at(const ConfigDocument& document, const char* path, bool& value) {
  const auto* node = document.root.at_path(path);
  if (node == nullptr || node->kind != Kind::kScalar) return false;
  const auto parsed = read_bool(node->text);
  if (parsed) value = *parsed;
  return parsed.has_value();
}

/// Old keys that OLMo itself rewrites (ModelConfig.effective_n_kv_heads, scripts/train.py,
/// update_legacy_settings).
void read_legacy_keys(Findings& findings, TrainConfig& config) {
  bool flag = false;
  if (bool_at(findings.document, "optimizer.no_decay_norm_and_bias", flag)) {
    config.optimizer.decay_norm_and_bias = !flag;
    config.optimizer.decay_embeddings = !flag;
  }
  if (bool_at(findings.document, "activation_checkpointing", flag)) {
    config.activation_checkpointing.reset();
    if (flag) config.activation_checkpointing = "whole_layer";
  }
  if (!bool_at(findings.document, "model.multi_query_attention", flag)) return;
  const auto expected = flag ? std::int64_t{1} : config.model.n_heads;
  if (config.model.n_kv_heads.value_or(expected) != expected) {
    const auto* node = findings.document.root.at_path("model.multi_query_attention");
    findings.errors.push_back(findings.line(node, "model.multi_query_attention",
                                            "contradicts `model.n_kv_heads`: it stands for " +
                                                std::to_string(expected) + ", got " +
                                                std::to_string(*config.model.n_kv_heads)));
  } else if (flag) {
    config.model.n_kv_heads = 1;
  }
}

void require_yaml_keys(Findings& findings, const TrainConfig& config) {
  for (const auto& row : key_table()) {
    if (row.key.olmo_default == nullptr || findings.document.root.at_path(row.path) != nullptr)
      continue;
    const bool matters = config.rounds_under_fsdp() && config.fsdp;
    if (row.key.rule.effect == Effect::kPrecision && !matters) continue;
    std::string ours = unstated_value(row);
    std::erase(ours, '"');
    findings.blockers.push_back(
        findings.line(nullptr, row.path,
                      "is not set; OLMo's default is " + std::string(row.key.olmo_default) +
                          ", which is not supported: give " + row.path + "=" + ours));
  }
}

/// OLMo calls its loss without the multiplier of its config (olmo/train.py, Trainer.model_forward).
void note_z_loss(Findings& findings, const TrainConfig& config) {
  constexpr double kOlmos = 1e-4;
  constexpr const char* kKey = "auxiliary_loss_multiplier";
  const auto& multiplier = config.auxiliary_loss_multiplier;
  if (!config.softmax_auxiliary_loss || !multiplier || *multiplier == kOlmos) return;
  findings.notes.push_back(findings.line(findings.document.root.at_path(kKey), kKey,
                                         "is " + number_text(*multiplier) +
                                             ", and is taken; OLMo's own trainer takes 1e-4, "
                                             "whatever is set: give " +
                                             kKey + "=1e-4 to train as it does"));
}

/// OLMo's configs put W&B's names, which have no effect here, into others: the group is null there
/// unless the command line sets it.
ConfigNode make_default_tree() {
  Json defaults = to_json(TrainConfig{});
  for (const char* name : {"project", "group", "name"}) defaults["wandb"][name] = nullptr;
  return parse_json_config(defaults.dump(), "defaults").root;
}

const ConfigNode& default_tree() {
  static const ConfigNode kTree = make_default_tree();
  return kTree;
}

void put_usual_words(ConfigNode& root) {
  for (const auto& [group, key, word, usual] : kOtherWords) {
    ConfigNode* values = root.find(group);
    ConfigNode* value = values != nullptr ? values->find(key) : nullptr;
    if (value != nullptr && value->kind == Kind::kScalar && value->text == word)
      value->text = usual;
  }
}

/// Whether a problem may only follow from a key that could not be read.
bool is_consequence(const ConfigProblem& problem, const std::vector<std::string>& unread) {
  return std::any_of(unread.begin(), unread.end(), [&](const std::string& path) {
    return problem.key == path || problem.key.starts_with(path + ".") ||
           path.starts_with(problem.key + ".") ||
           problem.message.find("`" + path + "`") != std::string::npos;
  });
}

void report_problems(Findings& findings, const std::vector<ConfigProblem>& problems) {
  for (const auto& problem : problems) {
    if (is_consequence(problem, findings.unread)) continue;
    (problem.blocks_start ? findings.blockers : findings.errors)
        .push_back(findings.line(findings.document.root.at_path(problem.key), problem.key,
                                 problem.message));
  }
}

/// Every key but the evaluators, and the old ones; what values mean to each other is not looked at.
TrainConfig read_keys(Findings& findings, ConfigDocument& document, bool is_yaml) {
  for (auto& error : resolve_references(document, default_tree()))
    findings.errors.push_back(std::move(error));
  put_usual_words(document.root);
  TrainConfig config;
  GroupReader reader(findings, document.root, "", "");
  visit_keys(config, reader);
  reader.report_unknown_keys();
  read_legacy_keys(findings, config);
  if (is_yaml) require_yaml_keys(findings, config);
  return config;
}

/// Its experiments have these parts, and none of OLMo's keys of a training.
void refuse_olmo_core(const ConfigDocument& document) {
  if (document.root.find("train_module") == nullptr || document.root.find("data_loader") == nullptr)
    return;
  throw Error(ErrorKind::kUsage,
              document.name +
                  ": is the config of an experiment of OLMo-core, expected keys of OLMo's trainer: "
                  "`checkpoint import` takes its checkpoints, and of those `checkpoint inspect "
                  "--config` shows the config in OLMo's keys");
}

void require_no_errors(Findings& findings) {
  if (!findings.errors.empty())
    throw Error(ErrorKind::kUsage, joined(sorted_texts(std::move(findings.errors)), "\n"));
}

/// A YAML file may have numbers in quotes, as OmegaConf takes them, and its JSON has them so, too.
void take_numbers_in_quotes(ConfigNode& node) {
  if (node.style == ConfigNode::Style::kJsonString) node.style = ConfigNode::Style::kQuoted;
  for (auto& child : node.children) take_numbers_in_quotes(child);
}

}  // namespace

LoadedConfig read_document(ConfigDocument document, bool is_yaml,
                           const std::vector<std::string>& overrides) {
  refuse_olmo_core(document);
  LoadedConfig loaded;
  Findings findings{document, apply_overrides(document, overrides)};
  loaded.config = read_keys(findings, document, is_yaml);
  const auto evaluators = read_evaluators(findings);
  report_misread(findings);
  note_z_loss(findings, loaded.config);
  report_problems(findings, validate(loaded.config));
  report_problems(findings, problems_of(evaluators, loaded.config.model));
  require_no_errors(findings);
  loaded.notes = sorted_texts(std::move(findings.notes));
  loaded.blockers = sorted_texts(std::move(findings.blockers));
  return loaded;
}

LoadedConfig read_model_document(ConfigDocument document, bool is_yaml) {
  LoadedConfig loaded;
  Findings findings{document};
  loaded.config = read_keys(findings, document, is_yaml);
  report_misread(findings);
  report_problems(findings, model::problems_of(loaded.config.model));
  require_no_errors(findings);
  loaded.blockers = sorted_texts(std::move(findings.blockers));
  return loaded;
}

LoadedConfig load_config(const std::filesystem::path& file,
                         const std::vector<std::string>& overrides) {
  return read_document(read_config_file(file), is_yaml_name(file.string()), overrides);
}

LoadedConfig parse_config(const std::string& text, const std::string& name,
                          const std::vector<std::string>& overrides) {
  return read_document(parse_config_document(text, name), is_yaml_name(name), overrides);
}

std::vector<EvaluatorConfig> evaluators_of(const TrainConfig& config) {
  ConfigDocument document =
      parse_json_config(R"({"evaluators":)" + config.evaluators.text + "}", "config");
  take_numbers_in_quotes(document.root);
  Findings findings{document};
  auto evaluators = read_evaluators(findings);
  report_misread(findings);
  report_problems(findings, problems_of(evaluators, config.model));
  require_no_errors(findings);
  return evaluators;
}

void require_no_blockers(const LoadedConfig& loaded) {
  if (!loaded.blockers.empty()) throw Error(ErrorKind::kUsage, joined(loaded.blockers, "\n"));
}

}  // namespace olmo::config

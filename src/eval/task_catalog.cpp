#include "eval/task_catalog.h"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text/text.h"
#include "data/python_text.h"
#include "eval/rendering.h"

namespace olmo::eval {
namespace {

constexpr int kDefinitionFormat = 1;  // part of every definition's digest
constexpr std::string_view kAnswersSuffix = "_bpb";

struct Convention {
  std::string_view name;
  Encoding encoding;
  std::vector<MetricDefinition> metrics;
};

/// What every convention reports, under OLMo's names, and then `others`.
std::vector<MetricDefinition> metrics_and(std::vector<MetricDefinition> others) {
  std::vector<MetricDefinition> metrics = {{"acc", "sum"},
                                           {"len_norm", "per_char"},
                                           {"per_byte", "per_byte"},
                                           {"per_token", "per_token"},
                                           {"pmi_dc", "pmi"},
                                           {"ce_loss", "ce_loss"},
                                           {"bpb", "bpb"}};
  metrics.insert(metrics.end(), others.begin(), others.end());
  return metrics;
}

const std::vector<Convention>& conventions() {
  static const std::vector<Convention> kConventions = {
      // OLMo's own pmi_dc divides by a sum of logits, which prefers the wrong option.
      {"olmo", Encoding::kSeparate, metrics_and({{"pmi_dc_olmo", "pmi_olmo"}})},
      {"oe", Encoding::kSeparate, metrics_and({})},
      {"lm-eval", Encoding::kJoint,
       metrics_and(
           {{"acc_norm", "per_char"}, {"acc_bytes", "per_byte"}, {"acc_mutual_info", "pmi"}})},
  };
  return kConventions;
}
const std::vector<MetricDefinition> kAnswerMetrics = {{"ce_loss", "ce_loss"}, {"bpb", "bpb"}};

// Keys of a rendering, and those that each level adds to them.
const std::set<std::string> kRenderingKeys = {
    "source",  "requests",       "fields",        "filters", "native_id", "options",
    "context", "continuation",   "unconditional", "label",   "prompts",   "few_shot",
    "metrics", "primary_metric", "answers_only",  "note"};
const std::set<std::string> kTaskKeys = {"description", "category", "aliases", "each"};
const std::set<std::string> kFileKeys = {"tasks", "conventions", "variants"};
const std::set<std::string> kConventionKeys = {"variant"};
const std::set<std::string> kVariantKeys = {"convention", "aliases"};
const std::set<std::string> kSuiteKeys = {"kind", "description", "convention", "tasks"};

// Keys whose values are of one kind, at every level; the others are looked at when a rendering is
// made of them.
const std::set<std::string> kTexts = {"description", "category",       "note",       "source",
                                      "requests",    "primary_metric", "convention", "variant"};
const std::set<std::string> kTextLists = {"aliases", "metrics"};
const std::set<std::string> kMaps = {"tasks", "conventions", "variants"};

[[noreturn]] void refuse(const std::string& origin, const std::string& key,
                         const std::string& what) {
  throw Error(ErrorKind::kUsage, origin + ": `" + key + "`: " + what);
}

bool is_text_list(const Json& value) {
  return value.is_array() &&
         std::ranges::all_of(value, [](const Json& one) { return one.is_string(); });
}

void check_keys(const Json& object, const std::string& origin, const std::string& where,
                const std::vector<const std::set<std::string>*>& allowed) {
  if (!object.is_object()) refuse(origin, where, "must be an object");
  std::vector<std::string> known;
  for (const auto* keys : allowed) known.insert(known.end(), keys->begin(), keys->end());
  for (const auto& [key, value] : object.items()) {
    const std::string place = where.empty() ? key : where + "." + key;
    if (std::ranges::find(known, key) == known.end()) {
      const auto close = nearest(key, known);
      refuse(origin, place,
             "is no key of a task" + (close ? "; is `" + *close + "` meant?" : std::string()));
    }
    if (kTexts.contains(key) && !value.is_string()) refuse(origin, place, "must be a text");
    if (kTextLists.contains(key) && !is_text_list(value))
      refuse(origin, place, "must be a list of texts");
    if (kMaps.contains(key) && !value.is_object()) refuse(origin, place, "must be an object");
  }
}

void check_suite(const DefinitionFile& file) {
  const Json& suite = *file.content;
  for (const auto& [key, value] : suite.items()) {
    if (!kSuiteKeys.contains(key)) refuse(file.origin, key, "is no key of a suite of tasks");
    if (kTexts.contains(key) && !value.is_string()) refuse(file.origin, key, "must be a text");
  }
  const Json tasks = suite.value("tasks", Json());
  if (!is_text_list(tasks) || tasks.empty())
    refuse(file.origin, "tasks", "must be a list with the name of at least one task");
}

std::string text_of(const Json& object, const std::string& key, const std::string& origin,
                    const std::string& absent = "") {
  if (!object.contains(key)) return absent;
  if (!object[key].is_string()) refuse(origin, key, "must be a text");
  return object[key].get<std::string>();
}

bool answers_only_of(const Json& keys, const std::string& origin) {
  const Json only = keys.value("answers_only", Json(false));
  if (!only.is_boolean()) refuse(origin, "answers_only", "must be true or false");
  return only.get<bool>();
}

std::vector<std::string> texts_of(const Json& object, const std::string& key,
                                  const std::string& origin) {
  const Json list = object.value(key, Json::array());
  if (!is_text_list(list)) refuse(origin, key, "must be a list of texts");
  return list.get<std::vector<std::string>>();
}

/// OLMo-core's labels: `X_bpb_5shot` is OLMo's `X_rc_5shot_bpb`, and of `X_fast` the letters of all
/// options are scored in one pass, which changes none of the numbers.
std::string in_olmos_spelling(std::string label) {
  constexpr std::string_view kFast = "_fast", kBpb = "bpb", kRc = "rc";
  if (label.ends_with(kFast)) label.resize(label.size() - kFast.size());
  for (const std::string_view form : {"_bpb_5shot", "_bpb_var"}) {
    if (!label.ends_with(form)) continue;
    label.replace(label.size() - form.size() + 1, kBpb.size(), kRc);
    label += kAnswersSuffix;
  }
  return label;
}

std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

/// `origin`: the file that names it; empty: it was asked for.
const Convention& find_convention(std::string_view name, const std::string& origin = {}) {
  std::vector<std::string> known;
  for (const auto& convention : conventions()) {
    if (convention.name == name) return convention;
    known.emplace_back(convention.name);
  }
  throw Error(ErrorKind::kUsage, (origin.empty() ? "" : origin + ": ") +
                                     "there is no convention `" + std::string(name) +
                                     "`; there are " + joined(known));
}

/// `over` laid over `under`: a key of `over` replaces the whole value.
Json overlay(Json under, const Json& over) {
  for (const auto& [key, value] : over.items()) under[key] = value;
  return under;
}

/// A source's name for each of the values that `each` lists.
std::vector<std::string> expand(const std::string& source, const Json& keys,
                                const std::string& task, const std::string& origin) {
  const std::string name = data::replace(source, "{task}", task);
  if (!keys.contains("each")) return {name};
  const Json& each = keys["each"];
  if (!each.is_object() || each.size() != 1)
    refuse(origin, "each", "must be an object of one list");
  const std::string parameter = each.begin().key();
  std::vector<std::string> names;
  for (const auto& value : texts_of(each, parameter, origin)) {
    names.push_back(data::replace(name, "{" + parameter + "}", value));
  }
  return names;
}

bool has_shots(const Json& keys) {
  const Json prompts = keys.value("prompts", Json::array());
  return std::any_of(prompts.begin(), prompts.end(), [](const Json& prompt) {
    return prompt.is_object() && prompt.contains("shots");
  });
}

/// The part of a rendering's keys that decides the requests.
Json definition_of(const Json& keys, const Convention& convention, const std::string& task,
                   const std::string& origin) {
  Json definition = {{"format", kDefinitionFormat},
                     {"encoding", convention.encoding == Encoding::kJoint ? "joint" : "separate"},
                     {"answers_only", answers_only_of(keys, origin)}};
  if (keys.contains("requests")) {
    definition["requests"] = true;
    definition["sources"] = expand(text_of(keys, "requests", origin), keys, task, origin);
    return definition;
  }
  if (!keys.contains("source")) refuse(origin, "source", "is missing");
  definition["sources"] = expand(text_of(keys, "source", origin), keys, task, origin);
  for (const char* key : {"fields", "filters", "native_id", "options", "context", "continuation",
                          "unconditional", "label", "prompts"}) {
    if (keys.contains(key) && !keys[key].is_null()) definition[key] = keys[key];
  }
  if (keys.contains("few_shot") && has_shots(keys)) {
    const Json& few_shot = keys["few_shot"];
    if (!few_shot.is_object()) refuse(origin, "few_shot", "must be an object");
    definition["shots"] = expand(text_of(few_shot, "source", origin), keys, task, origin);
    definition["separator"] = text_of(few_shot, "separator", origin, "\n\n");
  }
  return definition;
}

std::vector<MetricDefinition> metrics_of(const Json& keys, const Convention& convention,
                                         const std::string& origin) {
  const bool answers_only = answers_only_of(keys, origin);
  auto all = answers_only ? kAnswerMetrics : convention.metrics;
  if (!keys.contains("metrics") || answers_only) return all;
  all.push_back({"f1", "f1"});  // of a task whose first option is the one that is looked for
  std::vector<MetricDefinition> metrics;
  for (const auto& name : texts_of(keys, "metrics", origin)) {
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const MetricDefinition& one) { return one.name == name; });
    if (found == all.end())
      refuse(origin, "metrics", "`" + name + "` is no metric of the convention");
    metrics.push_back(*found);
  }
  return metrics;
}

void set_metrics(Task& task, const Json& keys, const Convention& convention) {
  task.metrics = metrics_of(keys, convention, task.origin);
  const bool answers_only = answers_only_of(keys, task.origin);
  task.primary_metric = text_of(keys, "primary_metric", task.origin, answers_only ? "bpb" : "acc");
  const bool known = std::ranges::any_of(
      task.metrics, [&](const auto& metric) { return metric.name == task.primary_metric; });
  if (!known) {
    refuse(task.origin, "primary_metric",
           "`" + task.primary_metric + "` is none of the task's metrics");
  }
  if (task.primary_metric == "f1")
    refuse(task.origin, "primary_metric", "`f1` ranks no options, so it can be no primary metric");
}

void set_files(Task& task, const Json& definition, const std::filesystem::path& parent,
               DataFiles& data_files) {
  Sha256 digest;
  const auto add = [&](const std::string& name, std::vector<std::filesystem::path>& paths) {
    for (auto& file : data_files.find(name, definition.value("requests", false), parent)) {
      digest.update(file.digest.bytes.data(), file.digest.bytes.size());
      paths.push_back(std::move(file.path));
    }
  };
  const Json shots = definition.value("shots", Json::array());
  for (std::size_t i = 0; i < definition["sources"].size(); ++i) {
    TaskSource source;
    add(definition["sources"][i].get<std::string>(), source.files);
    if (!shots.empty()) add(shots[i].get<std::string>(), source.shots);
    task.sources.push_back(std::move(source));
  }
  task.data_digest = digest.finish();
}

}  // namespace

TaskCatalog::TaskCatalog(std::vector<DefinitionFile> definitions)
    : definitions_(std::move(definitions)) {
  for (const auto& file : definitions_) {
    if (file.folder != "tasks") continue;
    check_keys(*file.content, file.origin, "", {&kRenderingKeys, &kTaskKeys, &kFileKeys});
    Json shared = *file.content;
    const Json tasks = shared.value("tasks", Json::object({{file.name, Json::object()}}));
    shared.erase("tasks");
    for (const auto& [name, keys] : tasks.items()) {
      check_keys(keys, file.origin, "tasks." + name, {&kRenderingKeys, &kTaskKeys});
      add_task(name, {.origin = file.origin, .parent = file.parent, .keys = overlay(shared, keys)});
    }
  }
  for (const auto& file : definitions_) {
    if (file.folder == "suites" && file.kind() == kSuiteKind) {
      check_suite(file);
      add_name(file.name, {.task = "", .variant = "", .convention = ""}, file.origin);
    }
  }
}

void TaskCatalog::add_name(const std::string& name, const Target& target,
                           const std::string& origin) {
  if (!names_.emplace(name, target).second) {
    throw Error(ErrorKind::kUsage, origin + ": the name `" + name + "` is taken already");
  }
}

void TaskCatalog::add_task(const std::string& name, Entry entry) {
  const Json conventions = entry.keys->value("conventions", Json::object());
  const Json variants = entry.keys->value("variants", Json::object());
  std::vector<std::string> stems = texts_of(*entry.keys, "aliases", entry.origin);
  stems.push_back(name);
  for (const auto& stem : stems) {
    add_name(stem, {.task = name, .variant = "", .convention = ""}, entry.origin);
  }
  const auto add_variant = [&](const std::string& variant, const Target& target) {
    for (const auto& stem : stems) {
      add_name(stem + ":" + variant, target, entry.origin);
      add_name(stem + "_" + variant, target, entry.origin);
    }
  };
  for (const auto& [convention, keys] : conventions.items()) {
    find_convention(convention, entry.origin);
    check_keys(keys, entry.origin, "conventions." + convention,
               {&kRenderingKeys, &kConventionKeys});
    if (keys.contains("variant")) {
      add_variant(text_of(keys, "variant", entry.origin),
                  {.task = name, .variant = "", .convention = convention});
    }
  }
  for (const auto& [variant, keys] : variants.items()) {
    check_keys(keys, entry.origin, "variants." + variant, {&kRenderingKeys, &kVariantKeys});
    const Target target{.task = name,
                        .variant = variant,
                        .convention = text_of(keys, "convention", entry.origin, "oe")};
    find_convention(target.convention, entry.origin);
    add_variant(variant, target);
    for (const auto& alias : texts_of(keys, "aliases", entry.origin)) add_variant(alias, target);
  }
  entries_.emplace(name, std::move(entry));
}

std::vector<TaskSummary> TaskCatalog::tasks() const {
  std::vector<TaskSummary> summaries;
  for (const auto& [name, entry] : entries_) {
    summaries.push_back({.name = name,
                         .description = text_of(*entry.keys, "description", entry.origin),
                         .category = text_of(*entry.keys, "category", entry.origin),
                         .aliases = texts_of(*entry.keys, "aliases", entry.origin),
                         .conventions = keys_of(entry.keys->value("conventions", Json::object())),
                         .variants = keys_of(entry.keys->value("variants", Json::object()))});
  }
  return summaries;
}

std::vector<SuiteSummary> TaskCatalog::suites() const {
  std::vector<SuiteSummary> summaries;
  for (const auto& file : definitions_) {
    if (file.folder != "suites") continue;
    summaries.push_back({.name = file.name,
                         .kind = file.kind(),
                         .description = text_of(*file.content, "description", file.origin),
                         .tasks = file.kind() == kSuiteKind
                                      ? texts_of(*file.content, "tasks", file.origin)
                                      : std::vector<std::string>()});
  }
  return summaries;
}

const DefinitionFile* TaskCatalog::perplexity_suite(std::string_view name) const {
  const auto found = std::ranges::find_if(definitions_, [&](const auto& file) {
    return file.folder == "suites" && file.name == name && file.kind() == "perplexity";
  });
  return found == definitions_.end() ? nullptr : &*found;
}

TaskCatalog::Target TaskCatalog::find(const std::string& asked, bool& answers_only) const {
  const std::string name = names_.contains(asked) ? asked : in_olmos_spelling(asked);
  auto found = names_.find(name);
  answers_only = found == names_.end() && name.ends_with(kAnswersSuffix);
  if (answers_only) found = names_.find(name.substr(0, name.size() - kAnswersSuffix.size()));
  if (found != names_.end() && !(answers_only && found->second.task.empty())) return found->second;
  std::vector<std::string> known;
  for (const auto& [one, target] : names_) known.push_back(one);
  const auto close = nearest(asked, known);
  throw Error(ErrorKind::kUsage,
              "there is no task `" + asked + "`" + (close ? "; is `" + *close + "` meant?" : ""));
}

Task TaskCatalog::resolve_one(const std::string& name, std::string_view convention,
                              DataFiles& data_files) const {
  bool answers_only = false;
  const Target target = find(name, answers_only);
  const Entry& entry = entries_.at(target.task);
  const std::string_view wanted = target.convention.empty() ? convention : target.convention;
  const Convention& used = find_convention(wanted);
  const Json& own =
      entry.keys->value(target.variant.empty() ? "conventions" : "variants", Json::object());
  const std::string part = target.variant.empty() ? std::string(used.name) : target.variant;
  if (!own.contains(part)) {
    std::vector<std::string> asked = keys_of(own);
    for (const auto& variant : keys_of(entry.keys->value("variants", Json::object()))) {
      asked.push_back(target.task + ":" + variant);
    }
    throw Error(ErrorKind::kUsage, "the task `" + name + "` is not defined under the convention " +
                                       part + "; " + entry.origin + " has " + joined(asked));
  }
  Json keys = overlay(*entry.keys, own[part]);
  if (answers_only) {
    keys["answers_only"] = true;
    keys["primary_metric"] = "bpb";
  }
  const Json definition = definition_of(keys, used, target.task, entry.origin);
  if (!definition.contains("requests")) compile_rendering(definition, entry.origin);
  Task task;
  task.name = name;
  task.id = target.task + (target.variant.empty() ? "" : ":" + target.variant) +
            (answers_only ? "_bpb" : "");
  task.convention = std::string(used.name);
  task.category = text_of(keys, "category", entry.origin);
  task.encoding = used.encoding;
  task.origin = entry.origin;
  task.definition = definition.dump();
  task.definition_digest = sha256(task.definition);
  set_metrics(task, keys, used);
  set_files(task, definition, entry.parent, data_files);
  return task;
}

std::vector<Task> TaskCatalog::resolve(std::span<const std::string> names,
                                       std::string_view convention,
                                       const std::filesystem::path& data_folder) const {
  find_convention(convention);
  DataFiles data_files(data_folder);
  std::vector<Task> tasks;
  std::set<std::string> taken;
  const auto add = [&](const std::string& name, std::string_view under) {
    if (taken.insert(name).second) tasks.push_back(resolve_one(name, under, data_files));
  };
  for (const auto& name : names) {
    const auto found = names_.find(name);
    if (found == names_.end() || !found->second.task.empty()) {
      add(name, convention);
      continue;
    }
    const DefinitionFile& suite = find_suite(definitions_, name, kSuiteKind);
    const std::string under =
        text_of(*suite.content, "convention", suite.origin, std::string(convention));
    find_convention(under, suite.origin);
    for (const auto& task : texts_of(*suite.content, "tasks", suite.origin)) add(task, under);
  }
  return tasks;
}

TaskCatalog load_catalog(const std::optional<std::filesystem::path>& folder,
                         std::span<const std::filesystem::path> suite_files) {
  return TaskCatalog(read_definitions(folder, suite_files));
}

}  // namespace olmo::eval

#include "eval/rendering.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text/number.h"

namespace olmo::eval {
namespace {

class Compiler {
 public:
  Compiler(const Json& keys, const std::string& origin) : keys_(keys), origin_(origin) {
    const Json filters = keys.value("filters", Json::object());
    if (!filters.is_object()) refuse("filters", "must be an object");
    for (const auto& [name, chain] : filters.items()) {
      own_filters_[name] = parse_filters(text(chain, "filters"), {}, where("filters." + name));
    }
  }

  Rendering compile() {
    Rendering rendering{
        .fields = fields(),
        .native_id = std::nullopt,
        .options = text_list(required("options"), "options"),
        .context = text_template(required("context"), "context"),
        .continuation = text_template(required("continuation"), "continuation"),
        .unconditional = unconditional(),
        .label = label(),
        .prompts = prompts(),
        .separator = text(keys_.value("separator", Json("")), "separator"),
        .answers_only = keys_.value("answers_only", false),
        .columns = {},
    };
    if (keys_.contains("native_id")) {
      rendering.native_id = text_template(keys_["native_id"], "native_id");
    }
    rendering.columns = columns(rendering);
    return rendering;
  }

 private:
  [[nodiscard]] std::string where(const std::string& key) const {
    return origin_ + ": `" + key + "`";
  }
  [[noreturn]] void refuse(const std::string& key, const std::string& what) const {
    throw Error(ErrorKind::kUsage, where(key) + ": " + what);
  }
  [[nodiscard]] const Json& required(const std::string& key) const {
    if (!keys_.contains(key)) refuse(key, "is missing");
    return keys_[key];
  }
  [[nodiscard]] std::string text(const Json& value, const std::string& key) const {
    if (!value.is_string()) refuse(key, "must be a text");
    return value.get<std::string>();
  }

  Template text_template(const Json& value, const std::string& key) {
    Template made(text(value, key), own_filters_, where(key));
    made.add_columns(columns_);
    return made;
  }

  std::vector<Template> templates(const Json& values, const std::string& key) {
    std::vector<Template> made;
    for (const auto& value : values) made.push_back(text_template(value, key));
    if (made.empty()) refuse(key, "must not be empty");
    return made;
  }

  TextList text_list(const Json& value, const std::string& key) {
    if (value.is_array()) return {.list = std::nullopt, .each = templates(value, key)};
    auto list = text_template(value, key);
    if (!list.is_field()) refuse(key, "must be a list, or one field that is a list");
    return {.list = std::move(list), .each = {}};
  }

  std::vector<std::pair<std::string, Template>> fields() {
    std::vector<std::pair<std::string, Template>> made;
    const Json all = keys_.value("fields", Json::object());
    if (!all.is_object()) refuse("fields", "must be an object");
    for (const auto& [name, value] : all.items()) {
      made.emplace_back(name, text_template(value, "fields." + name));
    }
    return made;
  }

  std::vector<Template> unconditional() {
    if (!keys_.contains("unconditional")) return {};
    const Json& value = keys_["unconditional"];
    return templates(value.is_array() ? value : Json::array({value}), "unconditional");
  }

  LabelRule label() {
    const Json& value = required("label");
    LabelRule rule;
    if (value.is_number_integer()) {
      if (!value.is_number_unsigned() || value.get<std::uint64_t>() > INT64_MAX)
        refuse("label", "must be a number from 0, got " + value.dump());
      rule.fixed = value.get<std::int64_t>();
    } else if (value.is_object()) {
      if (!value.contains("value") || !value.contains("in"))
        refuse("label", "needs `value` and `in`");
      rule.value = text_template(value["value"], "label.value");
      rule.in = text_list(value["in"], "label.in");
      const Json aliases = value.value("aliases", Json::object());
      for (const auto& [alias, meant] : aliases.items()) {
        rule.aliases[alias] = text(meant, "label.aliases");
      }
    } else {
      rule.value = text_template(value, "label");
    }
    return rule;
  }

  std::vector<Prompt> prompts() {
    std::vector<Prompt> made;
    for (const auto& value : keys_.value("prompts", Json::array({Json::object()}))) {
      if (!value.is_object()) refuse("prompts", "must be a list of objects");
      Prompt prompt;
      if (value.contains("instruction")) {
        prompt.instruction = text_template(value["instruction"], "prompts.instruction");
      }
      const Json shots = value.value("shots", Json(0U));
      if (!shots.is_number_unsigned()) refuse("prompts.shots", "must be a number from 0");
      prompt.shots = shots.get<std::size_t>();
      made.push_back(std::move(prompt));
    }
    if (made.empty()) refuse("prompts", "must not be empty");
    return made;
  }

  /// The row's own columns, once each.
  std::vector<std::string> columns(const Rendering& rendering) {
    std::ranges::sort(columns_);
    columns_.erase(std::unique(columns_.begin(), columns_.end()), columns_.end());
    std::erase_if(columns_, [&](const std::string& name) {
      return name == "option" || std::any_of(rendering.fields.begin(), rendering.fields.end(),
                                             [&](const auto& made) { return made.first == name; });
    });
    return columns_;
  }

  const Json& keys_;
  const std::string& origin_;
  FilterChains own_filters_;
  std::vector<std::string> columns_;
};

std::vector<std::string> render_all(const TextList& list, const TemplateScope& scope) {
  if (list.list) return list.list->render_list(scope);
  std::vector<std::string> texts;
  for (const auto& one : list.each) texts.push_back(one.render(scope));
  return texts;
}

[[noreturn]] void refuse_label(const TemplateScope& scope, const std::string& what) {
  throw Error(ErrorKind::kInput, std::string(scope.file) + ", row " + std::to_string(scope.index) +
                                     ": the label " + what);
}

std::int64_t label_of(const LabelRule& rule, const TemplateScope& scope) {
  if (rule.fixed) return *rule.fixed;
  std::string value = rule.value->render(scope);
  if (const auto meant = rule.aliases.find(value); meant != rule.aliases.end())
    value = meant->second;
  if (rule.in) {
    const auto known = render_all(*rule.in, scope);
    const auto found = std::ranges::find(known, value);
    if (found == known.end())
      refuse_label(scope, "`" + value + "` is none of those that the task knows");
    return found - known.begin();
  }
  const auto place = parse_number<std::int64_t>(value);
  if (!place) refuse_label(scope, "`" + value + "` is not a number");
  return *place;
}

/// The scope of a row, with the fields that the definition makes of it.
class RowScope {
 public:
  RowScope(const Rendering& rendering, const Json& row, std::string_view file, std::size_t index) {
    scope_ = {.row = &row, .made = nullptr, .option = nullptr, .file = file, .index = index};
    for (const auto& [name, made] : rendering.fields) made_[name] = made.render(scope_);
    scope_.made = &made_;
  }
  RowScope(const RowScope&) = delete;
  RowScope& operator=(const RowScope&) = delete;

  [[nodiscard]] const TemplateScope& get() const { return scope_; }
  [[nodiscard]] TemplateScope with_option(const std::string& option) const {
    TemplateScope scope = scope_;
    scope.option = &option;
    return scope;
  }

 private:
  std::map<std::string, std::string> made_;
  TemplateScope scope_;
};

/// The domain prompt of an option.
std::optional<std::string> render_unconditional(const Rendering& rendering,
                                                const TemplateScope& scope) {
  std::optional<std::string> text;
  for (const auto& one : rendering.unconditional) {
    text = one.render(scope);
    if (!text->empty()) break;
  }
  return text;
}

}  // namespace

Rendering compile_rendering(const Json& keys, const std::string& origin) {
  return Compiler(keys, origin).compile();
}

std::vector<std::string> render_shots(const Rendering& rendering, const std::vector<Json>& rows,
                                      std::string_view file) {
  std::size_t most = 0;
  for (const auto& prompt : rendering.prompts) most = std::max(most, prompt.shots);
  std::vector<std::string> shots = {""};
  for (std::size_t i = 0; i < std::min(most, rows.size()); ++i) {
    const Example shot = render_example(rendering, rows[i], Prompt{}, {""}, file, i);
    const Option& right = shot.options[static_cast<std::size_t>(shot.label)];
    shots.push_back(shots.back() + right.context + right.continuation + rendering.separator);
  }
  return shots;
}

Example render_example(const Rendering& rendering, const Json& row, const Prompt& prompt,
                       const std::vector<std::string>& shots, std::string_view file,
                       std::size_t index) {
  const RowScope scope(rendering, row, file, index);
  const auto options = render_all(rendering.options, scope.get());
  Example example;
  example.label = label_of(rendering.label, scope.get());
  if (example.label < 0 || static_cast<std::size_t>(example.label) >= options.size()) {
    refuse_label(scope.get(), std::to_string(example.label) + " is none of the " +
                                  std::to_string(options.size()) + " options");
  }
  if (rendering.native_id) example.native_id = rendering.native_id->render(scope.get());
  std::string before = prompt.instruction ? prompt.instruction->render(scope.get()) : "";
  before += shots[std::min(prompt.shots, shots.size() - 1)];
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (rendering.answers_only && i != static_cast<std::size_t>(example.label)) continue;
    const TemplateScope with_option = scope.with_option(options[i]);
    example.options.push_back({.context = before + rendering.context.render(with_option),
                               .continuation = rendering.continuation.render(with_option),
                               .unconditional = render_unconditional(rendering, with_option)});
  }
  if (rendering.answers_only) example.label = 0;
  return example;
}

}  // namespace olmo::eval

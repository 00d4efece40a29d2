#include "report/record/asked.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "core/files/recorded_json.h"

namespace olmo::report {
namespace {

std::optional<std::int64_t> whole_number(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

/// `others`: what the settings have for all.
Asked asked_of(const Json& part, const Asked& others) {
  Asked asked = others;
  if (const auto limit = whole_number(part, "limit")) asked.limit = limit;
  if (const auto length = whole_number(part, "max_length")) asked.max_length = length;
  const auto documents = part.find("only_documents");
  if (documents != part.end() && documents->is_array())
    asked.limit = static_cast<std::int64_t>(documents->size());
  return asked;
}

}  // namespace

bool asks_more(const Asked& one, const Asked& other) {
  return other.limit && (!one.limit || *one.limit > *other.limit);
}

AskedParts::AskedParts(const std::string& text) {
  const Json settings = recorded_json(text);
  if (!settings.is_object()) return;
  others_ = asked_of(settings, {});
  Asked task = others_, suite = others_;
  task.first_token = whole_number(settings, "prefix_token");
  suite.first_token = whole_number(settings, "eos_token_id");
  // Which of two lengths a task has is told by the task, in newer records.
  const auto olmo = whole_number(settings, "olmo_max_length");
  if (olmo && olmo != others_.max_length) task.max_length.reset();
  for (const auto& [group, of_group] : {std::pair("tasks", task), std::pair("suites", suite)}) {
    for (const Json& part : settings.value(group, Json::array())) {
      if (part.is_object() && part.value("name", Json()).is_string())
        parts_.insert_or_assign(part["name"].get<std::string>(), asked_of(part, of_group));
    }
  }
}

Asked AskedParts::of(const std::string& name) const {
  const auto found = parts_.find(name);
  return found == parts_.end() ? others_ : found->second;
}

}  // namespace olmo::report

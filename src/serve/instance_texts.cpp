#include "serve/instance_texts.h"

#include <algorithm>

#include "core/error.h"
#include "data/public/fetch.h"
#include "eval/asked.h"

namespace olmo::serve {
namespace {

/// Tasks whose texts are kept, of some tens of megabytes each.
constexpr std::size_t kKeptTexts = 4;

InstanceTexts::Found render(const std::string& task, const std::string& convention) {
  try {
    return {std::make_shared<const eval::LoadedTask>(eval::render_again(
                eval::load_catalog(std::nullopt), task, convention, data::default_data_folder())),
            ""};
  } catch (const Error& error) {
    return {nullptr, error.what()};
  }
}

}  // namespace

InstanceTexts::Found InstanceTexts::find(const std::string& task, const std::string& convention) {
  const std::string name = convention + "\n" + task;
  const std::lock_guard held(mutex_);
  const auto known =
      std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.name == name; });
  if (known != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, known);
    return kept_.front().found;
  }
  Found found = render(task, convention);
  if (!found.task) return found;  // the data may be fetched meanwhile
  kept_.push_front({name, found});
  if (kept_.size() > kKeptTexts) kept_.pop_back();
  return found;
}

}  // namespace olmo::serve

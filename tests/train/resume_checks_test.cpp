#include "train/resume_checks.h"

#include <nlohmann/json.hpp>

#include "support/catch.h"

using olmo::Json;
using olmo::train::differences;
using olmo::train::with_new_keys;

TEST_CASE("a changed, an added and a removed key are named with both values", "[train]") {
  const Json before = {{"a", 1}, {"nested", {{"lr", 0.5}, {"gone", true}}}, {"same", {1, 2}}};
  const Json now = {{"a", 2}, {"nested", {{"lr", 0.25}}}, {"same", {1, 2}}, {"new", "x"}};
  const auto found = differences(before, now);
  const std::vector<std::string> expected = {"`a` was 1, is 2", "`nested.gone` was true, is null",
                                             "`nested.lr` was 0.5, is 0.25",
                                             "`new` was null, is \"x\""};
  CHECK(found == expected);
  CHECK(differences(before, before).empty());
}

TEST_CASE("a key that came after a config was recorded is no difference", "[train]") {
  const Json recorded = {{"max_duration", 3}, {"seed", 5}};
  const Json now = with_new_keys(recorded);
  CHECK(now.at("restore_dataloader") == true);
  CHECK(now.at("max_duration") == 3);
  CHECK(differences(now, with_new_keys(now)).empty());
  const Json unreadable = {{"a key of a newer version", 1}};
  CHECK(with_new_keys(unreadable) == unreadable);
}

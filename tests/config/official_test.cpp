#include <cstdlib>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "config/train_config.h"
#include "support/catch.h"
#include "train/plan.h"

using namespace olmo;
using namespace olmo::config;
namespace fs = std::filesystem;

namespace {

/// What every official file of OLMo must do: load unchanged, say what it needs, and resolve to
/// itself.
void check_official(const fs::path& file) {
  INFO(file);
  const auto loaded = load_config(file);
  CHECK_FALSE(loaded.notes.empty());
  CHECK(to_json(parse_config(to_json(loaded.config).dump(), "again.json").config) ==
        to_json(loaded.config));
  CHECK_FALSE(train::to_text(train::make_plan(loaded, std::nullopt)).empty());
  // The only things that stand between it and a run here are files and where to save.
  const auto ready =
      load_config(file, {"data.datasets=null", "data.paths=[tokens.npy]", "load_path=null",
                         "save_folder=run", "data.label_mask_paths=null"});
  for (const auto& blocker : ready.blockers) UNSCOPED_INFO(blocker);
  CHECK(ready.blockers.empty());
}

}  // namespace

TEST_CASE("a YAML with OLMo's constructs loads unchanged", "[config]") {
  const auto file = fs::path(OLMO_TEST_DATA) / "train" / "official_like.yaml";
  check_official(file);
  const auto loaded = load_config(file);
  const auto& config = loaded.config;
  CHECK(config.save_folder == "//official-like");
  CHECK(config.eval_interval == 1000);
  CHECK(config.device_eval_batch_size == 8);
  CHECK(config.scheduler.t_max == 3e12);
  CHECK(config.scheduler.grad_clip_warmup_steps == 2097152000.0);
  CHECK(config.save_overwrite);
  CHECK_FALSE(config.save_interval_unsharded);
  CHECK(config.max_duration == olmo::optim::Duration{.value = 2'000'000'000'000,
                                                     .unit = olmo::optim::Duration::Unit::kTokens});
  REQUIRE(config.data.instance_filter);
  CHECK(olmo::Json::parse(config.evaluators.text)[1]["label"] == "piqa");
  CHECK(config.mixed_precision() == olmo::MixedPrecision::kMixed);
  REQUIRE(loaded.blockers.size() == 1);
  CHECK(loaded.blockers[0].find("`data.paths` names 2 URLs") != std::string::npos);
}

TEST_CASE("all of OLMo's own configs load unchanged", "[.golden]") {
  const char* folder = std::getenv("OLMO_CONFIGS_DIR");  // configs/ of OLMo's repository
  if (folder == nullptr) return;
  int count = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto name = entry.path().filename().string();
    if (!entry.is_directory()) continue;
    for (const auto& file : fs::directory_iterator(entry.path())) {
      if (file.path().extension() != ".yaml") continue;
      check_official(file.path());
      ++count;
    }
  }
  CHECK(count > 15);
}

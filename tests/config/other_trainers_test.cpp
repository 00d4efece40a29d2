#include "config/other_trainers.h"

#include "support/catch.h"

using namespace olmo::config;

namespace {

MismatchClass mismatch_of(const char* path) { return rule_of(path).mismatch; }

}  // namespace

TEST_CASE("names, places and seeds of another trainer's run change no training", "[config]") {
  for (const char* path :
       {"transformers.output_dir", "transformers.seed", "transformers.logging_steps",
        "transformers.hub_model_id", "transformers.fsdp_config.xla", "output_dir",
        "olmo_core.run_name", "olmo_core.init_seed", "olmo_core.launch.num_nodes",
        "olmo_core.trainer.callbacks.wandb.name", "olmo_core.train_module.dp_config.name"}) {
    INFO(path);
    CHECK(mismatch_of(path) == MismatchClass::kBenign);
  }
}

TEST_CASE("what another trainer's key may change, or is not known, stays a confound", "[config]") {
  for (const char* path :
       {"transformers.learning_rate", "transformers.max_steps", "transformers.bf16",
        "transformers.per_device_train_batch_size", "transformers.deepspeed.bf16.enabled",
        "transformers.logit_scale", "transformers.max_length", "transformers", "olmo_core",
        "olmo_core.train_module.optim.lr", "olmo_core.train_module.dp_config.param_dtype",
        "olmo_core.trainer.callbacks.batch_size_scheduler.batch_sizes",
        "olmo_core.data_loader.global_batch_size", "olmo_core.run_name_of_another",
        "olmo_core.output_dir"}) {
    INFO(path);
    CHECK(mismatch_of(path) == MismatchClass::kConfound);
  }
}

TEST_CASE("OLMo's own keys keep their rules", "[config]") {
  CHECK(mismatch_of("fsdp.precision") == MismatchClass::kConfound);
  CHECK(mismatch_of("model.output_dir") == MismatchClass::kFatal);
}

#include "report/comparability/settings.h"

#include "core/error.h"
#include "report/two_steps.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;

TEST_CASE("two ways of writing a value are one value", "[report]") {
  CHECK(same_value("1", "1.0"));
  CHECK(same_value(R"("4e-4")", "0.0004"));
  CHECK(same_value(R"("1_000")", "1000"));
  CHECK(same_value(R"("True")", "true"));
  CHECK(same_value(R"("2e3T")", R"("2000T")"));
  CHECK(same_value("[0.9,0.95]", R"(["0.90","9.5e-1"])"));
  CHECK_FALSE(same_value("1", "2"));
  CHECK_FALSE(same_value(R"("2e3T")", R"("2000ep")"));
  CHECK_FALSE(same_value("[1,2]", "[1,2,3]"));
  CHECK_FALSE(same_value(R"("adamw")", R"("AdamW")"));
  CHECK_FALSE(same_value("1", "true"));
}

TEST_CASE("a key that a config of ours does not state has its default", "[report]") {
  const Settings settings = settings_of(a_run(R"({"seed":7})"));
  CHECK(settings.at("seed") == "7");
  CHECK(settings.at("global_train_batch_size") == "512");
  CHECK_FALSE(settings.contains("run_name"));  // null by default
  CHECK_FALSE(
      settings.contains("data.instance_filter.repetition_max_period"));  // and so is its group
  CHECK(settings_of(a_run("{}")).empty());
}

TEST_CASE("a key that one value alone can be run with has that value", "[report]") {
  const auto ours = settings_of(a_run(R"({"model": {"d_model": 8}})"));
  CHECK(ours.at("model.alibi") == "false");
  CHECK(ours.at("model.attention_dropout") == "0");
  CHECK(ours.at("tokenizer.truncate_direction") == "\"right\"");
  CHECK_FALSE(ours.contains("extra_steps_after_cancel"));  // 0 or 10
  auto theirs = a_run(R"({"model": {"d_model": 8}, "max_duration": 5})");
  theirs.imported = true;
  CHECK(settings_of(theirs).at("model.alibi") == "false");               // OLMo's default, too
  CHECK_FALSE(settings_of(theirs).contains("model.attention_dropout"));  // OLMo's is 0.1
}

TEST_CASE("a null that was written down is no default", "[report]") {
  CHECK_FALSE(settings_of(a_run(R"({"seed":7,"auxiliary_loss_multiplier":null})"))
                  .contains("auxiliary_loss_multiplier"));
}

TEST_CASE("another trainer's config has no defaults of ours, and one in OLMo's keys has OLMo's",
          "[report]") {
  store::RecordedRun run = a_run(R"({"dim":8,"lr":1e-4,"seed":7})");
  run.imported = true;
  CHECK(settings_of(run).size() == 3);
  run.config = R"({"seed":7,"optimizer":{"eps":1e-5}})";
  CHECK(settings_of(run).at("global_train_batch_size") == "512");
  CHECK_FALSE(settings_of(run).contains("model.rope"));  // OLMo's default is another than ours
}

TEST_CASE("OLMo's trainer takes one weight of the z-loss, whatever its config says", "[report]") {
  store::RecordedRun run =
      a_run(R"({"seed":7,"softmax_auxiliary_loss":true,"auxiliary_loss_multiplier":1e-5})");
  CHECK(settings_of(run).at("auxiliary_loss_multiplier") == "1e-05");
  run.imported = true;
  CHECK(settings_of(run).at("auxiliary_loss_multiplier") == "0.0001");
}

TEST_CASE("a key is set that is true, however it is written", "[report]") {
  const Settings settings{{"a", "true"}, {"b", R"("True")"}, {"c", "false"}, {"d", "1"}};
  CHECK(is_set(settings, "a"));
  CHECK(is_set(settings, "b"));
  for (const char* not_set : {"c", "d", "e"}) CHECK_FALSE(is_set(settings, not_set));
}

TEST_CASE("a reference that another trainer did not resolve is no value", "[report]") {
  CHECK(leaves_of(R"({"data":{"paths":["a"],"x":"${path}"},"n":null})", "a config") ==
        Settings{{"data.paths", R"(["a"])"}});
  CHECK_THROWS_AS(leaves_of("{", "a config"), Error);
  CHECK_THROWS_AS(leaves_of(R"({"a":)" + std::string(1'000'000, '['), "a config"), Error);
}

TEST_CASE("values are shown without quotes", "[report]") {
  const Settings settings{{"name", R"("adamw")"}, {"eps", "1e-05"}};
  CHECK(shown_value(settings, "name") == "adamw");
  CHECK(shown_value(settings, "eps") == "1e-05");
  CHECK(shown_value(settings, "gone") == "not set");
}

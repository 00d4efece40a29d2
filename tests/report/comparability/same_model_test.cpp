#include "report/comparability/same_model.h"

#include "report/two_steps.h"
#include "support/catch.h"

using namespace olmo::report;

namespace {

/// Of the `model` of an import in OLMo's keys.
Settings settings_with(const std::string& model, const std::string& other = R"("seed":7)") {
  olmo::store::RecordedRun run =
      a_run("{" + other + R"(,"model":{"d_model":64,"n_heads":4,)" + model + "}}");
  run.imported = true;
  return settings_of(run);
}

bool same(const std::string& a, const std::string& b) {
  return settings_with(a) == settings_with(b);
}

}  // namespace

TEST_CASE("the width of the MLP is the same by ratio and by number", "[report]") {
  CHECK(same(R"("mlp_ratio":8)", R"("mlp_hidden_size":512)"));
  CHECK(same(R"("mlp_ratio":8)", R"("mlp_ratio":4,"mlp_hidden_size":512)"));
  CHECK_FALSE(same(R"("mlp_ratio":8)", R"("mlp_hidden_size":256)"));
}

TEST_CASE("heads of keys and values are the same under their old name and by default", "[report]") {
  CHECK(same(R"("rope":true)", R"("rope":true,"n_kv_heads":4)"));
  CHECK(same(R"("rope":true)", R"("rope":true,"multi_query_attention":false)"));
  CHECK(same(R"("n_kv_heads":1)", R"("multi_query_attention":true)"));
  CHECK_FALSE(same(R"("rope":true)", R"("rope":true,"n_kv_heads":2)"));
}

TEST_CASE("the rows of the embedding are those of the vocabulary where none are stated",
          "[report]") {
  CHECK(settings_with(R"("vocab_size":512,"embedding_size":null)").at("model.embedding_size") ==
        "512");
  CHECK(settings_with(R"("vocab_size":500,"embedding_size":512)").at("model.embedding_size") ==
        "512");
}

TEST_CASE("biases of norms are as those of other layers, and none where norms have no weights",
          "[report]") {
  const std::string affine = R"("layer_norm_with_affine":true,"attention_layer_norm":false,)";
  CHECK(same(affine + R"("include_bias":false)",
             affine + R"("include_bias":false,"bias_for_layer_norm":false)"));
  const std::string plain = R"("layer_norm_with_affine":false,"attention_layer_norm":false,)";
  CHECK(same(plain + R"("bias_for_layer_norm":true)", plain + R"("bias_for_layer_norm":false)"));
}

TEST_CASE("what nothing reads is not compared", "[report]") {
  CHECK(same(R"("full_attention_every":4)", R"("full_attention_every":2)"));
  CHECK_FALSE(same(R"("sliding_window":8,"full_attention_every":4)",
                   R"("sliding_window":8,"full_attention_every":2)"));
  const std::string no_norm = R"("attention_layer_norm":false,"attention_layer_norm_with_affine":)";
  CHECK(same(no_norm + "true", no_norm + "false"));
  CHECK(same(R"("init_fn":"mitchell","init_std":1)", R"("init_fn":"mitchell","init_std":2)"));
  CHECK_FALSE(same(R"("init_fn":"normal","init_std":1)", R"("init_fn":"normal","init_std":2)"));
}

TEST_CASE("weights are drawn within three deviations by default, but for normal ones", "[report]") {
  CHECK(same(R"("init_fn":"mitchell")", R"("init_fn":"mitchell","init_cutoff_factor":3.0)"));
  CHECK_FALSE(same(R"("init_fn":"normal")", R"("init_fn":"normal","init_cutoff_factor":3.0)"));
}

TEST_CASE("old names of an optimizer's settings are the new ones, and LionW reads no eps",
          "[report]") {
  const auto with = [](const std::string& optimizer) {
    return settings_with(R"("rope":true)", R"("seed":7,"optimizer":{)" + optimizer + "}");
  };
  CHECK(with(R"("no_decay_norm_and_bias":true)") ==
        with(R"("decay_norm_and_bias":false,"decay_embeddings":false)"));
  CHECK(with(R"("name":"decoupled_lionw")") == with(R"("name":"lionw")"));
  CHECK(with(R"("name":"lionw","eps":1)") == with(R"("name":"lionw","eps":2)"));
  CHECK_FALSE(with(R"("name":"adamw","eps":1)") == with(R"("name":"adamw","eps":2)"));
}

TEST_CASE("a norm around a fault of ROCm's is the default one", "[report]") {
  CHECK(same(R"("layer_norm_type":"amd_compatible")", R"("layer_norm_type":"default")"));
  CHECK_FALSE(same(R"("layer_norm_type":"amd_compatible")", R"("layer_norm_type":"rms")"));
}

TEST_CASE("numbers that are none stay as they are stated", "[report]") {
  const auto settings = settings_with(R"("mlp_ratio":"eight","vocab_size":-1)");
  CHECK(settings.at("model.mlp_ratio") == R"("eight")");
  CHECK_FALSE(settings.contains("model.mlp_hidden_size"));
}

TEST_CASE("an imported config of a model alone tells nothing of the training", "[report]") {
  olmo::store::RecordedRun run = a_run(R"({"model":{"d_model":64,"n_heads":4}})");
  run.imported = true;
  const auto settings = settings_of(run);
  CHECK(settings.at("model.n_kv_heads") == "4");
  CHECK(same_value(settings.at("model.rope_theta"), "10000"));
  for (const auto& [key, value] : settings) CHECK(key.starts_with("model."));
  run.config = R"({"model":{"mlp_ratio":8,"d_model":64},"transformers":{"learning_rate":1}})";
  CHECK(settings_of(run) == Settings{{"model.d_model", "64"},
                                     {"model.mlp_hidden_size", "512"},
                                     {"transformers.learning_rate", "1"}});
}

TEST_CASE("what a schedule does not read is nothing to a comparison", "[report]") {
  const auto same_schedules = [](const std::string& a, const std::string& b,
                                 const std::string& beside = R"("seed":7)") {
    const auto with = [&](const std::string& schedule) {
      return settings_with(R"("n_layers":2)", beside + R"(,"scheduler":{"name":)" + schedule + "}");
    };
    return with(a) == with(b);
  };
  CHECK(
      same_schedules(R"("constant")", R"("constant","alpha_f":0.5,"t_warmup":9,"units":"tokens")"));
  CHECK(same_schedules(R"("constant_with_warmup","t_max":9)", R"("constant_with_warmup")"));
  CHECK_FALSE(
      same_schedules(R"("constant_with_warmup","t_warmup":9)", R"("constant_with_warmup")"));
  CHECK_FALSE(same_schedules(R"("cosine_with_warmup","t_max":9)", R"("cosine_with_warmup")"));
  CHECK_FALSE(same_schedules(R"("constant")", R"("constant","t_warmup":9)",
                             R"("reset_optimizer_state":true)"));
}

TEST_CASE("the weight of a z-loss is nothing where none is added", "[report]") {
  const auto with = [](const std::string& loss) {
    return settings_of(a_run(R"({"seed":1,)" + loss + R"(,"model":{"d_model":8}})"));
  };
  CHECK(with(R"("auxiliary_loss_multiplier":0.1)") == with(R"("softmax_auxiliary_loss":false)"));
  CHECK(with(R"("softmax_auxiliary_loss":true,"auxiliary_loss_multiplier":0.1)") !=
        with(R"("softmax_auxiliary_loss":true)"));
}

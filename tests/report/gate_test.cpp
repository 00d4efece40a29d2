#include "report/gate.h"

#include <algorithm>

#include "core/error.h"
#include "report/comparability/comparability.h"
#include "report/training/identity.h"
#include "report/two_steps.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;

namespace {

Gate gate_of(const store::RecordedRun& a, const store::RecordedRun& b,
             Kind kind = Kind::kTrajectory) {
  return compare_settings(side(a), side(b), kind);
}

/// The only mismatch of two configs.
Mismatch mismatch_of(const std::string& config_a, const std::string& config_b) {
  const Gate gate = gate_of(a_run(config_a), a_run(config_b));
  REQUIRE(gate.mismatches.size() == 1);
  CHECK(!gate.mismatches[0].reason.empty());
  return gate.mismatches[0];
}

Mismatch only_mismatch(const store::RecordedRun& a, const store::RecordedRun& b,
                       Kind kind = Kind::kTrajectory) {
  const Gate gate = gate_of(a, b, kind);
  REQUIRE(gate.mismatches.size() == 1);
  return gate.mismatches[0];
}

std::vector<std::string> unknown_keys(const Gate& gate) {
  std::vector<std::string> keys;
  for (const UnknownFact& fact : gate.unknown) keys.push_back(fact.key);
  return keys;
}

bool has_unknown(const Gate& gate, const std::string& key, const std::string& a,
                 const std::string& b) {
  return std::any_of(gate.unknown.begin(), gate.unknown.end(), [&](const UnknownFact& fact) {
    return fact.key == key && (fact.a == a || a.empty()) && (fact.b == b || b.empty());
  });
}

}  // namespace

TEST_CASE("equal runs pass the gate", "[report]") {
  const Gate gate = gate_of(a_run(), a_run());
  CHECK(gate.mismatches.empty());
  CHECK(gate.unknown.empty());
  CHECK(gate.equal.size() == 6);
  CHECK(are_repeats(a_run(), a_run()));
}

TEST_CASE("the key of a config decides how much its difference weighs", "[report]") {
  const Mismatch model = mismatch_of(R"({"model":{"n_layers":8}})", R"({"model":{"n_layers":16}})");
  CHECK(model.mismatch == MismatchClass::kFatal);
  CHECK(model.what == "model.n_layers");
  CHECK(model.a == "8");
  CHECK(model.b == "16");

  const auto weight = [](const std::string& a, const std::string& b) {
    return mismatch_of(a, b).mismatch;
  };
  CHECK(weight(R"({"model":{"flash_attention":true}})", R"({"model":{"flash_attention":false}})") ==
        MismatchClass::kBenign);
  CHECK(weight(R"({"optimizer":{"learning_rate":1e-3}})",
               R"({"optimizer":{"learning_rate":2e-3}})") == MismatchClass::kConfound);
  CHECK(weight(R"({"run_name":"one"})", R"({"run_name":"two"})") == MismatchClass::kBenign);
  CHECK(weight(R"({"nobody_knows":1})", R"({"nobody_knows":2})") == MismatchClass::kConfound);
  CHECK(weight(R"({"precision":"fp32"})", R"({"precision":"bf16"})") == MismatchClass::kConfound);
}

TEST_CASE("a key that one config lacks is a difference, null is none", "[report]") {
  const Mismatch absent = mismatch_of(R"({"seed":1,"clip":1.0})", R"({"seed":1})");
  CHECK(absent.a == "1.0");
  CHECK(absent.b == "not set");
  CHECK(gate_of(a_run(R"({"seed":1,"clip":null})"), a_run(R"({"seed":1})")).mismatches.empty());
}

TEST_CASE("a setting that changed no bit of the whole record is benign", "[report]") {
  store::RecordedRun a = a_run(R"({"scheduler":{"t_max":5},"model":{"n_kv_heads":2}})");
  store::RecordedRun b = a_run(R"({"scheduler":{"t_max":6}})");
  const auto excused = [&] {
    Gate gate = gate_of(a, b);
    REQUIRE(gate.has(MismatchClass::kFatal));
    REQUIRE(gate.has(MismatchClass::kConfound));
    excuse_settings(gate, a, b, find_identity(a, b));
    return !gate.has(MismatchClass::kFatal) && !gate.has(MismatchClass::kConfound);
  };
  CHECK(excused());
  b.steps.loss[1] = 9.5;
  CHECK_FALSE(excused());
  b = a_run(R"({"scheduler":{"t_max":6}})");
  b.inputs[0].sha256 = "another tokenizer";  // no setting
  CHECK_FALSE(excused());
  b = a_run(R"({"scheduler":{"t_max":6}})");
  b.steps.step.push_back(3);  // a step that may tell
  b.steps.tokens.push_back(24);
  b.steps.loss.push_back(8.0);
  b.steps.grad_norm.push_back(1.0);
  b.steps.batch.push_back(13);
  b.steps.chain.push_back(23);
  CHECK_FALSE(excused());
}

TEST_CASE("limits of the gradient norm are one if they are for gradients of one kind of means",
          "[report]") {
  store::RecordedRun a = a_run(R"({"max_grad_norm":0.75})"), b = a_run(R"({"max_grad_norm":1.0})");
  const auto excused = [&] {
    Gate gate = gate_of(a, b);
    REQUIRE(gate.has(MismatchClass::kConfound));
    excuse_gradient_scale(gate, a, b);
    return !gate.has(MismatchClass::kConfound);
  };
  CHECK_FALSE(excused());
  a.steps.loss_factor = 4.0 / 3;
  CHECK(excused());
  a.steps.loss_factor = 1.25;
  CHECK_FALSE(excused());
}

TEST_CASE("how weights are drawn is nothing to runs that began with the same ones", "[report]") {
  store::RecordedRun a = a_run(), b = a_run(R"({"model":{"d_model":8,"init_fn":"mitchell"}})");
  CHECK_FALSE(gate_of(a, b).has(MismatchClass::kFatal));
  b.state_hashes.clear();
  Gate gate = gate_of(a, b);
  CHECK(gate.has(MismatchClass::kFatal));
  excuse_drawing(gate);
  CHECK_FALSE(gate.has(MismatchClass::kFatal));
}

TEST_CASE("other label masks are fatal", "[report]") {
  store::RecordedRun a = a_run(), b = a_run();
  a.inputs.push_back({"label_mask", "mask.npy", 9, "0011223344556677"});
  CHECK(unknown_keys(gate_of(a, b)) == std::vector<std::string>{"label_masks"});
  b.inputs.push_back({"label_mask", "mask.npy", 9, "7766554433221100"});
  CHECK(only_mismatch(a, b).what == "label masks");
  CHECK(only_mismatch(a, b).mismatch == MismatchClass::kFatal);
}

TEST_CASE("fatal mismatches come first", "[report]") {
  const Gate gate = gate_of(a_run(R"({"clip":1,"model":{"n_layers":8},"run_name":"x"})"),
                            a_run(R"({"clip":2,"model":{"n_layers":9},"run_name":"y"})"));
  REQUIRE(gate.mismatches.size() == 3);
  CHECK(gate.mismatches[0].what == "model.n_layers");
  CHECK(gate.mismatches[1].what == "clip");
  CHECK(gate.mismatches[2].what == "run_name");
  CHECK(gate.has(MismatchClass::kFatal));
}

TEST_CASE("a config that is not JSON is damage", "[report]") {
  CHECK_THROWS_AS(gate_of(a_run("{"), a_run()), olmo::Error);
}

TEST_CASE("other tokenizers or token files are fatal", "[report]") {
  store::RecordedRun other = a_run();
  other.inputs[0].sha256 = "another tokenizer";
  CHECK(only_mismatch(a_run(), other).what == "tokenizer");
  CHECK(only_mismatch(a_run(), other).mismatch == MismatchClass::kFatal);
  CHECK(!are_repeats(a_run(), other));

  other = a_run();
  other.inputs[1].sha256 = "other tokens";
  other.steps.batch = {99, 98};
  CHECK(only_mismatch(a_run(), other, Kind::kOutcome).mismatch == MismatchClass::kFatal);

  other = a_run();
  other.steps.batch = {};
  other.inputs.clear();
  const Gate gate = gate_of(a_run(), other);
  CHECK(gate.mismatches.empty());
  CHECK(unknown_keys(gate) == std::vector<std::string>{"tokenizer", "token_files", "data_order"});
}

TEST_CASE("with the same start and data the first losses agree", "[report]") {
  store::RecordedRun near = a_run(), far = a_run();
  near.steps.loss[0] *= 1 + 1e-6;
  far.steps.loss[0] *= 1 + 3e-5;
  CHECK(gate_of(a_run(), near).mismatches.empty());
  const Mismatch found = only_mismatch(a_run(), far);
  CHECK(found.mismatch == MismatchClass::kFatal);
  CHECK(found.what == "loss of step 1");
  CHECK(gate_of(a_run(), far, Kind::kOutcome).mismatches.empty());
}

TEST_CASE("first losses that fit bf16 and not fp32 make the precision a question", "[report]") {
  store::RecordedRun a = a_run("{}"), b = a_run("{}");
  a.imported = b.imported = true;
  CHECK_FALSE(has_unknown(gate_of(a, b), "precision", "", ""));
  b.steps.loss[0] *= 1 + 1e-4;
  CHECK_FALSE(gate_of(a, b).has(MismatchClass::kFatal));
  CHECK(has_unknown(gate_of(a, b), "precision", "", ""));
  b.steps.loss[0] *= 1 + 1e-2;
  CHECK(gate_of(a, b).has(MismatchClass::kFatal));
}

TEST_CASE("another start is fatal for a trajectory unless the first losses agree", "[report]") {
  store::RecordedRun other = a_run();
  other.state_hashes[0][0].sha256 = "another start";
  CHECK(only_mismatch(a_run(), other).mismatch == MismatchClass::kBenign);
  other.steps.loss[0] = 11;
  CHECK(only_mismatch(a_run(), other).mismatch == MismatchClass::kFatal);
  CHECK(only_mismatch(a_run(), other, Kind::kOutcome).mismatch == MismatchClass::kBenign);
}

TEST_CASE("another data order is fatal for a trajectory only", "[report]") {
  store::RecordedRun other = a_run();
  other.steps.batch[1] = 99;
  CHECK(only_mismatch(a_run(), other).mismatch == MismatchClass::kFatal);
  CHECK(gate_of(a_run(), other, Kind::kOutcome).mismatches.empty());
}

TEST_CASE("what another trainer's config does not state is unknown", "[report]") {
  store::RecordedRun ours = a_run(R"({"model":{"d_model":8,"rope":true},"threads":2})");
  store::RecordedRun other = a_run(R"({"dim":8,"model":{"d_model":8.0},"layers":[1,2],"lr":1e-5})");
  other.imported = true;
  const Gate gate = gate_of(ours, other);
  CHECK(gate.mismatches.empty());
  CHECK(has_unknown(gate, "model.rope", "true", ""));
  CHECK(has_unknown(gate, "lr", "", "1e-05"));
  CHECK_FALSE(has_unknown(gate, "model.d_model", "", ""));
  other.config = R"({"model":{"d_model":16}})";
  CHECK(gate_of(ours, other).has(MismatchClass::kFatal));
}

TEST_CASE("a config in OLMo's keys has OLMo's defaults, whoever trained", "[report]") {
  store::RecordedRun ours = a_run(R"({"model":{"d_model":8},"optimizer":{"weight_decay":0.01}})");
  store::RecordedRun other = a_run(R"({"model":{"d_model":8},"seed":3})");
  other.imported = true;
  CHECK_FALSE(has_unknown(gate_of(ours, other), "optimizer.weight_decay", "0.01", ""));
  ours.config = R"({"model":{"d_model":8},"optimizer":{"weight_decay":0.1}})";
  CHECK(gate_of(ours, other).has(MismatchClass::kConfound));
}

TEST_CASE("under amp_bf16 fsdp.precision is a confound, and other keys of fsdp are none",
          "[report]") {
  const auto with = [](const std::string& fsdp) {
    store::RecordedRun run =
        a_run(R"({"model":{"d_model":8},"seed":3,"precision":"amp_bf16","fsdp":)" + fsdp + "}");
    run.imported = true;
    return run;
  };
  CHECK(gate_of(with(R"({"precision":"pure"})"), with(R"({"precision":"mixed"})"))
            .has(MismatchClass::kConfound));
  CHECK_FALSE(gate_of(with(R"({"wrapping_strategy":"a"})"), with(R"({"wrapping_strategy":"b"})"))
                  .has(MismatchClass::kConfound));
}

TEST_CASE("what amp_bf16 rounds is compared, not how its parameters are wrapped", "[report]") {
  const auto differ = [](const std::string& a, const std::string& b) {
    const auto with = [](const std::string& settings) {
      return a_run(R"({"model":{"d_model":8},"seed":3,)" + settings + "}");
    };
    return gate_of(with(a), with(b)).has(MismatchClass::kConfound);
  };
  const std::string mixed = R"("precision":"amp_bf16","distributed_strategy":"fsdp")",
                    ddp = R"("precision":"amp_bf16","distributed_strategy":"ddp")",
                    single = R"("precision":"amp_bf16","distributed_strategy":"single")";
  CHECK(differ(mixed, ddp));
  CHECK(differ(mixed, R"("precision":"amp_bf16","fsdp":{"precision":null})"));
  CHECK_FALSE(differ(ddp, single));
  CHECK_FALSE(differ(ddp, R"("precision":"amp_bf16","fsdp":{"precision":null})"));
  CHECK(differ(mixed, R"("precision":"fp32")"));
  CHECK_FALSE(
      differ(R"("precision":"fp32","distributed_strategy":"ddp")", R"("precision":"fp32")"));
}

TEST_CASE("an fp32 run does not ask another trainer's for settings of bf16", "[report]") {
  store::RecordedRun ours = a_run(R"({"model":{"d_model":8},"seed":3})");
  store::RecordedRun other = a_run(R"({"precision":"fp32","dim":8,"seq_len":7})");
  other.imported = true;
  const auto asked = [&] {
    return has_unknown(gate_of(ours, other), "fsdp.precision", "mixed", "") ||
           has_unknown(gate_of(ours, other), "distributed_strategy", "fsdp", "");
  };
  CHECK_FALSE(asked());
  ours.config = R"({"model":{"d_model":8},"seed":3,"precision":"amp_bf16"})";
  CHECK(asked());
}

TEST_CASE("equal batches excuse token files of other names, order and content", "[report]") {
  store::RecordedRun a = a_run(), b = a_run();
  a.inputs.push_back({"tokens", "part-1.npy", 9, "0000000011111111"});
  b.inputs.insert(b.inputs.begin() + 1, {"tokens", "z.npy", 9, "0000000011111111"});
  Gate gate = gate_of(a, b);
  CHECK(!gate.has(MismatchClass::kFatal));
  CHECK(only_mismatch(a, b).what == "token files");
  CHECK(are_repeats(a, b));
}

TEST_CASE("the same token files in another order are named as such", "[report]") {
  store::RecordedRun a = a_run(), b = a_run();
  a.inputs.push_back({"tokens", "part-1.npy", 9, "0000000011111111"});
  b.inputs.insert(b.inputs.begin() + 1, {"tokens", "part-1.npy", 9, "0000000011111111"});
  b.steps.batch = {12, 11};
  const Gate gate = gate_of(a, b);
  REQUIRE(gate.mismatches.size() == 2);
  CHECK(gate.mismatches[0].what == "order of the token files");
  CHECK(gate.mismatches[0].mismatch == MismatchClass::kFatal);
  CHECK(gate.mismatches[1].what == "data order");
  CHECK(only_mismatch(a, b, Kind::kOutcome).mismatch == MismatchClass::kBenign);
}

TEST_CASE("other batch sizes are a confound, told by the steps where no config does", "[report]") {
  store::RecordedRun a = a_run("{}"), b = a_run("{}");
  a.imported = b.imported = true;
  b.steps.tokens = {9, 18};
  CHECK(only_mismatch(a, b, Kind::kOutcome).what == "tokens of a step");
  CHECK(only_mismatch(a, b, Kind::kOutcome).mismatch == MismatchClass::kConfound);
}

TEST_CASE("a batch size that both configs state is known without tokens", "[report]") {
  const std::string config = R"({"model":{"d_model":8},"seed":3,"global_train_batch_size":2048})";
  store::RecordedRun a = a_run(config), b = a_run(config);
  for (store::RecordedRun* run : {&a, &b}) {
    run->imported = true;
    run->tokens_known = false;
    run->steps.tokens = run->steps.step;
  }
  CHECK_FALSE(has_unknown(gate_of(a, b), "global_train_batch_size", "", ""));
  b.config = R"({"dim":8})";
  CHECK(has_unknown(gate_of(a, b), "global_train_batch_size", "2048", ""));
  b.config = R"({"model":{"d_model":8},"seed":3,"global_train_batch_size":2160})";
  CHECK(gate_of(a, b).has(MismatchClass::kConfound));
}

TEST_CASE("runs without an axis in common are no repeats, and their tokens a step are unknown",
          "[report]") {
  store::RecordedRun other = a_run();
  other.tokens_known = false;
  other.steps.tokens = other.steps.step;
  CHECK(axes_differ(a_run(), other));
  CHECK_FALSE(are_repeats(a_run(), other));
  CHECK_FALSE(comparability(a_run(), other).first_loss);
  other.imported = true;
  other.config = R"({"dim":8})";
  CHECK(has_unknown(gate_of(a_run(), other), "global_train_batch_size", "512", ""));
  CHECK_FALSE(axes_differ(other, other));
}

TEST_CASE("what a key of the machine changes is said for both numerics", "[report]") {
  for (const char* key : {"threads", "isa", "device"}) {
    const std::string quoted = std::string("\"") + key + "\":";
    const Mismatch found = mismatch_of("{\"model\":{\"d_model\":8}," + quoted + "\"1\"}",
                                       "{\"model\":{\"d_model\":8}," + quoted + "\"2\"}");
    CHECK(found.reason.find("Under numerics=portable it changes no bit") == 0);
  }
}

TEST_CASE("a damaged policy is named with its side", "[report]") {
  store::RecordedRun a = a_run(), b = a_run();
  a.attempts.emplace_back();
  a.attempts[0].policy = a.attempts[0].build = a.attempts[0].environment = "{}";
  b.attempts = a.attempts;
  b.attempts.back().policy = "[[";
  b.label = "other.db";
  CHECK_THROWS_WITH(gate_of(a, b), Catch::Matchers::StartsWith("other.db: its policy: "));
}

TEST_CASE("prompts that a side does not tell are unknown", "[report]") {
  const auto asked = [](std::uint64_t requests) {
    Side side;
    side.evaluation.emplace();
    side.evaluation->policy = side.evaluation->environment = "{}";
    side.evaluation->tasks = {{.task = "arc", .instances = {{.doc_id = 0, .requests = requests}}}};
    return side;
  };
  const auto unknown = [&](std::uint64_t a, std::uint64_t b) {
    return has_unknown(compare_settings(asked(a), asked(b), Kind::kOutcome), "prompts", "", "");
  };
  CHECK_FALSE(unknown(3, 3));
  CHECK(unknown(3, 0));
  CHECK(unknown(0, 0));
}

TEST_CASE("another precision is one confound, whoever tells it", "[report]") {
  store::RecordedRun a = a_run(R"({"precision":"fp32"})"), b = a_run(R"({"precision":"amp_bf16"})");
  a.attempts.resize(1);
  b.attempts.resize(1);
  a.attempts[0].policy = R"({"precision":"fp32"})";
  b.attempts[0].policy = R"({"precision":"amp_bf16","mixed_precision":"mixed"})";
  for (auto* run : {&a, &b}) run->attempts[0].build = run->attempts[0].environment = "{}";
  const auto confounds = [&] {
    const Gate gate = gate_of(a, b);
    return std::count_if(gate.mismatches.begin(), gate.mismatches.end(),
                         [](const Mismatch& m) { return m.mismatch == MismatchClass::kConfound; });
  };
  CHECK(confounds() == 1);
  a.config = b.config;  // the policies alone tell
  CHECK(confounds() == 2);
}

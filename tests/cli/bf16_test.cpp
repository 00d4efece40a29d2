// The tiny config in OLMo's amp_bf16 through the binary, in both definitions: what must not matter
// does not, a run goes on with its bits, an audit computes them again, and the record says what was
// computed.
#include <bit>

#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "core/compute/named_tensors.h"
#include "core/compute/policy.h"
#include "store/checkpoint/checkpoint.h"
#include "support/catch.h"

namespace olmo::test {
namespace {

/// Settings of a definition, by its name in tests/data/signature.json.
const Words& settings_of(const std::string& name) {
  static const Words kMixed = {"precision=amp_bf16"},
                     kAutocast = {"precision=amp_bf16", "distributed_strategy=ddp"};
  return name == "amp_bf16 mixed" ? kMixed : kAutocast;
}

/// The tiny run in both definitions, trained once for all tests.
struct Trained : Scene {
  Trained() {
    for (const std::string name : {"amp_bf16 mixed", "amp_bf16 autocast"}) {
      const auto ended = run(name, name, {"trace_interval=10"});
      INFO(ended.err);
      REQUIRE(ended.code == 0);
    }
  }
  [[nodiscard]] Ended run(const std::string& folder, const std::string& name, Words more) const {
    more.insert(more.begin(), settings_of(name).begin(), settings_of(name).end());
    return train(folder, more);
  }
};

const Trained& the_runs() {
  static const Trained kRuns;
  return kRuns;
}

constexpr const char* kBoth[] = {"amp_bf16 mixed", "amp_bf16 autocast"};

}  // namespace

TEST_CASE("the tiny run in amp_bf16 has the bits that tests/data/signature.json holds", "[cli]") {
  const auto signature = Json::parse(read_file(OLMO_TEST_DATA "/signature.json"));
  for (const std::string name : kBoth) {
    const auto proof = the_runs().record(name).proof();
    INFO(name << ": if the numerics were meant to change, see tests/data/README.md");
    CHECK(signature.at(name) == sha256(proof.chain + "\n" + proof.state + "\n").hex());
  }
}

TEST_CASE("in amp_bf16 threads, instruction sets and recomputed blocks give the same bits",
          "[cli]") {
  const Trained& runs = the_runs();
  for (const std::string name : kBoth) {
    const std::string chain = "SELECT chain_hash FROM surviving_steps WHERE step = 3";
    const auto expected = runs.record(name).value(chain);
    const auto check = [&](const std::string& what, const Words& more) {
      INFO(name << ": " << what);
      Words words = more;
      words.insert(words.end(), {"stop_at=3", "save_interval=1000"});
      REQUIRE(runs.run(name + what, name, words).code == 0);
      CHECK(runs.record(name + what).value(chain) == expected);
    };
    check(" three threads", {"threads=3"});
    check(" recomputed", {"activation_checkpointing=whole_layer"});
    check(" plain", {"isa=plain"});
    if (best_isa() == Isa::kAvx512) check(" avx2", {"isa=avx2"});
  }
}

TEST_CASE("amp_bf16 with the library's products has the same bits again, near the portable ones",
          "[cli]") {
  const Trained& runs = the_runs();
  for (const std::string name : kBoth) {
    INFO(name);
    for (const char* again : {" fast", " fast again"})
      REQUIRE(runs.run(name + again, name, {"numerics=fast"}).code == 0);
    CHECK(runs.record(name + " fast").proof() == runs.record(name + " fast again").proof());
    const std::string losses = "SELECT ce_loss FROM surviving_steps ORDER BY step";
    const auto portable = runs.record(name).numbers(losses);
    const auto fast = runs.record(name + " fast").numbers(losses);
    REQUIRE(portable.size() == fast.size());
    // Orders of sums differ, roundings do not: as far apart as the reference from itself.
    for (std::size_t i = 0; i < fast.size(); ++i)
      CHECK(fast[i] == Approx(portable[i]).margin(2e-3));
  }
}

TEST_CASE("checkpoints of a run in amp_bf16 hold its weights in fp32", "[cli]") {
  const Trained& runs = the_runs();
  for (const std::string name : kBoth) {
    const auto weights =
        store::read_checkpoint(runs / name / "step20", /*weights_only=*/true).model;
    bool finer = false;  // than bf16 can tell
    for (const auto& [tensor_name, tensor] : weights) {
      INFO(name << ": " << tensor_name);
      CHECK(tensor.scalar_type() == at::kFloat);
      for (const float value : host_span<float>(tensor))
        finer |= (std::bit_cast<std::uint32_t>(value) & 0xFFFFU) != 0;
    }
    CHECK(finer);
  }
}

TEST_CASE("a run in amp_bf16 that stopped and goes on ends with the same bits", "[cli]") {
  const Trained& runs = the_runs();
  for (const std::string name : kBoth) {
    const std::string folder = name + " resumed";
    REQUIRE(runs.run(folder, name, {"stop_after=7"}).code == 75);
    const auto ended = runs.run(folder, name, {"--resume", "latest"});
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    CHECK(runs.record(folder).proof() == runs.record(name).proof());
  }
}

TEST_CASE("a run does not go on in another precision, nor in another definition of amp_bf16",
          "[cli]") {
  const Trained& runs = the_runs();
  REQUIRE(runs.run("other", "amp_bf16 mixed", {"stop_after=2"}).code == 75);
  for (const Words& settings : {Words{"precision=fp32"}, settings_of("amp_bf16 autocast"),
                                Words{"precision=amp_bf16", "fsdp.precision=null"}}) {
    Words words = settings;
    words.insert(words.end(), {"--resume", "latest"});
    const auto ended = runs.train("other", words);
    CHECK(ended.code == 2);
    CHECK(ended.says("another config"));
  }
}

TEST_CASE("the record says the precision and its definition, fp32 has none", "[cli]") {
  const Trained& runs = the_runs();
  const auto policy = [&](const std::string& name) {
    return Json::parse(runs.record(name).value("SELECT policy FROM attempts"));
  };
  for (const std::string name : kBoth) {
    CHECK(policy(name).at("precision") == "amp_bf16");
    CHECK("amp_bf16 " + policy(name).at("mixed_precision").get<std::string>() == name);
  }
  REQUIRE(runs.train("fp32", {"stop_at=1"}).code == 0);
  CHECK(policy("fp32").at("precision") == "fp32");
  CHECK_FALSE(policy("fp32").contains("mixed_precision"));
}

TEST_CASE("an audit computes a run in amp_bf16 again, with every operation", "[cli]") {
  const Trained& runs = the_runs();
  for (const std::string name : kBoth) {
    const auto folder = (runs / name).string();
    const auto ended = harness(runs / (name + " audit"),
                               {"audit", folder, "--checkpoints", folder, "--threads", "2"});
    INFO(ended.out << ended.err);
    CHECK(ended.code == 0);
    CHECK(ended.out.find("amp_bf16 (" + name.substr(9) + ")") != std::string::npos);
  }
}

TEST_CASE("a checkpoint is evaluated in fp32 unless amp_bf16 is asked for, which is recorded",
          "[cli]") {
  const Trained& runs = the_runs();
  const auto evaluate = [&](const std::string& name, Words more) {
    more.insert(more.begin(), {"eval", (runs / "amp_bf16 mixed").string(), "--perplexity",
                               "tokens=" + (runs / "tokens.npy").string(), "--limit", "4", "--db",
                               (runs / (name + ".db")).string(), "--json"});
    const auto ended = harness(runs / name, more);
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    return Json::parse(ended.out);
  };
  const Json plain = evaluate("eval-fp32", {}),
             rounded = evaluate("eval-bf16", {"--precision", "amp_bf16"});
  CHECK(plain.at("policy").at("precision") == "fp32");
  CHECK(rounded.at("policy").at("mixed_precision") == "mixed");
  CHECK(plain.at("perplexity") != rounded.at("perplexity"));
}

TEST_CASE(
    "a config's evaluators compute what the training does: `eval --precision amp_bf16` agrees",
    "[cli]") {
  const Trained& runs = the_runs();
  const std::string tokens = (runs / "tokens.npy").string();
  const auto ended = runs.run(
      "evaluated", "amp_bf16 mixed",
      {"stop_at=2", "evaluators=[{label: ours, type: lm, data: {paths: [" + tokens + "]}}]"});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  const fs::path database = runs / "evaluated.db";
  REQUIRE(harness(runs / "evaluated-log",
                  {"eval", (runs / "evaluated").string(), "--perplexity", "ours=" + tokens,
                   "--precision", "amp_bf16", "--db", database.string()})
              .code == 0);
  const std::string nll = "SELECT nll FROM evaluation_documents ORDER BY document_index";
  const auto in_loop = runs.record("evaluated").numbers(nll);
  CHECK(in_loop.size() == 64);
  CHECK(Record(database).numbers(nll) == in_loop);
}

}  // namespace olmo::test

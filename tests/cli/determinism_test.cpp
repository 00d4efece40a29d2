// Issue "one definition, the same bits": the tiny config trained through the binary under
// everything that must not matter, compared by the hash chain of its steps and the hashes of its
// final state.
#include <cmath>

#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "core/compute/libtorch.h"
#include "core/error.h"
#include "support/catch.h"

namespace olmo::test {
namespace {

/// The scene with the plain run that the others must equal.
struct Reference : Scene {
  Reference() {
    const auto ended = train("reference");
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    proof = record("reference").proof();
  }
  Proof proof;
};

/// Trained once for all tests; each uses run directories of its own beside it.
const Reference& the_reference() {
  static const Reference kReference;
  return kReference;
}

/// Trains under `more` and compares with the reference.
void check_same(const Reference& reference, const std::string& name, const Words& more) {
  const auto ended = reference.train(name, more);
  INFO(name << ": " << ended.err);
  REQUIRE(ended.code == 0);
  CHECK(reference.record(name).proof() == reference.proof);
}

/// After a crash: resumes the run `name` and checks that nothing tells that it was interrupted.
void check_resumed(const Reference& reference, const std::string& name, Words more) {
  more.insert(more.end(), {"--resume", "latest"});
  const auto ended = reference.train(name, more);
  INFO(name << ": " << ended.err);
  REQUIRE(ended.code == 0);
  const auto record = reference.record(name);
  CHECK(record.proof() == reference.proof);
  CHECK(record.steps() == "1..20");
  CHECK(record.value("SELECT count(*) FROM runs") == "1");
  CHECK(record.value("SELECT max(attempt) FROM attempts") == "2");
  CHECK(record.value("SELECT status FROM runs") == "finished");
}

bool machine_has(const std::string& isa) {
  try {
    return to_string(resolve_policy("portable", isa, 1).isa) == isa;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

TEST_CASE("repeats, thread counts, instruction sets, saving and hashing give the same bits",
          "[cli]") {
  const Reference& reference = the_reference();
  check_same(reference, "again", {});
  check_same(reference, "two-threads", {"threads=2"});
  check_same(reference, "three-threads", {"threads=3"});
  for (const char* isa : {"avx2", "avx512"}) {
    if (machine_has(isa)) check_same(reference, isa, {"isa=" + std::string(isa)});
  }
  // Without vector instructions every fma is a call, so three steps must do.
  REQUIRE(reference.train("plain", {"isa=plain", "stop_at=3"}).code == 0);
  const std::string chain = "SELECT chain_hash FROM surviving_steps WHERE step = 3";
  CHECK(reference.record("plain").value(chain) == reference.record("reference").value(chain));
  check_same(reference, "no-saves", {"save_interval=1000", "no_pre_train_checkpoint=true"});
  check_same(reference, "many-saves", {"save_interval=2", "save_num_checkpoints_to_keep=2"});
  check_same(reference, "many-hashes", {"hash_interval=5"});
  check_same(reference, "no-hashes", {"hash_interval=0"});
}

TEST_CASE("fast trainings of one machine have the same bits, and the record says by what",
          "[cli]") {
  const Scene scene;
  for (const char* name : {"fast", "again"})
    REQUIRE(scene.train(name, {"numerics=fast", "threads=2"}).code == 0);
  const auto record = scene.record("fast");
  CHECK(record.proof() == scene.record("again").proof());
  const auto policy = Json::parse(record.value("SELECT policy FROM attempts"));
  CHECK(policy.at("numerics") == "fast");
  CHECK_FALSE(policy.at("isa").empty());
  CHECK(policy.at("threads") == 2);
  CHECK(policy.at("device") == "cpu");
  CHECK(policy.at("matrix_products").get<std::string>().size() > 2);
  CHECK(policy.at("matrix_products") != "olmo-harness");
  CHECK(policy.at("switches").at("deterministic_algorithms") == "true");
  CHECK(policy.at("switches").at("float32_matmul_precision") == "highest");
  const auto portable = the_reference().record("reference").value("SELECT policy FROM attempts");
  CHECK(Json::parse(portable).at("matrix_products") == "olmo-harness");
}

TEST_CASE("the tiny run has the bits that tests/data/signature.json holds", "[cli]") {
  const Reference& reference = the_reference();
  const auto signature = Json::parse(read_file(OLMO_TEST_DATA "/signature.json"));
  const auto found = sha256(reference.proof.chain + "\n" + reference.proof.state + "\n").hex();
  INFO("if the numerics were meant to change, see tests/data/README.md");
  CHECK(signature.at("portable").get<std::string>() == found);
}

TEST_CASE("micro-batches of another size change the loss by no more than rounding", "[cli]") {
  const Reference& reference = the_reference();
  const auto expected =
      reference.record("reference").numbers("SELECT ce_loss FROM surviving_steps ORDER BY step");
  for (const std::string size : {"1", "8"}) {
    REQUIRE(reference.train("micro" + size, {"device_train_microbatch_size=" + size}).code == 0);
    const auto found = reference.record("micro" + size)
                           .numbers("SELECT ce_loss FROM surviving_steps ORDER BY step");
    REQUIRE(found.size() == 20);
    for (std::size_t i = 0; i < 20; ++i) CHECK(std::abs(found[i] - expected[i]) < 1e-6);
  }
}

TEST_CASE("a run that is killed at any moment and resumed ends with the same bits", "[cli]") {
  const Reference& reference = the_reference();
  const Words often = {"save_interval=2"};
  const auto killed = [&](const std::string& name, const Words& more, const std::string& moment,
                          const auto& due) {
    const auto ended = reference.train_until(name, more, SIGKILL, moment, due);
    INFO(name << ": " << ended.err);
    REQUIRE(ended.signal == SIGKILL);
    check_resumed(reference, name, more);
  };
  SECTION("after a checkpoint") {
    for (const std::string step : {"step2", "step8", "step14"})
      killed(step, often, "/" + step, [&] { return fs::exists(reference / step / step); });
  }
  SECTION("while saving: at the first write, and before the rename") {
    const auto saving = [&](const std::string& step, const std::string& file) {
      const auto temporary = step + "-tmp";
      killed(step, often, temporary,
             [&] { return fs::exists(reference / step / temporary / file); });
    };
    saving("step0", "checkpoint.h5");
    saving("step4", "");
    saving("step12", "manifest.json");
  }
  SECTION("before the first checkpoint") {
    const Words none = {"save_interval=1000", "no_pre_train_checkpoint=true"};
    killed("none", none, "step 1/20", [] { return true; });
  }
  SECTION("before the first step") {
    killed("start", often, "/step0", [&] { return fs::exists(reference / "start" / "step0"); });
  }
}

TEST_CASE("a run that was stopped or interrupted and resumed ends with the same bits", "[cli]") {
  const Reference& reference = the_reference();
  const Words often = {"save_interval=1"};
  const auto stopped = [&](const std::string& name, int signal, int code) {
    const auto ended = reference.train_until(
        name, often, signal, "/step3", [&] { return fs::exists(reference / name / "step3"); });
    INFO(name << ": " << ended.err);
    REQUIRE(ended.code == code);
    const auto record = reference.record(name);
    const auto last = record.value("SELECT max(step) FROM steps");
    CHECK(record.value("SELECT status FROM runs") == "stopped");
    CHECK(fs::exists(reference / name / ("step" + last) / "checkpoint.h5"));
    CHECK(ended.says("--resume latest"));
    check_resumed(reference, name, often);
  };
  SECTION("SIGTERM") { stopped("term", SIGTERM, 75); }
  SECTION("SIGUSR1") { stopped("usr1", SIGUSR1, 75); }
  SECTION("SIGINT") { stopped("int", SIGINT, 130); }
}

TEST_CASE("stop_after and stop_at end a run early, and it can go on", "[cli]") {
  const Reference& reference = the_reference();
  SECTION("stop_after counts the steps of the process and exits 75") {
    const auto ended = reference.train("a", {"stop_after=7"});
    CHECK(ended.code == 75);
    CHECK(reference.record("a").steps() == "1..7");
    check_resumed(reference, "a", {});
  }
  SECTION("stop_at is the run's last step") {
    CHECK(reference.train("b", {"stop_at=7"}).code == 0);
    CHECK(reference.record("b").value("SELECT status FROM runs") == "finished");
    check_resumed(reference, "b", {});
  }
  SECTION("a time_limit stops like a request") {
    CHECK(reference.train("c", {"time_limit=0.000001"}).code == 75);
    CHECK(reference.record("c").steps() == "1..1");
    check_resumed(reference, "c", {});
  }
  SECTION("a finished run that is resumed does nothing more") {
    const auto ended = reference.train("reference", {"--resume", "latest"});
    INFO(ended.err);
    CHECK(ended.code == 0);
    CHECK(reference.record("reference").proof() == reference.proof);
  }
}

}  // namespace olmo::test

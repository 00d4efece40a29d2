// Audits of the tiny run through the binary: a sound one passes wherever it is computed, and what
// was altered or computed wrongly is named.
#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "cli/words.h"
#include "store/database/sqlite.h"
#include "support/catch.h"
#include "support/says.h"

namespace olmo::test {
namespace {

/// The tiny run, trained once; tests alter copies of it.
struct Audited : Scene {
  Audited() {
    REQUIRE(train("run", {"hash_interval=5", "save_interval=10", "save_num_checkpoints_to_keep=-1",
                          "trace_interval=7"})
                .code == 0);
  }

  /// A copy of the run's folder; its database is closed.
  [[nodiscard]] fs::path copy(const std::string& name) const {
    fs::copy(*this / "run", *this / name, fs::copy_options::recursive);
    return *this / name;
  }

  [[nodiscard]] Ended audit(const fs::path& run, Words more = {}) const {
    more.insert(more.begin(), {"audit", run.string(), "--checkpoints", run.string()});
    return harness(*this / (run.filename().string() + "-audit"), more);
  }
};

const Audited& the_run() {
  static const Audited kRun;
  return kRun;
}

void alter(const fs::path& run, const std::string& sql) {
  store::Database(run / "run.db", store::OpenMode::kReadWrite).execute(sql);
}

void flip_bit(const fs::path& file, std::streamoff place) {
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekg(place);
  const char byte = static_cast<char>(stream.get());
  stream.seekp(place);
  stream.put(static_cast<char>(byte ^ 1));
}

/// Fails with exit code 5 and says all of `words`.
void check_fails(const Ended& ended, const Words& words) {
  INFO(ended.out << ended.err);
  CHECK(ended.code == 5);
  CHECK(ended.out.find("AUDIT FAILED") != std::string::npos);
  for (const auto& word : words) {
    INFO(word);
    CHECK(ended.out.find(word) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("an audit of a sound run passes, whatever computes it", "[cli]") {
  const Audited& scene = the_run();
  for (const Words& more : {Words{}, Words{"--threads", "3"}, Words{"--steps", "12..14"},
                            Words{"--sample", "2"}, Words{"--steps", "1..2", "--isa", "plain"}}) {
    const auto ended = scene.audit(scene / "run", more);
    INFO(ended.out << ended.err);
    CHECK(ended.code == 0);
    CHECK(ended.out.find("AUDIT PASSED: every bit agrees") != std::string::npos);
  }
}

TEST_CASE("an audit starts from the checkpoint before the steps", "[cli]") {
  const Audited& scene = the_run();
  const auto ended = scene.audit(scene / "run", {"--steps", "13..14", "--json"});
  const auto stretch = Json::parse(ended.out).at("stretches").at(0);
  CHECK(stretch.at("start_step") == 10);
  CHECK(stretch.at("steps_compared") == 4);
  CHECK(stretch.at("verdict") == "identical");
}

TEST_CASE("an audit of a branch begins at the checkpoint that it took over, wherever that is",
          "[cli]") {
  const Audited& scene = the_run();
  fs::create_directory(scene / "from");
  fs::copy(scene / "run" / "step10", scene / "from" / "step10");
  REQUIRE(scene
              .train("branch", {"load_path=" + (scene / "from" / "step10").string(),
                                "max_duration=16", "save_interval=4",
                                "save_num_checkpoints_to_keep=-1", "global_train_batch_size=6"})
              .code == 0);
  const auto passed = scene.audit(scene / "branch");
  INFO(passed.out);
  CHECK(passed.code == 0);
  CHECK(says(passed.out, "steps 11..16 from " + (scene / "from" / "step10").string()));
  CHECK(says(passed.out, "the run began from another run's checkpoint, "));

  fs::rename(scene / "from", scene / "moved");
  const auto ended = scene.audit(scene / "branch");
  CHECK(ended.code == 2);
  CHECK(ended.says("is a branch: it began at step 10 from another run's checkpoint (" +
                   (scene / "from" / "step10").string() + "), which is not here as it was"));
  CHECK(
      ended.says("or audit of this run --steps 13..16, which follow its own checkpoint of step "
                 "12"));
  CHECK(scene.audit(scene / "branch", {"--steps", "13..16"}).code == 0);
  const auto at = [&](const fs::path& place) {
    return scene.audit(scene / "branch", {"load_path=" + place.string()}).code;
  };
  CHECK(at(scene / "moved" / "step10") == 0);
  CHECK(at(scene / "run" / "step20") == 2);  // sound, and another one
  fs::remove_all(scene / "branch" / "step12");
  CHECK(scene.audit(scene / "branch").says("of this run no step, unless"));
}

TEST_CASE("an auditor needs the record, the checkpoints and the token files, wherever they are",
          "[cli]") {
  const Audited& scene = the_run();
  TemporaryDirectory elsewhere;
  fs::copy(scene / "run", elsewhere / "copy", fs::copy_options::recursive);
  fs::copy(scene / "tokens.npy", elsewhere / "tokens.npy");
  const auto ended =
      harness(elsewhere / "out", {"audit", (elsewhere / "copy" / "run.db").string(), "--data",
                                  (elsewhere / "").string(), "--steps", "11..12"});
  INFO(ended.err);
  CHECK(ended.code == 0);
}

TEST_CASE("an audit looks for the files of data.datasets in --data, too", "[cli]") {
  const Scene scene;
  const std::string datasets = "data.datasets={made: [" + (scene / "tokens.npy").string() + "]}";
  REQUIRE(scene.train("run", {"data.paths=null", datasets, "stop_at=2"}).code == 0);
  const TemporaryDirectory elsewhere;
  fs::rename(scene / "tokens.npy", elsewhere / "tokens.npy");
  const auto ended = harness(scene / "out", {"audit", (scene / "run").string(), "--data",
                                             (elsewhere / "").string(), "--steps", "1..2"});
  INFO(ended.err);
  CHECK(ended.code == 0);
}

TEST_CASE("an audit begins from the weights that the run read, not from newer ones in their place",
          "[cli]") {
  const Scene scene;
  const Words saves = {"save_interval=1", "save_num_checkpoints_to_keep=-1"};
  REQUIRE(scene.train("source", with(saves, {"stop_at=1"})).code == 0);
  REQUIRE(scene.train("run", {"load_weights=" + (scene / "source").string(), "stop_at=2"}).code ==
          0);
  for (const auto& entry : fs::directory_iterator(scene / "run"))
    if (entry.path().filename().string().starts_with("step")) fs::remove_all(entry.path());
  REQUIRE(scene.train("source", with(saves, {"stop_at=3", "--resume", "latest"})).code == 0);

  const Words audit = {"audit", (scene / "run").string(), "--json"};
  const auto ended = harness(scene / "audit", audit);
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK(Json::parse(ended.out).at("stretches").at(0).at("started_from") ==
        (scene / "source" / "step1").string());

  fs::remove_all(scene / "source" / "step1");
  check_refused(harness(scene / "audit-again", audit), 3, {"began from", "step3", "holds others"});
}

TEST_CASE("a run that has lost the rows of all of its steps is refused as damaged", "[cli]") {
  const Audited& scene = the_run();
  const auto run = scene.copy("no-steps");
  alter(run, "DELETE FROM steps");
  check_refused(scene.audit(run), 4,
                {"has no row of a step", "finished at step 20, and the record ends at step 0"});
}

TEST_CASE("an altered field of a step is named", "[cli]") {
  const Audited& scene = the_run();
  const auto run = scene.copy("altered-field");
  alter(run, "UPDATE steps SET param_norm = param_norm * 1.0000000001 WHERE step = 7");
  check_fails(
      scene.audit(run, {"--steps", "5..8"}),
      {"step 7: param_norm was recorded as", "it was altered or damaged after the training"});
}

TEST_CASE("an audit with other token files names them, and no operation", "[cli]") {
  const Audited& scene = the_run();
  const TemporaryDirectory elsewhere;
  auto ids = token_ids<std::uint16_t>();
  for (auto& id : ids) id = static_cast<std::uint16_t>((id + 1) % 400);
  write_tokens(elsewhere / "tokens.npy", ids);
  const auto ended =
      scene.audit(scene / "run", {"--steps", "1..2", "--data", elsewhere.path().string()});
  check_fails(ended, {"step 1: batch_hash was recorded as",
                      (elsewhere / "tokens.npy").string() + " is not the file that the run read"});
  CHECK(ended.out.find("first operation that differs") == std::string::npos);
}

TEST_CASE("an altered loss is found by the chain though its step was not asked for", "[cli]") {
  const Audited& scene = the_run();
  const auto run = scene.copy("altered-loss");
  alter(run, "UPDATE steps SET ce_loss = ce_loss + 1e-12 WHERE step = 17");
  check_fails(scene.audit(run, {"--steps", "1..2"}),
              {"step 17: ce_loss was recorded as", "step 17: chain_hash"});
}

TEST_CASE("an altered hash of the state is named by its tensor", "[cli]") {
  const Audited& scene = the_run();
  const auto run = scene.copy("altered-hash");
  alter(run,
        "UPDATE state_hashes SET sha256 = replace(sha256, substr(sha256, 1, 1), 'x') WHERE step = "
        "15 AND part = 'model' AND name LIKE '%blocks.1.ff_out.weight'");
  check_fails(scene.audit(run, {"--steps", "1..2"}),
              {"step 15: model/transformer.blocks.1.ff_out.weight has the SHA-256 x"});
}

TEST_CASE("rows that every training records are missed by an audit, too", "[cli]") {
  const Audited& scene = the_run();
  const auto run = scene.copy("no-ranks");
  alter(run, "DELETE FROM ranks");
  check_fails(scene.audit(run, {"--steps", "1..2"}), {"rows of ranks were removed"});
}

TEST_CASE("an altered config is damage", "[cli]") {
  const Audited& scene = the_run();
  for (const char* sql :
       {"UPDATE runs SET config = replace(config, '\"learning_rate\":', '\"learning_rate\":1')",
        "UPDATE runs SET experiment_digest = replace(experiment_digest, "
        "substr(experiment_digest, 1, 1), 'x')"}) {
    const auto run = scene.copy("altered-config");
    alter(run, sql);
    const auto ended = scene.audit(run);
    INFO(sql << ended.err);
    CHECK(ended.code == 4);
    CHECK(ended.err.find("the config in the record, or its digest") != std::string::npos);
    fs::remove_all(run);
  }
}

TEST_CASE("a config that cannot be read, as a newer program's, is refused and no damage", "[cli]") {
  const Audited& scene = the_run();
  const auto run = scene.copy("unknown-key");
  alter(run, "UPDATE runs SET config = replace(config, '\"d_model\":', '\"d_mode1\":')");
  const auto ended = scene.audit(run);
  INFO(ended.err);
  CHECK(ended.code == 2);
  CHECK(ended.says("`model.d_mode1` is not a key"));
}

TEST_CASE("a flipped bit of a checkpoint is named by step and tensor", "[cli]") {
  const Audited& scene = the_run();
  const auto run = scene.copy("altered-checkpoint");
  const auto manifest = Json::parse(read_file(run / "step10" / "manifest.json"));
  std::streamoff place = 0;
  for (const auto& dataset : manifest.at("files").at(0).at("datasets")) {
    if (dataset.at("path") == "/model/transformer.blocks.0.att_proj.weight")
      place = dataset.at("offset").get<std::streamoff>();
  }
  REQUIRE(place > 0);
  flip_bit(run / "step10" / "checkpoint.h5", place + 5);
  check_fails(scene.audit(run, {"--steps", "12..13"}),
              {"step 10: ", "transformer.blocks.0.att_proj.weight"});
}

TEST_CASE("a checkpoint that was replaced by a sound one is not trusted", "[cli]") {
  const Audited& scene = the_run();
  REQUIRE(scene.train("other", {"seed=1", "save_interval=10"}).code == 0);
  const auto run = scene.copy("replaced-checkpoint");
  fs::remove_all(run / "step10");
  fs::copy(scene / "other" / "step10", run / "step10", fs::copy_options::recursive);
  check_fails(scene.audit(run, {"--steps", "11..12"}),
              {"step 10: ", "its manifest is not the recorded one", "step 10: model/transformer"});
}

TEST_CASE("a training with a faulty kernel is traced to that operation", "[cli]") {
  const Audited& scene = the_run();
  Words words = scene.command("faulty", {"save_interval=10"});
  words.front() = OLMO_PATCHED_BINARY;
  REQUIRE(Child(words, scene / "faulty-log").wait().code == 0);
  check_fails(scene.audit(scene / "faulty", {"--steps", "1..3"}),
              {"step 1: operation micro_batch.0/backward/blocks.1.swiglu.grad: its output differs",
               "step 2: ce_loss was recorded as",
               "first operation that differs: micro_batch.0/backward/blocks.1.swiglu.grad"});
}

TEST_CASE("traces of two machines are compared without computing", "[cli]") {
  const Audited& scene = the_run();
  const auto run = scene.copy("traced");
  Words words = scene.command("faulty-too", {"save_interval=10"});
  words.front() = OLMO_PATCHED_BINARY;
  REQUIRE(Child(words, scene / "faulty-too-log").wait().code == 0);
  const auto compare = [&](const std::string& other) {
    return harness(scene / "compared",
                   {"audit", run.string(), "--against", (scene / other).string()});
  };
  const auto same = compare("run");
  INFO(same.out << same.err);
  CHECK(same.code == 0);
  CHECK(same.out.find("TRACES AGREE") != std::string::npos);
  const auto different = compare("faulty-too");
  CHECK(different.code == 5);
  CHECK(different.out.find("step 1: micro_batch.0/backward/blocks.1.swiglu.grad") !=
        std::string::npos);
}

TEST_CASE("an audit can be recorded with the traces of its steps", "[cli]") {
  const Audited& scene = the_run();
  const auto run = scene.copy("recorded");
  REQUIRE(scene.audit(run, {"--steps", "3..4", "--trace", "--record"}).code == 0);
  const Record record(run / "run.db");
  CHECK(record.rows("SELECT audit, first_step, last_step, verdict, ce_loss_distance FROM audits") ==
        Words{"1|3|4|identical|0.000000"});
  CHECK(record.rows("SELECT DISTINCT step FROM op_traces WHERE audit = 1 ORDER BY step") ==
        Words{"3", "4"});
}

TEST_CASE("a run under fast passes with its own bits or within the envelope", "[cli]") {
  const Audited& scene = the_run();
  REQUIRE(scene.train("fast", {"numerics=fast", "save_interval=10"}).code == 0);
  const auto same = scene.audit(scene / "fast", {"--steps", "1..6", "--threads", "1"});
  INFO(same.out << same.err);
  CHECK(same.code == 0);
  CHECK(same.out.find("first operation that differs") == std::string::npos);
  // A loss that rounding does not explain.
  const auto run = scene / "fast-altered";
  fs::copy(scene / "fast", run, fs::copy_options::recursive);
  alter(run, "UPDATE steps SET ce_loss = ce_loss + 1e-3 WHERE step = 4");
  check_fails(scene.audit(run, {"--steps", "1..6"}), {"step 4: ce_loss was recorded as"});
}

TEST_CASE("audit refuses what it cannot do in one sentence", "[cli]") {
  const Audited& scene = the_run();
  const auto refused = [&](const Words& more, const std::string& sentence) {
    const auto ended = scene.audit(scene / "run", more);
    INFO(ended.err);
    CHECK(ended.code == 2);
    CHECK(ended.err.find(sentence) != std::string::npos);
  };
  refused({"--steps", "19..21"}, "--steps must lie within the recorded steps 1..20, got 19..21");
  refused({"--steps", "five"}, "--steps must be A..B or one step, got 'five'");
  refused({"--steps", "9..3"}, "--steps 9..3 ends before it begins");
  refused({"optimizer.learning_rate=1"}, "is another experiment");
}

}  // namespace olmo::test

// What `--resume` goes on with: the run of its folder, the newest sound checkpoint, and only what
// the record vouches for.
#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "store/checkpoint/checkpoint.h"
#include "store/database/sqlite.h"
#include "support/catch.h"
#include "support/says.h"

namespace olmo::test {
namespace {

/// A run of four steps with checkpoints at 0, 2 and 4.
struct FourSteps : Scene {
  FourSteps() { REQUIRE(train("run", {"save_interval=2", "stop_after=4"}).code == 75); }

  [[nodiscard]] Ended resume(const Words& more = {}) const {
    Words words = {"save_interval=2", "--resume", "latest"};
    words.insert(words.end(), more.begin(), more.end());
    return train("run", words);
  }
  /// Refused with this code and these words, and without a trace in the record.
  void check_refused(const Words& more, int code, const Words& sentence) const {
    const auto ended = resume(more);
    INFO(ended.err);
    CHECK(ended.code == code);
    const auto first = ended.err.find("error: ");
    REQUIRE(first != std::string::npos);
    CHECK(ended.err.find("error: ", first + 1) == std::string::npos);
    for (const auto& part : sentence) {
      INFO("must say: " << part);
      CHECK(ended.says(part));
    }
    CHECK_FALSE(fs::exists(*this / "run" / "step6"));
  }
  void damage_record(const std::string& sql) const {
    store::Database(*this / "run" / "run.db", store::OpenMode::kReadWrite).execute(sql);
  }
  void damage_manifest(const std::string& step) const {
    std::ofstream(*this / "run" / step / "manifest.json", std::ios::app) << "x";
  }
  [[nodiscard]] std::string events(const std::string& kind) const {
    std::string text;
    for (const auto& row :
         record("run").rows("SELECT message FROM events WHERE kind = '" + kind + "'"))
      text += row + "\n";
    return text;
  }
};

}  // namespace

TEST_CASE("a run belongs to its folder, not to the database that it shares", "[cli]") {
  const Scene scene;
  const std::string database = (scene / "all.db").string();
  const auto train = [&](const std::string& name, const std::string& stop_at) {
    return scene.train(name, {"--db", database, "--resume", "latest", stop_at});
  };
  const auto runs = [&] {
    return Record(database).value(
        "SELECT count(*) || ' of ' || group_concat(attempts, ', ') FROM (SELECT attempts FROM "
        "run_overview ORDER BY created_utc, run_id)");
  };
  // The first is killed before it has saved anything: its folder knows its run all the same.
  StoppingChild killed(scene.command("a", {"--db", database, "no_pre_train_checkpoint=true"}),
                       scene / "a-log", "step 1/");
  REQUIRE(killed.stops());
  killed.signal(SIGKILL);
  killed.wait();
  REQUIRE(train("b", "stop_at=2").code == 0);
  CHECK(runs() == "2 of 1, 1");
  REQUIRE(train("a", "stop_at=2").code == 0);
  CHECK(runs() == "2 of 2, 1");

  fs::copy(scene / "a", scene / "copy",
           fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  const auto copy = train("copy", "stop_at=3");
  INFO(copy.err);
  CHECK(copy.code == 2);
  CHECK((copy.says("is a copy of") && copy.says("load_path=")));
  fs::remove_all(scene / "copy");
  fs::rename(scene / "a", scene / "moved");
  CHECK(train("moved", "stop_at=3").code == 0);
  CHECK(runs() == "2 of 3, 1");
  CHECK(Record(database).value("SELECT count(*) FROM events WHERE kind = 'moved'") == "1");
  const auto other =
      scene.train("b", {"--db", database, "--resume", (scene / "moved" / "step3").string()});
  INFO(other.err);
  CHECK(other.code == 2);
  CHECK(other.says("belongs to the run"));
}

TEST_CASE("a token file that contradicts its sidecar is refused with both values", "[cli]") {
  const Scene scene;
  const auto digest = sha256_file(scene / "tokens.npy").hex();
  const auto train_beside = [&](const std::string& sha256) {
    std::ofstream(scene / "tokens.npy.json") << Json{{"sha256", sha256}, {"tokens", 64 * 32}};
    return scene.train("run", {"stop_at=1"});
  };
  const std::string other(64, 'a');
  const auto ended = train_beside(other);
  INFO(ended.err);
  CHECK(ended.code == 3);
  CHECK((ended.says("tokens.npy") && ended.says(digest) && ended.says(other)));
  CHECK_FALSE(fs::exists(scene / "run"));
  CHECK(train_beside(digest).code == 0);
}

TEST_CASE("a resume refuses other tokens and other numerics, and names what it allows", "[cli]") {
  const FourSteps scene;
  auto ids = token_ids<std::uint16_t>();
  ids[1000] ^= 1;
  write_tokens(scene / "other.npy", ids);
  fs::copy(scene / "tokens.npy", scene / "same.npy");
  const auto with = [&](const char* name) {
    return "data.paths=[" + (scene / name).string() + "]";
  };
  const auto before = sha256_file(scene / "tokens.npy").hex();
  const auto now = sha256_file(scene / "other.npy").hex();
  scene.check_refused({with("other.npy")}, 3, {"other.npy", before, now});
  scene.check_refused({"numerics=fast"}, 2, {"numerics=portable", "load_path="});
  CHECK(scene.record("run").value("SELECT count(*) FROM attempts") == "1");
  const auto ended = scene.resume({with("same.npy"), "threads=2", "stop_at=6"});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  CHECK(scene.record("run").steps() == "1..6");
  const auto changes = scene.events("change");
  INFO(changes);
  CHECK(says(changes, "same.npy, with the same content"));
  CHECK(says(changes, "`threads` was 1, is 2"));
  CHECK(says(changes, "`stop_at` was null, is 6"));
}

TEST_CASE("a record that is lost, older or altered is not gone on with", "[cli]") {
  const FourSteps scene;
  const auto database = scene / "run" / "run.db";
  const std::string way_on = "load_path=" + (scene / "run" / "step4").string();
  SECTION("lost") {
    fs::remove(database);
    scene.check_refused({}, 4, {"run.db", "lost", way_on});
    CHECK_FALSE(fs::exists(database));
    const auto other =
        scene.train("other", {"--resume", "latest", way_on, "stop_at=5", "save_interval=2"});
    INFO(other.err);
    CHECK(other.code == 0);
    CHECK(scene.record("other").steps() == "5..5");
    CHECK(scene.record("other").value("SELECT message LIKE '%/run/step4' FROM events WHERE kind = "
                                      "'start'") == "1");
  }
  SECTION("older") {
    scene.damage_record("DELETE FROM steps WHERE step > 2");
    scene.check_refused({}, 4, {"run.db", "steps 1 to 2", "step4", way_on});
  }
  SECTION("with a hole") {
    scene.damage_record("DELETE FROM steps WHERE step = 2");
    scene.check_refused({}, 4, {"run.db", "steps 1 to 1", way_on});
  }
  SECTION("altered") {
    scene.damage_record("UPDATE steps SET ce_loss = ce_loss + 1 WHERE step = 3");
    scene.check_refused({}, 4, {"run.db", "step 3", "altered", way_on});
  }
  SECTION("torn") {
    fs::resize_file(database, fs::file_size(database) / 8192 * 4096);
    scene.check_refused({}, 4, {"run.db"});
  }
}

TEST_CASE("the newest sound checkpoint is taken, and the record says which were not", "[cli]") {
  const FourSteps scene;
  SECTION("a damaged tensor") {
    const auto at = store::CheckpointReader(scene / "run" / "step4").datasets().at(0).offset;
    std::fstream(scene / "run" / "step4" / "checkpoint.h5",
                 std::ios::binary | std::ios::in | std::ios::out)
        .seekp(static_cast<std::streamoff>(at) + 100)
        .write("????", 4);
  }
  SECTION("a damaged manifest") { scene.damage_manifest("step4"); }
  const auto ended = scene.resume({"stop_at=6"});
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK((ended.says("warning: ") && ended.says("step4") && ended.says("step2")));
  const auto event = scene.events("fallback");
  INFO(event);
  CHECK((says(event, "step4") && says(event, "step2")));
  const auto record = scene.record("run");
  CHECK(record.value("SELECT start_step FROM attempts WHERE attempt = 2") == "2");
  CHECK(record.steps() == "1..6");
  CHECK(record.value("SELECT count(DISTINCT chain_hash) FROM steps WHERE step = 4") == "1");
}

TEST_CASE("a checkpoint of a line of steps that was left is not gone on with", "[cli]") {
  const FourSteps scene;
  REQUIRE(scene.train("run", {"--resume", (scene / "run" / "step2").string(), "stop_at=3"}).code ==
          0);
  scene.damage_manifest("step3");  // what is left: step4, which the run left for step3
  const auto ended = scene.resume({"stop_at=3"});
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK(says(scene.events("fallback"), "line of steps"));
  CHECK(scene.record("run").value("SELECT start_step FROM attempts WHERE attempt = 3") == "2");
  CHECK(scene.record("run").steps() == "1..3");
}

TEST_CASE("under fast a resume keeps what decides its bits", "[cli]") {
  const Scene scene;
  REQUIRE(scene.train("run", {"numerics=fast", "stop_after=1"}).code == 75);
  const auto ended = scene.train("run", {"numerics=fast", "threads=2", "--resume", "latest"});
  INFO(ended.err);
  CHECK(ended.code == 2);
  CHECK((ended.says("`threads`") && ended.says("was 1, is 2")));
}

TEST_CASE("nothing starts anew beside checkpoints that are all damaged", "[cli]") {
  const FourSteps scene;
  for (const char* step : {"step0", "step2", "step4"}) scene.damage_manifest(step);
  scene.check_refused({}, 4, {"step0/", "step2/", "step4/"});
  const auto fresh = scene.train("run", {"save_interval=2"});
  INFO(fresh.err);
  CHECK(fresh.code == 2);
  CHECK_FALSE(fresh.says("save_overwrite"));
  CHECK(scene.record("run").value("SELECT count(*) FROM attempts") == "1");
}

TEST_CASE("a run that takes over the weights alone is recorded from its own step 0", "[cli]") {
  const FourSteps scene;
  const auto start_step = [&](const std::string& run, Words more) {
    more.insert(more.end(), {"load_path=" + (scene / "run" / "step4").string(), "stop_after=1"});
    const auto ended = scene.train(run, more);
    INFO(ended.err);
    CHECK(ended.code == 75);
    return scene.record(run).value("SELECT start_step FROM attempts");
  };
  CHECK(start_step("whole", {}) == "4");
  CHECK(start_step("weights", {"reset_optimizer_state=true", "reset_trainer_state=true"}) == "0");
  CHECK(scene.record("weights").steps() == "1..1");
}

TEST_CASE(
    "a branch with larger batches goes on in the data, as do its resumes, its record and audits",
    "[cli]") {
  const FourSteps scene;
  const Words settings = {"load_path=" + (scene / "run" / "step2").string(),
                          "global_train_batch_size=12", "fast_forward_batches=1", "stop_at=7",
                          "save_interval=2"};
  const auto train = [&](const std::string& run, const Words& more) {
    Words words = settings;
    words.insert(words.end(), more.begin(), more.end());
    auto ended = scene.train(run, words);
    INFO(ended.err);
    CHECK(ended.code == (more.empty() || more[0] == "--resume" ? 0 : 75));
    return ended;
  };
  CHECK(train("whole", {}).says("note: the data go on with instance 28 of epoch 0; "));
  train("parts", {"stop_after=3"});
  train("parts", {"--resume", "latest"});
  CHECK(scene.record("parts").proof() == scene.record("whole").proof());
  const auto record = scene.record("parts");
  CHECK(record.rows("SELECT start_step, start_epoch, start_instance FROM attempts") ==
        Words{"2|0|28", "5|0|64"});
  // Sixty-four instances: three batches of twelve after the 28th, then the next epoch.
  CHECK(record.value("SELECT group_concat(epoch) FROM surviving_steps") == "0,0,0,1,1");
  for (const char* step : {"3", "6"}) {
    const auto seen = harness(
        scene / "log", {"data", "inspect", (scene / "parts").string(), "--step", step, "--json"});
    CHECK(Json::parse(seen.out).at("batch_hash") ==
          record.value("SELECT batch_hash FROM surviving_steps WHERE step = " + std::string(step)));
  }
  CHECK(harness(scene / "log", {"report", "run", (scene / "parts").string()}).code == 0);
  CHECK(harness(scene / "log", {"audit", (scene / "parts").string(), "--steps", "5..7"}).code == 0);
  store::Database(scene / "parts" / "run.db", store::OpenMode::kReadWrite)
      .execute("UPDATE attempts SET start_instance = 52 WHERE attempt = 2");
  const auto altered = harness(scene / "log", {"report", "run", (scene / "parts").string()});
  CHECK(altered.code == 4);
}

TEST_CASE("a run that takes over weights and moments alone begins its steps and data anew",
          "[cli]") {
  const FourSteps scene;
  const Words settings = {"load_path=" + (scene / "run" / "step2").string(), "epoch=1",
                          "stop_at=2"};
  const auto run = [&](const std::string& name, const std::string& setting) {
    Words words = settings;
    words.push_back(setting);
    const auto ended = scene.train(name, words);
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    CHECK(scene.record(name).value("SELECT start_step || ' ' || start_instance FROM attempts") ==
          "0 0");
    CHECK(harness(scene / "log", {"report", "run", (scene / name).string()}).code == 0);
    return scene.record(name).value("SELECT group_concat(epoch) FROM surviving_steps");
  };
  CHECK(run("anneal", "restore_dataloader=false") == "0,0");  // as in OLMo
  CHECK(run("reset", "reset_trainer_state=true") == "1,1");
  for (const auto& [name, tensor] : store::read_checkpoint(scene / "anneal" / "step2").optim)
    if (name.starts_with("step/")) CHECK(host_value<std::int64_t>(tensor) == 4);  // two and two
}

TEST_CASE("a run that takes over weights and counters alone warms up anew, and so do its resumes",
          "[cli]") {
  const FourSteps scene;
  const std::string from = "load_path=" + (scene / "run" / "step2").string();
  const Words settings = {"reset_optimizer_state=true", "scheduler.t_warmup=2", "stop_at=6",
                          "save_interval=1"};
  const auto train = [&](const std::string& run, const Words& more) {
    Words words = settings;
    words.insert(words.end(), more.begin(), more.end());
    return scene.train(run, words);
  };
  REQUIRE(train("whole", {from}).code == 0);
  REQUIRE(train("parts", {from, "stop_after=1"}).code == 75);
  // Without load_path the learning rate would be another.
  CHECK(train("parts", {"--resume", "latest"}).code == 2);
  REQUIRE(train("parts", {from, "--resume", "latest"}).code == 0);
  const auto record = scene.record("parts");
  CHECK(record.proof() == scene.record("whole").proof());
  CHECK(record.steps() == "3..6");
  CHECK(record.value("SELECT 2 * min(lr) = max(lr) FROM surviving_steps WHERE step <= 4") == "1");
  for (const auto& [name, tensor] : store::read_checkpoint(scene / "parts" / "step6").optim)
    if (name.starts_with("step/")) CHECK(host_value<std::int64_t>(tensor) == 4);
  const auto passes = [&](const Words& words) { return harness(scene / "log", words).code == 0; };
  CHECK(passes({"report", "run", (scene / "parts").string()}));
  CHECK(passes({"audit", (scene / "parts").string(), "--steps", "3..6"}));
  store::Database(scene / "parts" / "run.db", store::OpenMode::kReadWrite)
      .execute("UPDATE steps SET lr = 2 * lr WHERE step = 3");
  CHECK(harness(scene / "log", {"report", "run", (scene / "parts").string()}).code == 4);
}

TEST_CASE("a branch is a run of its own whose record tells the state that it began from", "[cli]") {
  const FourSteps scene;
  const std::string checkpoint = (scene / "run" / "step2").string();
  const auto branch = scene.train("branch", {"--branch-from", checkpoint, "stop_after=1"});
  INFO(branch.err);
  REQUIRE(branch.code == 75);
  const auto record = scene.record("branch");
  CHECK(record.steps() == "3..3");
  CHECK(record.value("SELECT resumed_from FROM attempts") == checkpoint);
  const auto hashes = "SELECT sha256 FROM state_hashes WHERE step = 2 ORDER BY part, name";
  CHECK_FALSE(record.rows(hashes).empty());
  const auto again = scene.train("again", {"--branch-from", checkpoint, "stop_after=1"});
  REQUIRE(again.code == 75);
  CHECK(scene.record("again").rows(hashes) == record.rows(hashes));
  // Sound, though the chain before its first step lies in the checkpoint.
  const auto shown = harness(scene / "log", {"report", "run", (scene / "branch").string()});
  CHECK(shown.code == 0);
  CHECK_FALSE(says(shown.out, "damage"));
  CHECK_FALSE(says(shown.out, "seal"));

  const auto both = scene.train("both", {"--branch-from", checkpoint, "load_path=elsewhere"});
  CHECK(both.code == 2);
  CHECK(both.says("leave out --resume and load_path"));
}

TEST_CASE("a finished run that is resumed says so and gets no attempt", "[cli]") {
  const Scene scene;
  REQUIRE(scene.train("run", {"stop_at=2"}).code == 0);
  const auto ended = scene.train("run", {"stop_at=2", "--resume", "latest"});
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK(ended.says("finished at step 2"));
  CHECK_FALSE(ended.says("ce_loss"));
  CHECK(scene.record("run").value("SELECT count(*) || ' ' || max(outcome) FROM attempts") ==
        "1 finished");
}

TEST_CASE("a stopped training says a command that goes on, however it began", "[cli]") {
  const FourSteps scene;
  const std::string older = (scene / "run" / "step2").string();
  for (const auto& [name, words] : std::vector<std::pair<std::string, Words>>{
           {"run", {"stop_after=1", "--resume=" + older}},
           {"branch", {"stop_after=1", "--branch-from", older}}}) {
    INFO(name);
    const auto stopped = scene.train(name, words);
    REQUIRE(stopped.code == 75);
    const std::string words_before = "go on with: ";
    const auto at = stopped.err.find(words_before);
    REQUIRE(at != std::string::npos);
    const auto begin = at + words_before.size();
    const auto command = stopped.err.substr(begin, stopped.err.find('\n', begin) - begin);
    CHECK(Child({"/bin/sh", "-c", command}, scene / "log").wait().code == 75);
    CHECK(scene.record(name).steps().ends_with("..4"));
  }
}

}  // namespace olmo::test

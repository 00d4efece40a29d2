// Bad input through the binary: one clear sentence on stderr, the exit code of design, nothing half
// written. Every case names the words that the sentence must have.
#include <limits>

#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <zlib.h>

#include "cli/given_path.h"
#include "cli/training.h"
#include "config/train_config.h"
#include "core/error.h"
#include "data/token_file.h"
#include "data/tokenizer/tokenizer.h"
#include "data/zip_file.h"
#include "import/instances.h"
#include "import/steps.h"
#include "store/checkpoint/checkpoint.h"
#include "store/database/sqlite.h"
#include "store/foreign/safetensors.h"
#include "support/catch.h"

namespace olmo::test {
namespace {

/// One line that begins with "error: ", beside notes and progress.
void check_one_sentence(const Ended& ended) {
  const auto first = ended.err.find("error: ");
  REQUIRE(first != std::string::npos);
  CHECK(ended.err.find("error: ", first + 1) == std::string::npos);
  CHECK(ended.err.find("terminate called") == std::string::npos);
}

/// Trains and checks that it is refused before anything is written.
void check_refused(const Scene& scene, const Words& more, int code, const Words& sentence) {
  const auto ended = scene.train("refused", more);
  INFO(ended.err);
  CHECK(ended.code == code);
  check_one_sentence(ended);
  for (const auto& part : sentence) {
    INFO("must say: " << part);
    CHECK(ended.says(part));
  }
  CHECK_FALSE(fs::exists(scene / "refused"));
}

/// A run of four steps with checkpoints at 0, 2 and 4.
void train_four(const Scene& scene) {
  REQUIRE(scene.train("run", {"save_interval=2", "stop_after=4"}).code == 75);
}

Ended verify(const Scene& scene, const std::string& checkpoint) {
  return harness(scene / "log", {"checkpoint", "verify", (scene / "run" / checkpoint).string()});
}

}  // namespace

TEST_CASE("a wrong config is refused with the key, and an unknown one with its line", "[cli]") {
  const Scene scene;
  std::ofstream(scene / "bad.json") << "{\n  \"model\": {\n    \"d_modle\": 64\n  }\n}\n";
  const auto ended = harness(scene / "log", {"train", (scene / "bad.json").string()});
  CHECK(ended.code == 2);
  CHECK(ended.says("bad.json:3"));
  CHECK(ended.says("d_modle"));
  CHECK(ended.says("d_model"));
  check_refused(scene, {"optimizer.learning_rat=1"}, 2, {"learning_rat", "learning_rate"});
  check_refused(scene, {"model.n_heads=3"}, 2, {"n_heads"});
  check_refused(scene, {"model.d_model=-64"}, 2, {"d_model"});
  check_refused(scene, {"model.d_model=4611686018427387904"}, 2, {"d_model"});
  check_refused(scene, {"device_train_microbatch_size=0"}, 2, {"device_train_microbatch_size"});
  check_refused(scene, {"--resume", (scene / "nothing").string()}, 3, {"nothing"});
}

TEST_CASE("token files that cannot be right are refused with their name", "[cli]") {
  const Scene scene;
  const auto with = [&](const std::string& bytes, const std::string& dtype = "uint16") {
    std::ofstream(scene / "bad.npy", std::ios::binary) << bytes;
    return Words{"data.paths=[" + (scene / "bad.npy").string() + "]", "data.memmap_dtype=" + dtype};
  };
  const std::string good = read_file(scene / "tokens.npy");
  check_refused(scene, {"data.paths=[/nothing/tokens.npy]"}, 3, {"/nothing/tokens.npy"});
  check_refused(scene, with(good + "x"), 3, {"bad.npy"});
  check_refused(scene, with(""), 3, {"bad.npy"});
  check_refused(scene, with("\x93NUMPY" + good), 3, {"bad.npy", "NumPy"});
  check_refused(scene, with(good.substr(0, 100)), 3, {"instance"});
  check_refused(scene, with(good, "uint32"), 3, {"bad.npy", "data.memmap_dtype=uint16"});
  auto ids = token_ids<std::uint16_t>();
  ids[700] = 513;
  write_tokens(scene / "bad.npy", ids);
  check_refused(scene, {"data.paths=[" + (scene / "bad.npy").string() + "]"}, 3,
                {"bad.npy", "513", "700"});
}

TEST_CASE("data tokenize stops at a bad line, or counts it where it is told to skip", "[cli]") {
  const Scene scene;
  const std::string tokenizer = OLMO_TEST_DATA "/data/tokenizer_small.json";
  const std::string input = (scene / "text.jsonl").string();
  std::ofstream(input) << "{\"text\": \"to be\"}\nnot json\n{\"text\": \"or not\"}\n{\"no\": 1}\n";
  const auto tokenize = [&](const Words& more) {
    Words words = {"data",        "tokenize", input,
                   "--tokenizer", tokenizer,  "--eos-token-id",
                   "0",           "--output", (scene / "out.npy").string()};
    words.insert(words.end(), more.begin(), more.end());
    return harness(scene / "log", words);
  };
  const auto stopped = tokenize({});
  CHECK(stopped.code == 3);
  CHECK(stopped.says("text.jsonl:2"));
  check_one_sentence(stopped);
  CHECK_FALSE(fs::exists(scene / "out.npy"));
  const auto skipped = tokenize({"--on-bad-line", "skip", "--json"});
  INFO(skipped.err);
  CHECK(skipped.code == 0);
  const Json report = Json::parse(skipped.out);
  INFO(report.dump());
  CHECK(report.dump().find("text.jsonl") != std::string::npos);
  const Json sidecar = Json::parse(read_file(scene / "out.npy.json"));
  INFO(sidecar.dump(2));
  CHECK(sidecar.dump().find("skip") != std::string::npos);
}

TEST_CASE("one document is 1 document, and one bad line 1 bad line", "[cli]") {
  const Scene scene;
  std::ofstream(scene / "text.jsonl") << "{\"text\": \"to be\"}\nnot json\n";
  const auto ended =
      harness(scene / "log", {"data", "tokenize", (scene / "text.jsonl").string(), "--tokenizer",
                              OLMO_TEST_DATA "/data/tokenizer_small.json", "--eos-token-id", "0",
                              "--on-bad-line", "skip", "--output", (scene / "a.npy").string()});
  INFO(ended.out << ended.err);
  CHECK(ended.code == 0);
  CHECK(ended.out.find(" 1 document, sha256 ") != std::string::npos);
  CHECK(ended.out.find("1 bad line was skipped: ") != std::string::npos);
}

TEST_CASE("data tokenize suggests a command that takes the file whatever its name", "[cli]") {
  const Scene scene;
  std::ofstream(scene / "text.jsonl") << "{\"text\": \"to be\"}\n";
  const auto file = (scene / "a, b #1.npy").string();
  const auto ended =
      harness(scene / "log", {"data", "tokenize", (scene / "text.jsonl").string(), "--tokenizer",
                              OLMO_TEST_DATA "/data/tokenizer_small.json", "--eos-token-id", "0",
                              "--output", file});
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK(ended.err.find("'data.paths=[\"" + file + "\"]'") != std::string::npos);
}

TEST_CASE("data tokenize refuses a gzip file that is cut or changed and writes nothing", "[cli]") {
  const Scene scene;
  const std::string whole = (scene / "text.jsonl.gz").string();
  gzFile file = gzopen(whole.c_str(), "wb");
  for (int i = 0; i < 2000; ++i) {
    const std::string line = "{\"text\": \"line " + std::to_string(i * i) + "\"}\n";
    gzwrite(file, line.data(), static_cast<unsigned>(line.size()));
  }
  gzclose(file);
  const std::string bytes = read_file(whole);
  std::string changed = bytes;
  changed[bytes.size() / 2] = static_cast<char>(changed[bytes.size() / 2] ^ 0x55);
  const auto half = bytes.substr(0, bytes.size() / 2);
  for (const auto& bad : {half, changed, std::string("plain")}) {
    std::ofstream(whole, std::ios::binary) << bad;
    const auto ended =
        harness(scene / "log", {"data", "tokenize", whole, "--tokenizer",
                                OLMO_TEST_DATA "/data/tokenizer_small.json", "--eos-token-id", "0",
                                "--output", (scene / "out.npy").string()});
    INFO(ended.err);
    CHECK(ended.code == 3);
    CHECK(ended.says("text.jsonl.gz"));
    check_one_sentence(ended);
    CHECK_FALSE(fs::exists(scene / "out.npy"));
    CHECK_FALSE(fs::exists(scene / "out.npy.json"));
  }
}

TEST_CASE("a tokenizer that disagrees with the config's EOS stops the run unless it is allowed",
          "[cli]") {
  const Scene scene;
  std::string tokenizer = read_file(OLMO_TEST_DATA "/data/tokenizer_small.json");
  for (std::size_t at; (at = tokenizer.find("<|end|>")) != std::string::npos;)
    tokenizer.replace(at, 7, "<|endoftext|>");
  std::ofstream(scene / "tokenizer.json") << tokenizer;
  const Words words = {"tokenizer.identifier=" + (scene / "tokenizer.json").string(),
                       "model.vocab_size=720", "model.embedding_size=768", "stop_at=1"};
  check_refused(scene, words, 2, {"eos_token_id", "allow_eos_mismatch"});
  Words allowed = words;
  allowed.push_back("allow_eos_mismatch=true");
  const auto ended = scene.train("allowed", allowed);
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK(scene.record("allowed").value("SELECT count(*) FROM events WHERE kind = 'note' AND message "
                                      "LIKE '%allow_eos_mismatch%'") == "1");
}

namespace {

/// nan.safetensors: weights of which one is not a number.
void write_nan_weights(const Scene& scene) {
  REQUIRE(scene.train("first", {"stop_at=1"}).code == 0);
  auto weights = store::read_checkpoint(scene / "first" / "step0", /*weights_only=*/true).model;
  weights.front().tensor.view({-1})[5] = std::numeric_limits<float>::quiet_NaN();
  store::write_safetensors(scene / "nan.safetensors", weights);
}

}  // namespace

TEST_CASE("a loss that is not finite stops before the update and names the batch", "[cli]") {
  const Scene scene;
  SECTION("weights of NaN: before step 1, with nothing saved") {
    write_nan_weights(scene);
    const auto ended = scene.train("nan", {"load_weights=" + (scene / "nan.safetensors").string()});
    INFO(ended.err);
    CHECK(ended.code == 6);
    check_one_sentence(ended);
    CHECK(ended.says("step 0: transformer.wte.weight is not finite"));
    const auto record = scene.record("nan");
    CHECK(record.value("SELECT status FROM runs") == "diverged");
    CHECK(record.value("SELECT count(*) FROM steps") == "0");
    CHECK(record.value("SELECT count(*) FROM checkpoints") == "0");
  }
  SECTION("weights of NaN, where nothing is saved before step 1: the batch is named") {
    write_nan_weights(scene);
    const auto ended = scene.train("nan", {"load_weights=" + (scene / "nan.safetensors").string(),
                                           "no_pre_train_checkpoint=true"});
    INFO(ended.err);
    CHECK(ended.code == 6);
    CHECK((ended.says("step 1") && ended.says("instances ")));
    CHECK(scene.record("nan").value("SELECT count(*) FROM events WHERE kind = 'error' AND message "
                                    "LIKE '%instances%'") != "0");
  }
  SECTION("a learning rate that blows up: the last checkpoint stays and diverges again") {
    const Words wild = {"optimizer.learning_rate=1e38", "scheduler.t_warmup=0", "save_interval=1"};
    const auto ended = scene.train("wild", wild);
    INFO(ended.err);
    CHECK(ended.code == 6);
    CHECK(ended.says("not finite after the update"));
    CHECK(scene.record("wild").value("SELECT max(step) FROM checkpoints") == "0");
    Words again = wild;
    again.insert(again.end(), {"--resume", "latest"});
    CHECK(scene.train("wild", again).code == 6);
  }
}

TEST_CASE("a run directory that cannot be written is one sentence", "[cli]") {
  const Scene scene;
  std::ofstream(scene / "file") << "x";
  for (const std::string& folder : {(scene / "file" / "run").string(), std::string("/proc/run")}) {
    auto words = scene.command("refused", {});
    words.at(words.size() - 1) = folder;
    const auto ended = Child(words, scene / "log").wait();
    INFO(ended.err);
    CHECK(ended.code == 2);
    check_one_sentence(ended);
    // The level that is in the way is named.
    CHECK(ended.says(folder.starts_with("/proc") ? folder : (scene / "file").string()));
  }
}

TEST_CASE("a run directory that holds another run's checkpoints is not written to", "[cli]") {
  const Scene scene;
  train_four(scene);
  const auto before = read_file(scene / "run" / "step4" / "manifest.json");
  const auto ended = scene.train("run", {});
  CHECK(ended.code == 2);
  check_one_sentence(ended);
  CHECK(ended.says("--resume latest"));
  CHECK(scene.record("run").value("SELECT count(*) FROM runs") == "1");
  CHECK(read_file(scene / "run" / "step4" / "manifest.json") == before);
}

TEST_CASE("a full disk while saving fails the run and leaves earlier checkpoints whole", "[cli]") {
  const Scene scene;
  train_four(scene);
  const auto ended = scene.train(
      "run", {"save_interval=2", "save_failures_allowed=0", "--resume", "latest"}, 1 << 20);
  INFO(ended.err);
  CHECK(ended.code == 1);
  check_one_sentence(ended);
  CHECK(ended.says("step6"));
  CHECK_FALSE(fs::exists(scene / "run" / "step6"));
  CHECK(verify(scene, "step2").code == 0);
  CHECK(verify(scene, "step4").code == 0);
  const auto record = scene.record("run");
  CHECK(record.value("SELECT status FROM runs") == "failed");
  CHECK(record.value("SELECT count(*) FROM events WHERE kind = 'error'") == "1");
  CHECK(scene.train("run", {"save_interval=2", "--resume", "latest"}).code == 0);
  CHECK(scene.record("run").steps() == "1..20");
}

TEST_CASE("a damaged checkpoint is refused at resume", "[cli]") {
  const Scene scene;
  train_four(scene);
  const auto path = scene / "run" / "step4" / "checkpoint.h5";
  std::string bytes = read_file(path);
  const auto at = store::CheckpointReader(scene / "run" / "step4").datasets().at(0).offset;
  bytes[at + 100] = static_cast<char>(bytes[at + 100] ^ 1);
  std::ofstream(path, std::ios::binary) << bytes;
  const auto ended = scene.train("run", {"--resume", (scene / "run" / "step4").string()});
  INFO(ended.err);
  CHECK(ended.code == 4);
  check_one_sentence(ended);
  CHECK(ended.says("step4"));
  CHECK(verify(scene, "step4").code == 5);
}

TEST_CASE("resuming with another config names the keys that differ", "[cli]") {
  const Scene scene;
  train_four(scene);
  const auto ended = scene.train(
      "run", {"optimizer.learning_rate=2e-3", "model.rope_theta=500", "--resume", "latest"});
  INFO(ended.err);
  CHECK(ended.code == 2);
  CHECK(ended.says("optimizer.learning_rate"));
  CHECK(ended.says("model.rope_theta"));
  CHECK(scene.record("run").value("SELECT count(*) FROM attempts") == "1");
}

TEST_CASE("a database that is newer, damaged or foreign is refused", "[cli]") {
  const Scene scene;
  REQUIRE(scene.train("run", {"stop_at=1", "save_interval=1000"}).code == 0);
  const auto database = scene / "run" / "run.db";
  const auto check_damaged = [&](const std::string& word) {
    for (const Words& words : std::vector<Words>{{"runs", "export", database.string()},
                                                 {"runs", "list", database.string()}}) {
      const auto ended = harness(scene / "log", words);
      INFO(ended.err);
      CHECK(ended.code == 4);
      check_one_sentence(ended);
      CHECK(ended.says(word));
    }
    const auto ended = scene.train("other", {"--db", database.string()});
    INFO(ended.err);
    CHECK(ended.code == 4);
    CHECK_FALSE(fs::exists(scene / "other" / "step0"));
  };
  SECTION("of a newer schema") {
    auto db = store::Database(database, store::OpenMode::kReadWrite);
    db.execute("PRAGMA user_version = 99");
    check_damaged("99");
  }
  SECTION("overwritten") {
    std::fstream file(database, std::ios::binary | std::ios::in | std::ios::out);
    for (int i = 0; i < 4096; ++i) file.put('x');
    file.close();
    check_damaged("run.db");
  }
  SECTION("cut") {
    fs::resize_file(database, 5000);
    check_damaged("run.db");
  }
  SECTION("without a table or a column of its version") {
    const std::string change =
        GENERATE("DROP TABLE steps", "ALTER TABLE runs RENAME COLUMN config TO configuration");
    store::Database(database, store::OpenMode::kReadWrite).execute(change);
    const auto ended = harness(scene / "log", {"report", "run", database.string()});
    CHECK(ended.code == 4);
    check_one_sentence(ended);
    CHECK(ended.says("its tables are not those of its version"));
  }
}

TEST_CASE("no reader waits for a pipe, or takes a folder for a file", "[cli]") {
  const TemporaryDirectory folder;
  const fs::path pipe = folder / "pipe.json";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  fs::create_directory(folder / "checkpoint");
  REQUIRE(::mkfifo((folder / "checkpoint" / "manifest.json").c_str(), 0600) == 0);
  CHECK_THROWS_AS(store::CheckpointReader(folder / "checkpoint"), Error);
  for (const fs::path& path : {pipe, folder.path(), fs::path("/dev/zero")}) {
    INFO(path);
    CHECK_THROWS_AS(config::load_config(path, {}), Error);
    CHECK_THROWS_AS(read_json_file(path), Error);
    CHECK_THROWS_AS(data::Tokenizer::load(path), Error);
    CHECK_THROWS_AS(data::TokenFile(path, data::TokenDtype::kUint16), Error);
    CHECK_THROWS_AS(data::unpack_zip(path, folder / "out", nullptr), Error);
    CHECK_THROWS_AS(store::SafetensorsFile(path), Error);
    CHECK_THROWS_AS(store::RunDb::open(path, store::OpenMode::kReadOnly), Error);
    CHECK_THROWS_AS(store::RunDb::open(path, store::OpenMode::kCreate), Error);
    CHECK_FALSE(cli::is_database(path));
    CHECK_THROWS_AS(import::read_step_log(path, {}), Error);
    CHECK_THROWS_AS(import::read_instance_file(path), Error);
  }
}

TEST_CASE("a run that is a pipe or a device is refused before anybody waits for it", "[cli]") {
  const TemporaryDirectory folder;
  for (const char* name : {"pipe", "pipe.db", "run.db"})
    REQUIRE(::mkfifo((folder / name).c_str(), 0600) == 0);
  for (const auto& run : {(folder / "pipe").string(), (folder / "pipe.db").string() + ":a",
                          folder.path().string(), std::string("/dev/zero")}) {
    INFO(run);
    CHECK_THROWS_WITH(cli::require_run("runs watch", run),
                      Catch::Matchers::Contains("is not a regular file but a "));
  }
  CHECK_NOTHROW(cli::require_run("runs watch", (folder / "to_come.db").string()));
}

}  // namespace olmo::test

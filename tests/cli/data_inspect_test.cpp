#include <fstream>

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "support/catch.h"
#include "support/process.h"
#include "support/temporary_directory.h"

namespace {

using olmo::Json;
using olmo::test::Finished;
using olmo::test::TemporaryDirectory;

constexpr char kTiny[] = OLMO_SOURCE_DIR "/configs/train/tiny.json";

Finished harness(const std::string& arguments) {
  return olmo::test::run(OLMO_BINARY " " + arguments + " 2>/dev/null");
}

/// 64 instances of tiny.json, no two of them equal.
std::string write_tokens(const TemporaryDirectory& folder, const char* name,
                         std::uint16_t first = 0) {
  std::vector<std::uint16_t> ids(64 * 32);
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<std::uint16_t>((first + i * i % 491 + i / 491) % 499);
  const auto path = folder / name;
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(ids.data()),
             static_cast<std::streamsize>(ids.size() * sizeof ids[0]));
  return path.string();
}

}  // namespace

TEST_CASE("data inspect shows of a config the batch that its token files and options give",
          "[cli]") {
  const TemporaryDirectory folder;
  const auto tokens = write_tokens(folder, "a.npy");
  const auto by_config = harness(std::string("data inspect ") + kTiny + " data.paths=[" + tokens +
                                 "] --step 3 --json");
  const auto by_files = harness("data inspect " + tokens +
                                " --step 3 --sequence-length 32 --global-batch-size 8 --seed 6198 "
                                "--eos-token-id 499 --json");
  REQUIRE(by_config.code == 0);
  REQUIRE(by_files.code == 0);
  CHECK(Json::parse(by_config.output) == Json::parse(by_files.output));
}

TEST_CASE("data inspect reads the checkpoint of load_path where that decides what a step saw",
          "[cli]") {
  const TemporaryDirectory folder;
  const std::string command = std::string("data inspect ") + kTiny + " data.paths=[" +
                              write_tokens(folder, "a.npy") + "] --step 3 --json";
  const std::string absent = " load_path=" + (folder / "absent").string();
  const auto anew = harness(command + absent + " restore_dataloader=false");
  REQUIRE(anew.code == 0);
  CHECK(Json::parse(anew.output) == Json::parse(harness(command).output));
  CHECK(harness(command + absent).code == 3);
}

TEST_CASE("data inspect refuses the options of token files beside a config", "[cli]") {
  const TemporaryDirectory folder;
  const auto tokens = write_tokens(folder, "a.npy");
  CHECK(harness(std::string("data inspect ") + kTiny + " data.paths=[" + tokens +
                "] --step 3 --seed 1")
            .code == 2);
}

TEST_CASE("data inspect compares the batch of a run with its record", "[cli]") {
  const TemporaryDirectory folder;
  const auto tokens = write_tokens(folder, "a.npy");
  const auto run = (folder / "run").string();
  REQUIRE(harness(std::string("train ") + kTiny + " data.paths=[" + tokens +
                  "] stop_at=2 no_pre_train_checkpoint=true --run-dir " + run)
              .code == 0);
  for (const std::string& name : {run, run + "/run.db"}) {
    const auto same = harness("data inspect " + name + " --step 2");
    CHECK(same.code == 0);
    CHECK(same.output.find("equals the record") != std::string::npos);
  }
  const auto later = harness("data inspect " + run + " --step 3 --json");
  CHECK(later.code == 0);
  CHECK(Json::parse(later.output)["recorded_batch_hash"].is_null());
  write_tokens(folder, "a.npy", 1);
  const auto changed = harness("data inspect " + run + " --step 2");
  CHECK(changed.code == 5);
  CHECK(changed.output.find("differs from the record") != std::string::npos);
}

TEST_CASE("a run whose config names its files from another folder finds them by its record",
          "[cli]") {
  const TemporaryDirectory folder;
  write_tokens(folder, "a.npy");
  REQUIRE(olmo::test::run("cd " + folder.path().string() + " && " OLMO_BINARY " train " + kTiny +
                          " data.paths=[a.npy] stop_at=2 --run-dir run 2>&1")
              .code == 0);
  for (const char* command : {"data inspect --step 2 ", "audit --steps 1..2 "}) {
    const auto ended = harness(command + (folder / "run").string());
    INFO(command);
    CHECK(ended.code == 0);
  }
}

TEST_CASE("a dry run tells of a tokenizer that training would refuse", "[cli]") {
  const auto plan = harness(std::string("train ") + kTiny +
                            " data.paths=[none.npy] --dry-run --json tokenizer.identifier=" +
                            OLMO_TEST_DATA "/data/tokenizer_small.json");
  CHECK(plan.code == 2);
  CHECK(Json::parse(plan.output)["problems"].dump().find("tokenizer_small.json") !=
        std::string::npos);
}

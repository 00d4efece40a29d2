#include "audit/audit.h"

#include <fstream>
#include <random>

#include <ATen/Parallel.h>

#include "core/compute/libtorch.h"
#include "dist/thread_ranks.h"
#include "store/runs/op_traces.h"
#include "store/runs/run_db.h"
#include "support/catch.h"
#include "support/temporary_directory.h"
#include "train/preparation.h"
#include "train/session.h"

namespace olmo::audit {
namespace {

AuditedRun steps_1_to(std::int64_t last) {
  AuditedRun recorded;
  for (std::int64_t step = 1; step <= last; ++step) recorded.rows[step].step = step;
  return recorded;
}

/// A training of four steps, of three micro-batches each, with two checkpoints.
config::LoadedConfig tiny_training(const test::TemporaryDirectory& folder) {
  const auto tokens = folder / "tokens.npy";
  std::mt19937 random(5);
  std::vector<std::uint16_t> ids(32 * 40);
  for (auto& id : ids) id = static_cast<std::uint16_t>(random() % 499);
  std::ofstream(tokens, std::ios::binary)
      .write(reinterpret_cast<const char*>(ids.data()),
             static_cast<std::streamsize>(ids.size() * sizeof ids[0]));
  return config::load_config(
      OLMO_SOURCE_DIR "/configs/train/tiny.json",
      {"data.paths=[" + tokens.string() + "]", "max_duration=4", "global_train_batch_size=6",
       "device_train_microbatch_size=2", "save_interval=2", "threads=1", "trace_interval=2",
       "hash_interval=2", "save_folder=" + (folder / "run").string()});
}

}  // namespace

TEST_CASE("one process audits what three ranks have recorded", "[audit]") {
  const test::TemporaryDirectory folder;
  const auto loaded = tiny_training(folder);
  const StopSignals signals;
  dist::run_ranks(3, [&](dist::Communicator& ranks) {
    at::set_num_threads(1);
    train::run_session(loaded, {folder / "run", {}, {}, "test"}, {.communicator = ranks}, signals);
  });
  const auto db = store::RunDb::open(folder / "run/run.db", store::OpenMode::kReadOnly);
  const std::string run_id = db.find_run("");
  const auto recorded = read_audited_run(db.records(), run_id);
  Policy policy = resolve_policy("portable", "auto", 1);
  policy.mixed_precision = loaded.config.mixed_precision();
  apply_policy(policy);
  const AuditOptions options{
      .database = folder / "run/run.db",
      .checkpoints = {},
      .stretches = {{1, 2}, {3, 4}},
      .recorded_trace =
          [&](std::int64_t step) { return store::read_trace(db.records(), run_id, step); },
      .trace = true};
  const auto result = audit(recorded, loaded.config, policy, options, [](const auto&) {});
  CHECK(result.broken_proofs.empty());
  REQUIRE(result.stretches.size() == 2);
  CHECK(result.verdict() == AuditVerdict::kIdentical);
  for (const auto& stretch : result.stretches) {
    CHECK(stretch.findings.empty());
    CHECK(stretch.operation.empty());
    CHECK(stretch.steps_compared == 2);
    CHECK(stretch.tensors_compared > 0);
  }
}

TEST_CASE("sampled stretches lie within the record and come again with their seed", "[audit]") {
  const auto recorded = steps_1_to(20);
  const auto stretches = sample_stretches(recorded, 50, 5, 7);
  REQUIRE(stretches.size() == 50);
  for (const auto& stretch : stretches) {
    CHECK(stretch.first >= 1);
    CHECK(stretch.last == stretch.first + 4);
    CHECK(stretch.last <= 20);
  }
  CHECK(stretches.front().first != stretches.back().first);
  const auto again = sample_stretches(recorded, 50, 5, 7);
  for (std::size_t i = 0; i < 50; ++i) CHECK(again[i].first == stretches[i].first);
  CHECK(sample_stretches(recorded, 1, 100, 7)[0].last == 20);
}

TEST_CASE("other token files are named, whatever their batches", "[audit]") {
  const test::TemporaryDirectory folder;
  const auto loaded = tiny_training(folder);
  AuditedRun recorded;
  recorded.inputs = train::describe_inputs({{"tokens", folder / "tokens.npy"}});
  CHECK(unlike_inputs(recorded, loaded.config).empty());
  std::ofstream(folder / "tokens.npy", std::ios::app) << "ab";
  const auto unlike = unlike_inputs(recorded, loaded.config);
  REQUIRE(unlike.size() == 1);
  CHECK(unlike[0].find("tokens.npy is not the file that the run read as") != std::string::npos);
  recorded.inputs.clear();
  CHECK(unlike_inputs(recorded, loaded.config) ==
        std::vector<std::string>{"the run read 0 files of tokens and label masks, here are 1"});
}

TEST_CASE("token files that a config names twice are those that the run read", "[audit]") {
  const test::TemporaryDirectory folder;
  const auto tokens = folder / "tokens.npy";
  std::ofstream(tokens).close();
  std::filesystem::resize_file(tokens, std::uintmax_t{5} << 30);  // no block of it is on the disk
  config::TrainConfig config;
  config.data.paths = {tokens.string(), tokens.string()};
  AuditedRun recorded;
  recorded.inputs = train::describe_inputs(train::data_files_of(config));
  REQUIRE(recorded.inputs.size() == 2);
  recorded.inputs.pop_back();                                // a record has each file once
  CHECK(recorded.inputs[0].sha256.starts_with("sampled:"));  // of 10 GiB in all
  CHECK(unlike_inputs(recorded, config).empty());
}

}  // namespace olmo::audit

// Trainings on ranks, stopped and gone on with on another number of ranks.
#include <fstream>

#include "cli/training.h"
#include "core/process/process.h"
#include "dist/thread_ranks.h"
#include "store/checkpoint/checkpoint.h"
#include "store/checkpoint/checkpoint_folder.h"
#include "store/checkpoint_fixture.h"
#include "store/database/sqlite.h"
#include "store/foreign/safetensors.h"
#include "support/catch.h"
#include "train/preparation.h"
#include "train/session.h"

namespace olmo::train {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using test::Words;

/// The tiny training in a folder of its own, four steps long.
struct Tiny {
  test::TemporaryDirectory folder;
  StopSignals signals;

  Tiny() { test::write_tokens(folder / "tokens.npy", test::token_ids<std::uint16_t>()); }

  /// As a user would set it for so many ranks: each number has another strategy.
  static Words strategy(int ranks) {
    if (ranks == 3) return {"distributed_strategy=fsdp", "fsdp.sharding_strategy=FULL_SHARD"};
    if (ranks == 4) {
      return {"distributed_strategy=fsdp", "fsdp.sharding_strategy=HYBRID_SHARD",
              "fsdp.hybrid_sharding_num_model_replicas=2"};
    }
    return {"distributed_strategy=ddp"};
  }

  void train(int world, const std::string& name, const Words& more, bool resume = false) {
    train_each(
        world, name, [&](int /*rank*/) { return more; }, resume);
  }
  /// With settings for each rank.
  void train_each(int world, const std::string& name, const std::function<Words(int rank)>& more,
                  bool resume = false) {
    SessionOptions options;
    options.run_dir = folder / name;
    if (resume) options.resume = "latest";
    std::vector<config::LoadedConfig> configs;
    for (int rank = 0; rank < world; ++rank) configs.push_back(config_of(world, more(rank)));
    dist::run_ranks(world, [&](dist::Communicator& ranks) {
      const auto& config = configs[static_cast<std::size_t>(ranks.rank())];
      run_session(config, options, {.communicator = ranks}, signals);
    });
  }
  [[nodiscard]] config::LoadedConfig config_of(int world, const Words& more) const {
    Words words = {"data.paths=[" + (folder / "tokens.npy").string() + "]",
                   "device_train_microbatch_size=1", "save_interval=2", "stop_at=4", "threads=1"};
    for (const auto& each : {strategy(world), more})
      words.insert(words.end(), each.begin(), each.end());
    return config::load_config(OLMO_SOURCE_DIR "/configs/train/tiny.json", words);
  }
  [[nodiscard]] test::Proof proof(const std::string& name) const {
    return test::Record(folder / name / "run.db").proof();
  }
  [[nodiscard]] Digest tensors(const std::string& name, const std::string& step) const {
    return store::CheckpointReader(folder / name / step).tensors_digest();
  }
};

TEST_CASE("a run goes on at any other number of ranks with the bits of one process", "[train]") {
  Tiny tiny;
  tiny.train(1, "straight", {});
  const auto expected = tiny.proof("straight");
  for (int before = 1; before <= 4; ++before) {
    const std::string stopped = "stopped" + std::to_string(before);
    tiny.train(before, stopped, {"stop_after=2"});
    CHECK(tiny.tensors(stopped, "step2") == tiny.tensors("straight", "step2"));
    for (int after = 1; after <= 4; ++after) {
      INFO("from " << before << " to " << after << " ranks");
      const std::string name = std::to_string(before) + "to" + std::to_string(after);
      fs::copy(tiny.folder / stopped, tiny.folder / name,
               fs::copy_options::recursive | fs::copy_options::copy_symlinks);
      tiny.train(after, name, {}, /*resume=*/true);
      CHECK(tiny.proof(name) == expected);
      CHECK(tiny.tensors(name, "step4") == tiny.tensors("straight", "step4"));
    }
  }
}

TEST_CASE("ranks pass over a damaged checkpoint together", "[train]") {
  Tiny tiny;
  tiny.train(1, "straight", {});
  tiny.train(2, "run", {"stop_after=3"});
  const auto file = tiny.folder / "run" / "step3" / "checkpoint.h5";
  const auto at = store::CheckpointReader(file.parent_path()).datasets().at(0).offset;
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary)
          .seekp(static_cast<std::streamoff>(at))
      << "damaged";
  tiny.train(3, "run", {}, /*resume=*/true);
  CHECK(tiny.proof("run") == tiny.proof("straight"));
  const test::Record record(tiny.folder / "run" / "run.db");
  CHECK_THAT(record.value("SELECT message FROM events WHERE kind = 'fallback'"),
             Contains("step3/checkpoint.h5: /model/") && Contains("is damaged"));
}

TEST_CASE("a save that one rank cannot make fails on all, as often as the config allows",
          "[train]") {
  Tiny tiny;
  fs::create_directories(tiny.folder / "run");
  std::ofstream(tiny.folder / "run" / "step2") << "in the way";
  CHECK_THROWS_WITH(tiny.train(3, "run", {"save_failures_allowed=0"}),
                    Contains("a checkpoint could not be saved: ") && Contains("step2") &&
                        Contains("`save_failures_allowed` is 0"));
  fs::create_directories(tiny.folder / "again");
  std::ofstream(tiny.folder / "again" / "step2") << "in the way";
  tiny.train(3, "again", {"save_failures_allowed=1"});
  CHECK(fs::exists(tiny.folder / "again" / "step4" / "manifest.json"));
}

TEST_CASE("ranks of another model take nothing over", "[train]") {
  Tiny tiny;
  tiny.train(2, "run", {"stop_after=2"});
  CHECK_THROWS_WITH(tiny.train(2, "run", {"model.n_layers=1"}, /*resume=*/true),
                    Contains("was made with another config") && Contains("n_layers"));
}

TEST_CASE("a record that is no JSON object, or a deep one, is named by what resumes it",
          "[train]") {
  Tiny tiny;
  tiny.train(1, "run", {"stop_after=2"});
  const std::string deep(100, '['), ends(100, ']');
  for (const auto& [change, named] :
       {std::pair{"attempts SET policy = '7'", "the policy of its last attempt: is no JSON object"},
        {"attempts SET build = '{\"a\": DEEP}'", "the build of its last attempt: is no JSON"},
        {"runs SET experiment_digest = '', config = '[]'", "its config: is no JSON object"}}) {
    INFO(change);
    fs::remove_all(tiny.folder / "copy");
    fs::copy(tiny.folder / "run", tiny.folder / "copy",
             fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    // Without a checkpoint the config is the record's.
    for (const auto& step : store::list_checkpoints(tiny.folder / "copy"))
      fs::remove_all(step.path);
    std::string sql = change;
    if (const auto at = sql.find("DEEP"); at != std::string::npos) sql.replace(at, 4, deep + ends);
    store::Database(tiny.folder / "copy/run.db", store::OpenMode::kReadWrite)
        .execute("UPDATE " + sql);
    CHECK_THROWS_WITH(tiny.train(1, "copy", {}, /*resume=*/true), Contains(named));
  }
}

TEST_CASE("a new run on ranks takes over another run's checkpoint", "[train]") {
  Tiny tiny;
  tiny.train(1, "first", {"stop_after=2"});
  const std::string from = "load_path=" + (tiny.folder / "first").string();
  const std::string settings = GENERATE("stop_at=4", "restore_dataloader=false",
                                        "reset_trainer_state=true", "fast_forward_batches=3");
  tiny.train(1, "one", {from, settings, "global_train_batch_size=6"});
  tiny.train(3, "three", {from, settings, "global_train_batch_size=6"});
  CHECK(tiny.proof("three") == tiny.proof("one"));
}

TEST_CASE("ranks begin from weights, of which each reads its part", "[train]") {
  Tiny tiny;
  tiny.train(1, "first", {"stop_after=1"});
  store::write_safetensors(tiny.folder / "weights.safetensors",
                           store::read_checkpoint(tiny.folder / "first" / "step1").model);
  const auto name = GENERATE(as<std::string>(), "weights.safetensors", "first");
  const std::string from = "load_weights=" + (tiny.folder / name).string();
  tiny.train(1, "one", {from});
  const auto world = GENERATE(2, 3, 4);
  tiny.train(world, "ranks", {from});
  CHECK(tiny.proof("ranks") == tiny.proof("one"));
}

TEST_CASE("of a run that weights are read from, the checkpoint's files are recorded", "[train]") {
  Tiny tiny;
  tiny.train(1, "first", {"stop_after=1"});
  std::vector<std::string> names;
  for (const auto& input : describe_weights(tiny.folder / "first"))
    names.push_back(fs::relative(input.path, tiny.folder.path()).string());
  CHECK(names ==
        std::vector<std::string>{"first/step1/checkpoint.h5", "first/step1/manifest.json"});
}

TEST_CASE("ranks do not begin from weights of which one rank has others", "[train]") {
  Tiny tiny;
  tiny.train(1, "first", {"stop_after=2"});
  for (const auto& [place, step] :
       {std::pair{"a", "step0"}, {"same", "step0"}, {"other", "step2"}}) {
    fs::create_directories(tiny.folder / place);
    store::write_safetensors(tiny.folder / place / "model.safetensors",
                             store::read_checkpoint(tiny.folder / "first" / step).model);
  }
  const auto train_from = [&](const std::string& name, const std::string& of_rank_1) {
    tiny.train_each(3, name, [&](int rank) -> Words {
      const std::string place = rank == 1 ? of_rank_1 : "a";
      if (place.empty()) return {};
      return {"load_weights=" + (tiny.folder / place).string()};
    });
  };
  CHECK_NOTHROW(train_from("equal", "same"));
  CHECK_THROWS_WITH(train_from("unequal", "other"), Contains("rank 1 (on ") &&
                                                        Contains("weights 0 is ") &&
                                                        Contains(" (model.safetensors) there"));
  CHECK_THROWS_WITH(train_from("lacking", ""),
                    Contains("rank 1 (on ") && Contains("load_weights is none there"));
}

TEST_CASE("weights that ranks cannot begin from are refused by all alike", "[train]") {
  Tiny tiny;
  tiny.train(1, "first", {"stop_after=1", "model.n_layers=1"});
  const std::string from = "load_weights=" + (tiny.folder / "first").string();
  CHECK_THROWS_WITH(tiny.train(2, "run", {from}), Contains("parameters, expected"));
  CHECK_THROWS_WITH(tiny.train(2, "run", {"load_weights=" + (tiny.folder / "none").string()}),
                    Contains("there are no such weights"));
}

}  // namespace
}  // namespace olmo::train

// Whole sessions on ranks that are threads: what they leave behind, and how they end.
#include "train/session.h"

#include <fstream>

#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "config/train_config.h"
#include "core/error.h"
#include "dist/agreement.h"
#include "dist/dying_rank.h"
#include "dist/thread_ranks.h"
#include "support/catch.h"
#include "support/happens.h"
#include "train/rank_plan.h"

namespace olmo::train {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using test::Words;

/// How a rank's session ended.
struct RankEnd {
  std::optional<SessionResult> result;
  std::string error;  ///< that all have agreed on, as "exit code: message"
};

/// A folder with tokens, in which the tiny config is trained for six steps of four micro-batches.
class Trainings {
 public:
  Trainings() { test::write_tokens(tokens(), test::token_ids<std::uint16_t>()); }

  [[nodiscard]] fs::path tokens() const { return folder_ / "tokens.npy"; }
  [[nodiscard]] fs::path operator/(const std::string& name) const { return folder_ / name; }

  [[nodiscard]] config::LoadedConfig config(const Words& more) const {
    Words words = {"data.paths=[" + tokens().string() + "]",
                   "threads=1",
                   "stop_at=6",
                   "save_interval=3",
                   "hash_interval=3",
                   "device_train_microbatch_size=2"};
    words.insert(words.end(), more.begin(), more.end());
    return config::load_config(OLMO_SOURCE_DIR "/configs/train/tiny.json", words);
  }

  /// By rank. An error of one rank by itself is thrown.
  std::vector<RankEnd> run(int size, const std::string& name, const Words& more = {},
                           const std::function<void(int rank, std::int64_t step)>& at_step = {},
                           const std::optional<std::string>& resume = {}) const {
    const auto loaded = config(more);
    const SessionOptions options{folder_ / name, {}, resume, "train"};
    std::vector<RankEnd> ends(static_cast<std::size_t>(size));
    const StopSignals signals;
    dist::run_ranks(size, [&](dist::Communicator& ranks) {
      const int rank = ranks.rank();
      const Ranks place{ranks, "threads", [&, rank](std::int64_t step) {
                          if (at_step) at_step(rank, step);
                        }};
      RankEnd& end = ends[static_cast<std::size_t>(rank)];
      try {
        end.result = run_session(loaded, options, place, signals);
      } catch (const dist::AgreedError& error) {
        end.error = std::to_string(static_cast<int>(error.kind())) + ": " + error.what();
      }
    });
    return ends;
  }

  [[nodiscard]] test::Record record(const std::string& name) const {
    return test::Record(folder_ / name / "run.db");
  }
  /// What the record says of the computation, in every bit.
  [[nodiscard]] Words computed(const std::string& name) const {
    const auto found = record(name);
    Words rows = found.rows(
        "SELECT step, hex(ce_loss), hex(grad_norm), hex(param_norm), hex(lr), hex(clipping_rate), "
        "masked_instances, tokens, batch_hash, loss_hash, chain_hash FROM surviving_steps ORDER BY "
        "step");
    for (const char* sql : {"SELECT step, part, name, sha256 FROM state_hashes ORDER BY 1, 2, 3",
                            "SELECT step, sha256 FROM state_seals ORDER BY 1",
                            "SELECT step, name, hex(value) FROM metrics ORDER BY 1, 2",
                            "SELECT kind, path, sha256 FROM inputs ORDER BY 1, 2"}) {
      const auto more = found.rows(sql);
      rows.insert(rows.end(), more.begin(), more.end());
    }
    return rows;
  }

 private:
  test::TemporaryDirectory folder_;
};

/// The exit code and the message with which all ranks end; a text that differs is shown.
std::string agreed_error(const std::vector<RankEnd>& ends) {
  for (const auto& end : ends)
    if (end.error != ends.front().error) return ends.front().error + " BUT " + end.error;
  return ends.front().error;
}

TEST_CASE("ranks record what one process does, and who they were", "[train]") {
  const Trainings trainings;
  trainings.run(1, "one");
  const auto [size, strategy] = GENERATE(table<int, std::string>(
      {{2, "FULL_SHARD"}, {3, "FULL_SHARD"}, {3, "NO_SHARD"}, {2, "SHARD_GRAD_OP"}}));
  const std::string name = strategy + std::to_string(size);
  const auto ends = trainings.run(size, name, {"fsdp.sharding_strategy=" + strategy});
  for (const auto& end : ends) {
    REQUIRE(end.result);
    CHECK(end.result->train.outcome == Outcome::kFinished);
    CHECK(end.result->run_id == ends.front().result->run_id);
    CHECK(end.result->train.last_loss == ends.front().result->train.last_loss);
  }
  CHECK(trainings.computed(name) == trainings.computed("one"));
  const auto record = trainings.record(name);
  CHECK(record.value("SELECT world_size, strategy, launch FROM attempts") ==
        std::to_string(size) + "|" + strategy + "|threads");
  CHECK(record.value("SELECT count(*), sum(steps) FROM ranks") ==
        std::to_string(size) + "|" + std::to_string(6 * size));
  CHECK(record.value("SELECT sum(slowest_steps) FROM ranks") == "6");
  CHECK(record.value("SELECT min(exchanged_bytes) > 0 FROM ranks") == "1");
  CHECK(record.rows("SELECT DISTINCT phase FROM phases ORDER BY 1") ==
        Words{"compute", "data", "exchange", "gather", "save", "wait"});
  CHECK(record.value("SELECT count(DISTINCT host), count(*) FROM energy WHERE source = 'rapl'")
            .starts_with("1|"));
}

TEST_CASE("a run says which ranks have no micro-batch, as its plan does", "[train]") {
  const Trainings trainings;
  const auto notes = [&](int ranks) {
    const std::string name = std::to_string(ranks);
    trainings.run(ranks, name);
    return trainings.record(name).rows(
        "SELECT message FROM events WHERE kind = 'note' AND message LIKE '%rank%'");
  };
  CHECK(notes(2).empty());
  CHECK(notes(3) == Words{"the last round of a step has 1 micro-batch for 3 ranks; the others "
                          "wait"});
  CHECK(notes(5) == Words{"no work for 1 rank: a step has 4 micro-batches; a smaller "
                          "device_train_microbatch_size makes more"});
}

TEST_CASE("one process is a world of one rank in the record", "[train]") {
  const Trainings trainings;
  REQUIRE(trainings.run(1, "one").front().result);
  const auto record = trainings.record("one");
  CHECK(record.value("SELECT world_size, strategy FROM attempts") == "1|single");
  CHECK(record.value("SELECT rank, steps, slowest_steps, gathered_bytes, exchanged_bytes, "
                     "gather_seconds + exchange_seconds > 0 FROM ranks") == "0|6|6|0|0|0");
}

TEST_CASE("the bytes that ranks record are those of the plan, whatever is done between steps",
          "[train]") {
  const Trainings trainings;
  const auto strategy = GENERATE(as<std::string>(), "FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD");
  Words settings = {"trace_interval=0", "hash_interval=2", "save_interval=2",
                    "fsdp.sharding_strategy=" + strategy};
  // Where weights are shared, a step finds those that an evaluation has gathered.
  if (strategy == "NO_SHARD") {
    settings.push_back("evaluators=[{label: held, data: {paths: [" + trainings.tokens().string() +
                       "]}, subset_num_batches: 1}]");
    settings.emplace_back("eval_interval=2");
  }
  Words first = settings;
  first.emplace_back("stop_at=4");
  CHECK(agreed_error(trainings.run(3, "run", first)).empty());
  CHECK(agreed_error(trainings.run(3, "run", settings, {}, "latest")).empty());
  // Four micro-batches on three ranks: in the second round two have none.
  const auto traffic = plan_ranks(trainings.config(settings).config, 3, {}).traffic;
  const auto bytes = [&](std::int64_t steps) {
    return std::to_string(steps * traffic.all_gathers().bytes) + "|" +
           std::to_string(steps * traffic.all_to_alls().bytes);
  };
  CHECK(trainings.record("run").rows("SELECT gathered_bytes, exchanged_bytes FROM ranks WHERE rank "
                                     "= 0 ORDER BY attempt") == Words{bytes(4), bytes(2)});
}

TEST_CASE("a run goes on at any other number of ranks", "[train]") {
  const Trainings trainings;
  trainings.run(1, "one");
  const auto [before, after] = GENERATE(table<int, int>({{3, 2}, {2, 1}, {1, 3}}));
  const std::string name = std::to_string(before) + "-" + std::to_string(after);
  trainings.run(before, name, {"stop_after=3"});
  const auto ends = trainings.run(after, name, {}, {}, "latest");
  CHECK(agreed_error(ends).empty());
  CHECK(trainings.record(name).steps() == "1..6");
  CHECK(trainings.record(name).proof() == trainings.record("one").proof());
  CHECK(trainings.record(name).rows("SELECT world_size FROM attempts ORDER BY attempt") ==
        Words{std::to_string(before), std::to_string(after)});
}

TEST_CASE("a limit of time or of the loss ends all ranks after the same step", "[train]") {
  const Trainings trainings;
  const auto ends = trainings.run(3, "run", {"time_limit=0"});
  for (const auto& end : ends) {
    REQUIRE(end.result);
    CHECK(end.result->train.outcome == Outcome::kStopped);
    CHECK(end.result->train.step == 1);
  }
  const auto record = trainings.record("run");
  CHECK(record.value("SELECT message FROM events WHERE kind = 'stop' AND message <> 'step 1'") ==
        "time_limit");
  CHECK(record.value("SELECT max(step) FROM checkpoints") == "1");
}

TEST_CASE("a token that one rank cannot use ends all with its words, after a save", "[train]") {
  const Trainings trainings;
  // The ids are whole when the run begins. Then all that were not read yet are spoilt.
  const auto spoil = [&](int rank, std::int64_t step) {
    if (rank != 0 || step != 2) return;
    std::fstream file(trainings.tokens(), std::ios::in | std::ios::out | std::ios::binary);
    const std::vector<std::uint16_t> bad(64 * 32, 60000);
    file.write(reinterpret_cast<const char*>(bad.data()),
               static_cast<std::streamsize>(bad.size() * sizeof(bad[0])));
  };
  const auto ends = trainings.run(3, "run", {"save_interval=100"}, spoil);
  const auto error = agreed_error(ends);
  CHECK_THAT(error, Contains("3: ") && Contains("tokens.npy") && Contains("60000"));
  const auto record = trainings.record("run");
  CHECK(record.value("SELECT status FROM runs") == "failed");
  // Step 2 had its batch before.
  CHECK(record.value("SELECT max(step) FROM steps") == record.value("SELECT max(step) FROM "
                                                                    "checkpoints"));
}

TEST_CASE("numbers that are finite no more end all ranks alike", "[train]") {
  const Trainings trainings;
  const auto ends =
      trainings.run(3, "run", {"optimizer.learning_rate=1e38", "scheduler.t_warmup=0"});
  CHECK_THAT(agreed_error(ends), Contains("6: step") && Contains("not finite"));
  CHECK(trainings.record("run").value("SELECT status FROM runs") == "diverged");
}

TEST_CASE("a rank that fails by itself is named in the record, and the run goes on afterwards",
          "[train]") {
  const Trainings trainings;
  const auto fail = [&](int rank, std::int64_t step) {
    if (rank != 2 || step != 5) return;
    test::happens([&] { return fs::exists(trainings / "run" / "step3"); });
    throw Error(ErrorKind::kFailure, "a fault of this rank");
  };
  CHECK_THROWS_WITH(trainings.run(3, "run", {}, fail), Contains("a fault of this rank"));
  const auto record = trainings.record("run");
  CHECK(record.value("SELECT outcome FROM attempts") == "failed");
  CHECK_THAT(record.value("SELECT message FROM events WHERE kind = 'error'"),
             Contains("rank 2 failed: a fault of this rank"));
  trainings.run(1, "one");
  CHECK(agreed_error(trainings.run(2, "run", {}, {}, "latest")).empty());
  CHECK(record.value("SELECT resumed_from FROM attempts WHERE attempt = 2").ends_with("step3"));
  CHECK(trainings.record("run").proof() == trainings.record("one").proof());
}

TEST_CASE(
    "a rank that fails while the ranks look for a checkpoint says so and keeps nobody waiting",
    "[train]") {
  const Trainings trainings;
  REQUIRE(agreed_error(trainings.run(2, "run", {"stop_after=3"})).empty());
  const auto loaded = trainings.config({});
  const SessionOptions options{trainings / "run", {}, "latest", "train"};
  const StopSignals signals;
  for (const int moment : {1, 2, 5}) {
    INFO("at collective " << moment);
    const auto resume = [&] {
      dist::run_ranks(2, [&](dist::Communicator& ranks) {
        auto own = ranks.split(0);
        if (ranks.rank() == 1)
          own = std::make_unique<dist::Dying>(std::move(own), moment, /*in_parts=*/true);
        run_session(loaded, options, {*own, "threads", {}}, signals);
      });
    };
    CHECK_THROWS_WITH(resume(), "killed");
  }
}

TEST_CASE("what rank 0 may not do no rank does", "[train]") {
  const Trainings trainings;
  const store::RunLock held(trainings / "run");
  const auto error = agreed_error(trainings.run(2, "run"));
  CHECK_THAT(error, Contains("2: ") && Contains("run"));
  CHECK_FALSE(fs::exists(trainings / "run" / "run.db"));
}

TEST_CASE("a start that fails before its run begins leaves no database", "[train]") {
  const Trainings trainings;
  std::ofstream(trainings / "weights.pt") << "no weights";
  const auto error = agreed_error(
      trainings.run(2, "run", {"load_weights=" + (trainings / "weights.pt").string()}));
  CHECK_THAT(error, Contains("4: ") && Contains("weights.pt"));
  CHECK_FALSE(fs::exists(trainings / "run" / "run.db"));
}

TEST_CASE("evaluators run on all ranks and give the numbers of one process", "[train]") {
  const Trainings trainings;
  const std::string lm = "evaluators=[{label: held, data: {paths: [" + trainings.tokens().string() +
                         "]}, subset_num_batches: 1, " + "device_eval_batch_size: 3}]";
  const Words more = {lm, "eval_interval=3"};
  REQUIRE(trainings.run(1, "one", more).front().result);
  const auto strategy = GENERATE(as<std::string>(), "FULL_SHARD", "NO_SHARD");
  const auto ends =
      trainings.run(3, strategy, {lm, "eval_interval=3", "fsdp.sharding_strategy=" + strategy});
  CHECK(agreed_error(ends).empty());
  CHECK(trainings.computed(strategy) == trainings.computed("one"));
  const char* rows =
      "SELECT document_index, text_hash, hex(nll) FROM evaluation_documents d JOIN "
      "evaluations e USING (evaluation_id) ORDER BY e.step, document_index";
  CHECK(trainings.record(strategy).rows(rows) == trainings.record("one").rows(rows));
  CHECK(
      trainings.record(strategy).rows("SELECT step, weights_digest FROM evaluations ORDER BY 1") ==
      trainings.record("one").rows("SELECT step, weights_digest FROM evaluations ORDER BY 1"));
  const Json settings =
      Json::parse(trainings.record("one").value("SELECT settings FROM evaluations LIMIT 1"));
  CHECK(settings.at("suites").at(0).at("only_documents").size() == 3);
}

}  // namespace
}  // namespace olmo::train

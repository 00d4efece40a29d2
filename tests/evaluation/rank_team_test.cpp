#include "evaluation/rank_team.h"

#include <atomic>
#include <fstream>
#include <mutex>
#include <random>

#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>

#include "core/compute/libtorch.h"
#include "core/error.h"
#include "dist/thread_ranks.h"
#include "evaluation/evaluation.h"
#include "evaluation/session.h"
#include "model/olmo.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::evaluation {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

model::Olmo tiny_model() {
  model::ModelConfig config;
  config.d_model = 32;
  config.n_heads = 2;
  config.n_layers = 1;
  config.vocab_size = 64;
  config.embedding_size = std::nullopt;
  config.max_sequence_length = 16;
  config.eos_token_id = config.pad_token_id = 1;
  Policy policy = resolve_policy("portable", "auto", 1);
  model::Olmo model(config, policy);
  model.init_weights(7);
  return model;
}

/// Thirty instances of sixteen tokens, of which the last may be another.
EvaluationPlan plan_in(const fs::path& folder, const std::string& file = "texts.npy",
                       std::optional<std::uint16_t> last = {}) {
  const fs::path path = folder / file;
  std::mt19937 random(3);
  std::vector<std::uint16_t> ids(16 * 30);
  for (auto& id : ids) id = static_cast<std::uint16_t>(random() % 64);
  if (last) ids.back() = *last;
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(ids.data()),
             static_cast<std::streamsize>(ids.size() * sizeof ids[0]));
  EvaluationPlan plan;
  plan.suites = {eval::open_perplexity_suite("texts", path, std::nullopt)};
  plan.max_length = 16;
  plan.queue.forest_rows = 60;  // three instances and a bit
  return plan;
}

/// What a database holds after an evaluation on so many ranks, whose checks call `check` with the
/// rank; null: one process.
struct Recorded {
  std::vector<DocumentRow> rows;
  std::vector<EvaluationMetric> metrics;
  std::int64_t errors = 0;  ///< ranks that ended with one
};

Recorded evaluate_on(int size, const fs::path& database, const EvaluationPlan& plan,
                     const std::function<void(int rank)>& check = {},
                     RankPasses passes = RankPasses::kApart) {
  store::RecordDatabase records(database, store::OpenMode::kCreate);
  store::EvaluationDb db(records);
  Recorded recorded;
  std::atomic<std::int64_t> errors = 0;
  const auto begin = [&](const model::Olmo& model) {
    const auto record = describe_evaluation(model, Digest(), nullptr, to_json(plan));
    if (const auto unfinished = db.find_unfinished(record)) return db.resume(*unfinished);
    db.begin(record);
  };
  const auto work = [&](dist::Communicator* ranks) {
    at::set_num_threads(1);
    const int rank = ranks == nullptr ? 0 : ranks->rank();
    model::Olmo model = tiny_model();
    if (rank == 0) begin(model);
    const EvaluationRanks among{.ranks = ranks, .passes = passes, .check = [&check, rank] {
                                  if (check) check(rank);
                                }};
    try {
      evaluate(model, nullptr, plan, rank == 0 ? &db : nullptr, {}, among);
    } catch (const Error&) {
      ++errors;
    }
  };
  if (size == 0) {
    work(nullptr);
  } else {
    dist::run_ranks(size, [&](dist::Communicator& ranks) { work(&ranks); });
  }
  db.flush();
  recorded.rows = db.documents(db.evaluation_id(), "texts");
  recorded.metrics = db.metrics(db.evaluation_id(), "texts");
  recorded.errors = errors;
  return recorded;
}

bool equal(const Recorded& a, const Recorded& b) {
  bool same = a.rows.size() == b.rows.size() && a.metrics.size() == b.metrics.size();
  for (std::size_t i = 0; same && i < a.rows.size(); ++i) {
    same = a.rows[i].index == b.rows[i].index && a.rows[i].nll == b.rows[i].nll &&
           a.rows[i].text_hash == b.rows[i].text_hash;
  }
  for (std::size_t i = 0; same && i < a.metrics.size(); ++i)
    same = a.metrics[i].metric == b.metrics[i].metric && a.metrics[i].value == b.metrics[i].value;
  return same;
}

/// How the suite ends on each of three ranks, of which rank 1 has the plan `of_rank_1`.
std::vector<Error> errors_on_three(const EvaluationPlan& plan, const EvaluationPlan& of_rank_1,
                                   RankPasses passes) {
  std::vector<Error> errors;
  std::mutex mutex;
  dist::run_ranks(3, [&](dist::Communicator& ranks) {
    at::set_num_threads(1);
    model::Olmo model = tiny_model();
    const auto& mine = ranks.rank() == 1 ? of_rank_1 : plan;
    const EvaluationRanks among{.ranks = &ranks, .passes = passes};
    const auto outcome = evaluate(model, nullptr, mine, nullptr, {}, among);
    const std::lock_guard lock(mutex);
    errors.push_back(outcome.suites.front().error.value());
  });
  REQUIRE(errors.size() == 3);
  return errors;
}

}  // namespace

TEST_CASE("ranks record the rows and metrics of one process, bit for bit", "[evaluation]") {
  const test::TemporaryDirectory folder;
  const auto plan = plan_in(folder.path());
  const auto one = evaluate_on(0, folder / "one.db", plan);
  REQUIRE(one.rows.size() == 30);
  REQUIRE_FALSE(one.metrics.empty());
  for (const int size : {1, 2, 3, 5}) {
    for (const auto passes : {RankPasses::kApart, RankPasses::kInStep}) {
      INFO(size << " ranks");
      const auto database = std::to_string(size) + (passes == RankPasses::kApart ? "a.db" : "b.db");
      CHECK(equal(evaluate_on(size, folder / database, plan, {}, passes), one));
    }
  }
}

TEST_CASE("each pass is run by one rank, and the ranks run about as many", "[evaluation]") {
  std::vector<eval::SequenceGroup> groups(40);
  for (std::uint32_t i = 0; i < 40; ++i) groups[i].sequences.push_back({{i, 1, 2, 3}, 2});
  std::mutex mutex;
  std::vector<int> passes(4);
  dist::run_ranks(4, [&](dist::Communicator& ranks) {
    const auto team = team_of(ranks, RankPasses::kApart, {});
    const auto model = [&](const TokenForest&, std::span<TokenScore> scores) {
      const std::lock_guard lock(mutex);
      ++passes[static_cast<std::size_t>(ranks.rank())];
      for (auto& score : scores) score.log_prob = -1;
    };
    eval::score_groups(groups, model, {.forest_rows = 6, .share_prefixes = true, .team = &team},
                       {.on_group = [](auto, auto) {}});
  });
  CHECK(passes == std::vector<int>{5, 5, 5, 5});  // two of three rows each
}

TEST_CASE("what stops one rank stops all before the next pass, and they go on from its rows",
          "[evaluation]") {
  const test::TemporaryDirectory folder;
  const auto plan = plan_in(folder.path());
  std::atomic<int> checks = 0;
  const auto stopped = evaluate_on(3, folder / "a.db", plan, [&](int rank) {
    if (rank == 2 && ++checks == 3) throw Error(ErrorKind::kStopped, "stopped by a signal");
  });
  CHECK(stopped.errors == 3);
  CHECK((!stopped.rows.empty() && stopped.rows.size() < 30));
  const auto whole = evaluate_on(2, folder / "a.db", plan);
  CHECK(whole.errors == 0);
  CHECK(equal(whole, evaluate_on(0, folder / "one.db", plan)));
}

TEST_CASE("a rank that has no pass while others have one runs over an empty forest",
          "[evaluation]") {
  std::vector<eval::SequenceGroup> groups(10);
  for (std::uint32_t i = 0; i < 10; ++i) groups[i].sequences.push_back({{i, 1, 2, 3}, 2});
  std::mutex mutex;
  std::vector<std::vector<std::size_t>> rows(3);  // of each pass, by rank
  dist::run_ranks(3, [&](dist::Communicator& ranks) {
    const auto team = team_of(ranks, RankPasses::kInStep, {});
    const auto model = [&](const TokenForest& forest, std::span<TokenScore>) {
      const std::lock_guard lock(mutex);
      rows[static_cast<std::size_t>(ranks.rank())].push_back(forest.ids.size());
    };
    eval::score_groups(groups, model, {.forest_rows = 6, .share_prefixes = true, .team = &team},
                       {.on_group = [](auto, auto) {}});
  });
  CHECK(rows[0] == std::vector<std::size_t>{6, 6});
  CHECK(rows[1] == std::vector<std::size_t>{6, 6});
  CHECK(rows[2] == std::vector<std::size_t>{6, 0});
}

TEST_CASE("a text that one rank cannot read fails on all, and the error names rank and file",
          "[evaluation]") {
  const test::TemporaryDirectory folder;
  const auto plan = plan_in(folder.path()), bad = plan_in(folder.path(), "bad.npy", 64);
  const auto passes = GENERATE(RankPasses::kApart, RankPasses::kInStep);
  for (const Error& error : errors_on_three(plan, bad, passes)) {
    CHECK(error.kind() == ErrorKind::kInput);
    CHECK_THAT(error.what(), Contains("rank 1: ") && Contains("bad.npy: token 479 has id 64"));
  }
}

TEST_CASE("a text that is another one on one rank fails on all, and the error names rank and file",
          "[evaluation]") {
  const test::TemporaryDirectory folder;
  auto plan = plan_in(folder.path()), other = plan_in(folder.path(), "other.npy", 5);
  for (const Error& error : errors_on_three(plan, other, RankPasses::kApart)) {
    CHECK(error.kind() == ErrorKind::kInput);
    CHECK_THAT(error.what(),
               Contains("rank 1 has read something else than rank 0: ") && Contains("other.npy"));
  }
}

TEST_CASE("all ranks learn what rank 0 has done already", "[evaluation]") {
  std::atomic<int> right = 0;
  dist::run_ranks(3, [&](dist::Communicator& ranks) {
    const std::set<std::int64_t> mine =
        ranks.rank() == 0 ? std::set<std::int64_t>{0, 7, 1'000'000'007} : std::set<std::int64_t>{5};
    if (numbers_of_first(ranks, mine) == std::set<std::int64_t>{0, 7, 1'000'000'007}) ++right;
    if (numbers_of_first(ranks, {}).empty()) ++right;
  });
  CHECK(right == 6);
}

}  // namespace olmo::evaluation

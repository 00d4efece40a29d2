#include "eval/sequence_queue.h"

#include <algorithm>
#include <ctime>
#include <functional>
#include <limits>
#include <random>
#include <set>

#include "eval/hash_model.h"

using namespace olmo;
using namespace olmo::eval;
using test::HashModel;

namespace {

using Tokens = std::vector<std::uint32_t>;

Tokens random_tokens(std::mt19937& random, std::size_t size, std::uint32_t vocabulary) {
  Tokens tokens(size);
  for (auto& token : tokens) token = static_cast<std::uint32_t>(random() % vocabulary);
  return tokens;
}

Tokens operator+(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Documents that share what eval's requests share: a header, a passage, a question; continuations
// of which some are equal; and unconditional sequences that begin quite differently.
std::vector<SequenceGroup> random_groups(std::uint32_t seed, std::size_t count) {
  std::mt19937 random(seed);
  const Tokens header = random_tokens(random, random() % 20, 5);
  const Tokens prompt = {4, 2};
  Tokens passage;
  std::vector<SequenceGroup> groups(count);
  for (auto& group : groups) {
    if (random() % 3 == 0) passage = random_tokens(random, random() % 8, 3);
    const Tokens context = header + passage + random_tokens(random, 1 + random() % 6, 3);
    for (std::size_t option = random() % 5; option > 0; --option) {
      const Tokens continuation = random_tokens(random, 1 + random() % 4, 2);
      const auto scored = static_cast<std::int64_t>(continuation.size());
      group.sequences.push_back({context + continuation, scored});
      if (random() % 2 == 0) group.sequences.push_back({prompt + continuation, scored});
    }
    std::shuffle(group.sequences.begin(), group.sequences.end(), random);
    group.order = static_cast<std::int64_t>(random() % 3);
  }
  return groups;
}

SequenceScore alone(const ScoredSequence& sequence) {
  SequenceScore score;
  std::uint64_t path = 1;
  const auto first = sequence.tokens.size() - static_cast<std::size_t>(sequence.scored);
  for (std::size_t i = 0; i + 1 < sequence.tokens.size(); ++i) {
    path = test::mix(path, sequence.tokens[i]);
    if (i + 1 < first) continue;
    const TokenScore token = test::hash_score(path, sequence.tokens[i + 1]);
    score.log_prob += static_cast<double>(token.log_prob);
    score.logit_sum += static_cast<double>(token.logit);
    score.is_greedy = score.is_greedy && token.is_likeliest;
  }
  return score;
}

// Runs the groups, holds every score to the sequence's own, and returns what the model has seen.
HashModel run_and_check(const std::vector<SequenceGroup>& groups, const QueueOptions& options) {
  HashModel model;
  std::vector<int> seen(groups.size());
  std::int64_t progress = 0;
  std::int64_t order = std::numeric_limits<std::int64_t>::min();
  score_groups(groups, std::ref(model), options,
               {.on_group =
                    [&](std::size_t g, std::span<const SequenceScore> scores) {
                      ++seen.at(g);
                      CHECK(order <= groups[g].order);
                      order = groups[g].order;
                      REQUIRE(scores.size() == groups[g].sequences.size());
                      for (std::size_t i = 0; i < scores.size(); ++i) {
                        const SequenceScore wanted = alone(groups[g].sequences[i]);
                        REQUIRE(scores[i].log_prob == wanted.log_prob);
                        REQUIRE(scores[i].logit_sum == wanted.logit_sum);
                        REQUIRE(scores[i].is_greedy == wanted.is_greedy);
                      }
                    },
                .on_progress =
                    [&](std::int64_t rows) {
                      CHECK(rows > progress);
                      progress = rows;
                    }});
  CHECK(std::count(seen.begin(), seen.end(), 1) == static_cast<std::ptrdiff_t>(groups.size()));
  CHECK(rows_to_run(groups, options) == model.total_rows);
  CHECK(progress == model.total_rows);
  return model;
}

// Nodes of the prefix tree of all inputs of `groups`, and the distinct (node, label) pairs.
std::pair<std::size_t, std::size_t> tree_size(std::span<const SequenceGroup> groups) {
  std::set<std::uint64_t> nodes;
  std::set<std::pair<std::uint64_t, std::uint32_t>> targets;
  for (const auto& group : groups) {
    for (const auto& sequence : group.sequences) {
      std::uint64_t path = 1;
      const auto first = sequence.tokens.size() - static_cast<std::size_t>(sequence.scored);
      for (std::size_t i = 0; i + 1 < sequence.tokens.size(); ++i) {
        nodes.insert(path = test::mix(path, sequence.tokens[i]));
        if (i + 1 >= first) targets.insert({path, sequence.tokens[i + 1]});
      }
    }
  }
  return {nodes.size(), targets.size()};
}

}  // namespace

TEST_CASE("scores of the queue do not depend on forest size, sharing or order", "[eval]") {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    auto groups = random_groups(seed, 40);
    for (const std::int64_t rows : {1, 7, 33, 100, 4096}) {
      for (const bool share : {true, false})
        run_and_check(groups, {.forest_rows = rows, .share_prefixes = share});
    }
    std::mt19937 random(seed);
    std::shuffle(groups.begin(), groups.end(), random);
    run_and_check(groups, {.forest_rows = 50});
  }
}

TEST_CASE("a forest that holds all groups is their prefix tree", "[eval]") {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    auto groups = random_groups(seed, 8);
    const auto [nodes, targets] = tree_size(groups);
    REQUIRE(nodes < 256);
    const HashModel model = run_and_check(groups, {});
    CHECK(model.forest_rows.size() == 1);
    CHECK(model.total_rows == static_cast<std::int64_t>(nodes));
    CHECK(model.targets == static_cast<std::int64_t>(targets));
  }
}

TEST_CASE("the tree has no more segments than its branches ask for", "[eval]") {
  // abc + d|e, and abc alone: one trunk with two leaves; a chain of prefixes is one segment.
  const std::vector<SequenceGroup> fork = {
      {.sequences = {{{1, 2, 3, 4, 9}, 1}, {{1, 2, 3, 5, 9}, 1}, {{1, 2, 3, 9}, 1}}}};
  CHECK(run_and_check(fork, {}).segments == 3);
  const std::vector<SequenceGroup> chain = {
      {.sequences = {{{1, 2}, 1}, {{1, 2, 3}, 2}, {{1, 2, 3, 4}, 3}, {{1, 2, 3, 4, 5}, 1}}}};
  const HashModel model = run_and_check(chain, {});
  CHECK(model.segments == 1);
  CHECK(model.total_rows == 4);
  CHECK(model.targets == 4);
}

TEST_CASE("forests keep to their size, and begin small", "[eval]") {
  std::vector<SequenceGroup> groups(300);
  std::mt19937 random(5);
  for (auto& group : groups)
    for (int i = 0; i < 4; ++i) group.sequences.push_back({random_tokens(random, 31, 1000), 3});
  const HashModel model = run_and_check(groups, {.forest_rows = 2048});
  CHECK(model.forest_rows.at(0) <= 256);
  CHECK(model.forest_rows.at(1) <= 512);
  CHECK(model.forest_rows.at(2) <= 1024);
  CHECK(*std::max_element(model.forest_rows.begin(), model.forest_rows.end()) <= 2048);
  CHECK(model.forest_rows.size() <= 3 + 36000 / 1900);

  // 5000 rows of a document in windows of 2048, and of a window alone
  std::vector<SequenceGroup> document(1);
  for (const std::size_t size : {2049U, 2049U, 905U})
    document[0].sequences.push_back(
        {random_tokens(random, size, 50000), static_cast<std::int64_t>(size) - 1});
  CHECK(run_and_check(document, {.forest_rows = 4096}).forest_rows.size() == 2);
  CHECK(run_and_check(document, {.forest_rows = 1000}).forest_rows.size() == 3);
}

TEST_CASE("a few-shot header is run once per forest", "[eval]") {
  std::mt19937 random(1);
  const Tokens header = random_tokens(random, 700, 50000);
  std::vector<SequenceGroup> groups(3000);
  for (auto& group : groups) {
    const Tokens question = random_tokens(random, 20, 50000);
    for (int i = 0; i < 4; ++i)
      group.sequences.push_back({header + question + random_tokens(random, 3, 50000), 3});
  }
  const std::size_t nodes = tree_size(groups).first;
  const HashModel model = run_and_check(groups, {});
  CHECK(model.total_rows ==
        static_cast<std::int64_t>(nodes + 700 * (model.forest_rows.size() - 1)));
  CHECK(model.total_rows < static_cast<std::int64_t>(nodes) * 13 / 10);
}

TEST_CASE("equal inputs take no rows, but neither are they put off for ever", "[eval]") {
  std::vector<SequenceGroup> groups(20000);
  for (std::size_t i = 0; i < groups.size(); ++i)
    groups[i].sequences = {{{1, 2, static_cast<std::uint32_t>(i % 5000)}, 1}};
  const HashModel model = run_and_check(groups, {});
  CHECK(model.forest_rows.size() > 5);
  CHECK(model.total_rows == 2 * static_cast<std::int64_t>(model.forest_rows.size()));
}

TEST_CASE("groups are left out once they are no longer wanted", "[eval]") {
  std::vector<SequenceGroup> groups(400);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    groups[i].order = i < 200 ? 0 : 1;
    groups[i].sequences = {{Tokens(30, static_cast<std::uint32_t>(i)), 1}};
  }
  HashModel model;
  int first_task = 0;
  int second_task = 0;
  score_groups(groups, std::ref(model), {.forest_rows = 300},
               {.on_group = [&](std::size_t g, auto) { ++(g < 200 ? first_task : second_task); },
                .is_wanted = [&](std::size_t g) { return g >= 200 || first_task == 0; }});
  CHECK(first_task > 0);
  CHECK(first_task <= 9);
  CHECK(second_task == 200);
}

TEST_CASE("no groups, and groups without sequences, need no model", "[eval]") {
  HashModel model;
  int calls = 0;
  const std::vector<SequenceGroup> groups(3);
  const QueueCallbacks callbacks = {
      .on_group = [&](std::size_t, auto scores) { calls += scores.empty() ? 1 : 100; }};
  score_groups({}, std::ref(model), {}, callbacks);
  score_groups(groups, std::ref(model), {}, callbacks);
  CHECK(calls == 3);
  CHECK(model.total_rows == 0);
  CHECK(rows_to_run(groups, {}) == 0);
}

TEST_CASE("planning a suite takes no time beside running it", "[eval]") {
  // As many requests and tokens as the eight tasks have, and few-shot headers beside them.
  std::mt19937 random(3);
  const Tokens header = random_tokens(random, 700, 50000);
  std::vector<SequenceGroup> groups(18000);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Tokens context =
        (i % 4 == 0 ? header : Tokens()) + random_tokens(random, 40 + random() % 30, 50000);
    for (int option = 0; option < 4; ++option)
      groups[i].sequences.push_back({context + random_tokens(random, 10, 50000), 10});
  }
  const auto processor_time = [] {  // not that of the clock, which others' programs make longer
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double start = processor_time();
  const auto rows = rows_to_run(groups, {});
  const double seconds = processor_time() - start;
  std::size_t tokens = 0;
  for (const auto& group : groups)
    for (const auto& sequence : group.sequences) tokens += sequence.tokens.size() - 1;
  INFO(tokens << " tokens, " << rows << " rows in " << seconds << " s");
  CHECK(static_cast<std::size_t>(rows) < tokens / 2);
  CHECK(seconds < 5);  // 0.1 s usually
}

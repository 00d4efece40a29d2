#include "report/evaluations/task_comparison.h"

#include <cmath>

#include "core/error.h"
#include "report/evaluation_fixture.h"
#include "report/evaluations/evaluation_match.h"
#include "report/evaluations/task_flips.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;
using olmo::test::EvaluationFile;
using olmo::test::mentions;

namespace {

constexpr std::int64_t kEnough = 299;  // instances that certify one point without any discordance

const Margins kMargins = resolve_margins({.command_line = {{"macro", 1}}});

/// Option 0 (right) leads by `lead(doc_id)`.
template <typename Lead>
EvaluatedTask a_task(const std::string& name, std::int64_t n, const Lead& lead) {
  EvaluatedTask task;
  task.task = name;
  task.primary_metric = "acc";
  for (std::int64_t i = 0; i < n; ++i) {
    const double by = lead(i);
    task.instances.push_back({.doc_id = i,
                              .first_option = 2 * i,
                              .options = 2,
                              .label = 0,
                              .chosen = by >= 0 ? 0 : 1,
                              .margin = std::abs(by),
                              .requests = static_cast<std::uint64_t>(i) + 1});
    task.logprobs.insert(task.logprobs.end(), {-5, -5 - by});
  }
  return task;
}

EvaluationData evaluation(std::vector<EvaluatedTask> tasks) {
  EvaluationData data;
  data.tasks = std::move(tasks);
  return data;
}

/// Three of four are right.
double usual(std::int64_t i) { return i % 4 == 3 ? -2 : 2; }

}  // namespace

TEST_CASE("equal evaluations are certified task by task", "[report]") {
  EvaluationFile a, b;
  for (auto* file : {&a, &b})
    for (const auto* task : {"arc", "piqa"})
      file->add_task(task, kEnough, [](auto doc_id, auto option) {
        return -10.0 + 0.1 * static_cast<double>((doc_id * 7 + option * 5) % 11);
      });
  const auto result = compare_tasks(a.read(), b.read(), Kind::kCheckpoint, kMargins);

  CHECK(result.invalid.empty());
  CHECK(result.mismatched.empty());
  REQUIRE(result.tasks.size() == 2);
  for (const TaskComparison& task : result.tasks) {
    CHECK(task.n == kEnough);
    CHECK(task.equivalence.certified);
    CHECK(task.equivalence.margin == 0.01);
    CHECK(task.holm_p == 1);
    CHECK(task.detectable == 0);
    CHECK(task.needed_n <= kEnough);
    CHECK(task.agreement.options == 2 * kEnough);
    CHECK(task.agreement.equal_bits == 2 * kEnough);
    CHECK(task.agreement.largest == 0);
    CHECK(task.flips == 0);
  }
  REQUIRE(result.macro);
  CHECK(result.macro->equivalence.certified);
  CHECK(result.macro->interval95.low < 0);
  CHECK(result.macro->interval95.high > 0);
  CHECK(result.all_flips == 0);
  CHECK(result.noise == 0);
  CHECK(result.all_pass_p <= 0.05);
}

TEST_CASE("too few equal instances certify nothing", "[report]") {
  const auto data = evaluation({a_task("arc", 50, usual)});
  const auto result = compare_tasks(data, data, Kind::kCheckpoint, kMargins);
  CHECK_FALSE(result.tasks[0].equivalence.certified);
  CHECK(result.tasks[0].needed_n > 50);
  CHECK(result.all_pass_p > 0.05);
  CHECK_FALSE(result.macro);
}

TEST_CASE("what one side lacks is invalid and never a pass", "[report]") {
  auto a = evaluation({a_task("arc", kEnough, usual), a_task("piqa", kEnough, usual)});
  auto b = a;
  SECTION("a task") {
    b.tasks.pop_back();
    const auto result = compare_tasks(a, b, Kind::kCheckpoint, kMargins);
    CHECK(result.invalid == std::vector<std::string>{"piqa: only A has it"});
    CHECK(result.tasks.size() == 1);
    CHECK(result.all_pass_p == 1);
  }
  SECTION("instances") {
    a.tasks[0].instances.erase(a.tasks[0].instances.begin());
    b.tasks[0].instances.resize(kEnough - 2);
    const auto result = compare_tasks(a, b, Kind::kCheckpoint, kMargins);
    CHECK(mentions(result.invalid, "arc: 2 instances are only in A"));
    CHECK(mentions(result.invalid, "arc: 1 instance is only in B"));
    CHECK(result.tasks[0].n == kEnough - 3);
    CHECK(result.all_pass_p == 1);
  }
  SECTION("all instances") {
    a.tasks[0].instances.clear();
    const auto result = compare_tasks(a, b, Kind::kCheckpoint, kMargins);
    CHECK(mentions(result.invalid, "arc: there is no instance to compare"));
    CHECK(result.tasks.size() == 1);
  }
  SECTION("everything") {
    const auto result = compare_tasks(a, {}, Kind::kCheckpoint, kMargins);
    CHECK(result.invalid.size() == 2);
    CHECK(result.all_pass_p == 1);
  }
}

TEST_CASE("requests without a context are mismatched where other tokens stand before them",
          "[report]") {
  EvaluatedTask a = a_task("copa", 4, usual), b = a;
  a.asked.first_token = 50279;
  b.asked.first_token = 0;
  const auto mismatched = [&] {
    return compare_tasks(evaluation({a}), evaluation({b}), Kind::kOutcome, kMargins).mismatched;
  };
  CHECK(mismatched().empty());  // all have a context
  a.has_bare_requests = b.has_bare_requests = true;
  CHECK(mismatched() ==
        std::vector<std::string>{
            "copa: another token stands before requests without a context, 50279 and 0"});
}

TEST_CASE("other prompts and data are mismatched", "[report]") {
  const auto a = evaluation({a_task("arc", kEnough, usual)});
  auto b = a;
  EvaluatedTask& task = b.tasks[0];
  SECTION("requests") {
    task.instances[3].requests = 999;
    task.instances[4].requests = 999;
    task.instances[5].requests = 0;  // not known
    CHECK(compare_tasks(a, b, Kind::kCheckpoint, kMargins).mismatched ==
          std::vector<std::string>{"arc: 2 instances have other requests"});
  }
  SECTION("labels and options are not counted") {
    task.instances[0].label = 1;
    task.instances[1].options = 1;
    const auto result = compare_tasks(a, b, Kind::kCheckpoint, kMargins);
    CHECK(mentions(result.mismatched, "arc: 2 instances have other labels or options"));
    CHECK(result.tasks[0].n == kEnough - 2);
    CHECK(result.all_pass_p == 1);
  }
  SECTION("labels of all instances, which leaves nothing to compare, and is no missing data") {
    for (auto& instance : task.instances) instance.label = 1 - instance.label;
    const auto result = compare_tasks(a, b, Kind::kCheckpoint, kMargins);
    CHECK(result.invalid.empty());
    CHECK(mentions(result.mismatched, "have other labels or options"));
    CHECK(result.tasks.empty());
  }
  SECTION("digests, where both are known") {
    auto known = a;
    known.tasks[0].definition_digest = known.tasks[0].data_digest = "one";
    known.tasks[0].convention = "olmo";
    CHECK(compare_tasks(known, b, Kind::kCheckpoint, kMargins).mismatched.empty());
    task.definition_digest = task.data_digest = "other";
    task.convention = "lm-eval";
    task.primary_metric = "len_norm";
    const auto result = compare_tasks(known, b, Kind::kCheckpoint, kMargins);
    CHECK(result.mismatched.size() == 4);
    CHECK(mentions(result.mismatched, "arc: the definition differs, one and other"));
  }
}

TEST_CASE("a changed prompt shows in the recorded request hashes", "[report]") {
  const auto scores = [](auto, auto option) { return option == 0 ? -1.0 : -2.0; };
  EvaluationFile a, b, unknown;
  a.add_task("arc", 5, scores);
  b.add_task("arc", 5, scores, "changed");
  unknown.add_task("arc", 5, scores, "");
  const auto in_a = a.read();
  CHECK(mentions(compare_tasks(in_a, b.read(), Kind::kOutcome, kMargins).mismatched,
                 "5 instances have other requests"));
  CHECK(compare_tasks(in_a, unknown.read(), Kind::kOutcome, kMargins).mismatched.empty());
}

TEST_CASE("the same prompts that were cut to other lengths are mismatched", "[report]") {
  const auto a = evaluation({a_task("arc", kEnough, usual)});
  auto b = a;
  auto in_a = a;
  for (std::size_t i = 0; i < kEnough; ++i) {
    in_a.tasks[0].instances[i].tokens = 2048;
    b.tasks[0].instances[i].tokens = i < 3 ? 1024 : 2048;
  }
  CHECK(mentions(compare_tasks(in_a, b, Kind::kOutcome, kMargins).mismatched,
                 "arc: 3 instances have other lengths in tokens for the same prompts"));
  CHECK(compare_tasks(in_a, in_a, Kind::kOutcome, kMargins).mismatched.empty());
  CHECK(compare_tasks(a, b, Kind::kOutcome, kMargins).mismatched.empty());  // A does not tell
}

TEST_CASE("requests that no record hashes are told apart by their lengths", "[report]") {
  const auto imported = [](std::int64_t context) {
    EvaluationFile file;
    file.begin("arc", "acc", "");
    for (std::int64_t i = 0; i < 5; ++i) {
      auto rows = EvaluationFile::ranked("arc", i, {-1, -2}, "");
      for (auto& row : rows) row.ctx_tokens = context;
      file.db().record_options(rows);
    }
    file.db().end_task("arc", "finished");
    return file.read();
  };
  const auto zero_shot = imported(20), five_shot = imported(170);
  CHECK(compare_tasks(zero_shot, imported(20), Kind::kOutcome, kMargins).mismatched.empty());
  CHECK(mentions(compare_tasks(zero_shot, five_shot, Kind::kOutcome, kMargins).mismatched,
                 "5 instances have other lengths in tokens: other prompts"));
  CHECK_FALSE(requests_known(zero_shot, five_shot));
  EvaluationFile hashed;
  hashed.add_task("arc", 5, [](auto, auto) { return -1.0; });
  const auto own = hashed.read();
  CHECK(requests_known(own, own));
  CHECK_FALSE(requests_known(own, zero_shot));
}

TEST_CASE("a shift by five points is significant after Holm", "[report]") {
  const auto shifted = [](std::int64_t i) { return i % 20 == 0 ? -2 : usual(i); };
  const auto a = evaluation({a_task("arc", 1000, usual), a_task("piqa", 1000, usual)});
  const auto b = evaluation({a_task("arc", 1000, shifted), a_task("piqa", 1000, usual)});
  const auto result = compare_tasks(a, b, Kind::kOutcome, kMargins);
  CHECK(result.tasks[0].difference == Approx(-0.05));
  CHECK(result.tasks[0].interval95.high < 0);
  CHECK(result.tasks[0].holm_p < 1e-6);
  CHECK(result.tasks[0].holm_p >= result.tasks[0].p);
  CHECK_FALSE(result.tasks[0].equivalence.certified);
  CHECK(result.tasks[1].holm_p == 1);
  CHECK(result.all_pass_p > 0.05);
  REQUIRE(result.macro);
  CHECK(result.macro->difference == Approx(-0.025));
  CHECK(result.macro->accuracy_a == Approx(0.75));
  CHECK(result.macro->interval95.low < -0.025);
  CHECK(result.macro->interval95.high < 0);
  CHECK(result.tasks[0].flips == 50);
  CHECK(result.all_explained == 0);
}

TEST_CASE("flips within the numeric noise are explained, others listed first", "[report]") {
  // All margins move by 0.01; near ties flip by that, instance 500 by far more.
  const auto lead_a = [](std::int64_t i) { return i % 100 == 7 ? 0.005 : usual(i); };
  const auto lead_b = [&](std::int64_t i) { return i == 500 ? -1.5 : lead_a(i) - 0.01; };
  const auto a = evaluation({a_task("arc", 1000, lead_a)});
  const auto b = evaluation({a_task("arc", 1000, lead_b)});
  const auto result = compare_tasks(a, b, Kind::kCheckpoint, kMargins);
  CHECK(result.noise == Approx(0.01));
  CHECK(result.all_flips == 11);
  CHECK(result.all_explained == 10);
  REQUIRE(result.flips.size() == 11);
  CHECK(result.flips[0].doc_id == 500);
  CHECK_FALSE(result.flips[0].explained);
  CHECK(result.flips[0].logprobs_a == std::vector<double>{-5, -7});
  CHECK(result.flips[0].logprobs_b == std::vector<double>{-5, -3.5});
  CHECK(result.flips[0].chosen_a == 0);
  CHECK(result.flips[0].chosen_b == 1);
  CHECK(result.flips[1].doc_id == 7);
  CHECK(result.flips[1].explained);
  CHECK(result.tasks[0].agreement.largest == Approx(3.5));

  const auto outcome = compare_tasks(a, b, Kind::kOutcome, kMargins);
  CHECK(outcome.all_flips == 11);
  CHECK(outcome.all_explained == 0);
  CHECK(outcome.flips[0].doc_id == 500);
}

TEST_CASE("equal scores explain no flip, and the list of flips is bounded", "[report]") {
  const auto changed = [](std::int64_t i) { return i % 2 == 0 ? -1e-9 : 1.0; };
  const auto a = evaluation({a_task("arc", 1000, [](auto i) { return i % 2 == 0 ? 1e-9 : 1.0; })});
  const auto result =
      compare_tasks(a, evaluation({a_task("arc", 1000, changed)}), Kind::kCheckpoint, kMargins);
  CHECK(result.noise == 0);
  CHECK(result.all_flips == 500);
  CHECK(result.all_explained == 0);
  CHECK(result.flips.size() == kListedFlips);
}

TEST_CASE("costs are left to compare_perplexity", "[report]") {
  auto data = evaluation({a_task("arc", 10, usual), a_task("piqa", 10, usual)});
  data.tasks[1].primary_metric = "bpb";
  CHECK(compare_tasks(data, data, Kind::kCheckpoint, kMargins).tasks.size() == 1);
  auto without = data;
  without.tasks.pop_back();
  CHECK(compare_tasks(data, without, Kind::kCheckpoint, kMargins).invalid.empty());
}

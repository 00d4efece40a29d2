#pragma once

#include <cmath>
#include <string>

#include "report/page/pages.h"

namespace olmo::report {

/// Numbers that look like noise and are the same everywhere.
inline double wobble(std::int64_t i, int which) {
  auto word = static_cast<std::uint64_t>(i * 8 + which + 1) * 0x9E3779B97F4A7C15U;
  word = (word ^ (word >> 29U)) * 0xBF58476D1CE4E5B9U;
  return static_cast<double>((word ^ (word >> 32U)) >> 11U) * 0x1p-52 - 1;
}

inline store::RecordedRun synthetic_run(std::int64_t steps, int which) {
  store::RecordedRun run;
  run.label = which == 0 ? "lumi.db" : "mosaic.db";
  run.run_id = which == 0 ? "7f3a9c11" : "0b88d2e4";
  run.name = which == 0 ? "olmo-1b-mi250x" : "olmo-1b-a100";
  run.created_utc = "2026-05-01T08:00:00Z";
  run.status = "finished";
  run.experiment_digest = std::string(64, 'e');
  run.n_parameters = 1'176'764'416;
  run.max_steps = steps;
  for (std::int64_t i = 1; i <= steps; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(steps);
    const double apart = which * 1e-6 * std::pow(static_cast<double>(i), 0.9) * wobble(i, 3);
    run.steps.step.push_back(i);
    run.steps.tokens.push_back(i * 4'194'304);
    run.steps.loss.push_back(2.3 + 8.7 * std::exp(-30 * share) + 0.5 * std::exp(-3 * share) +
                             0.03 * wobble(i, 1) + std::min(apart, 0.004));
    run.steps.grad_norm.push_back(0.3 + 4 * std::exp(-40 * share) + 0.05 * wobble(i, 2) +
                                  (i == steps / 2 && which == 1 ? 6 : 0));
    run.steps.lr.push_back(share < 0.05 ? 4e-4 * share / 0.05
                                        : 2.2e-4 + 1.8e-4 * std::cos(3.14159 * share));
    run.steps.tokens_per_second.push_back((which == 0 ? 3.1e5 : 4.4e5) * (1 + 0.02 * wobble(i, 4)));
    run.steps.seconds.push_back(13.5);
  }
  store::AttemptRecord attempt;
  attempt.attempt = 1;
  attempt.started_utc = "2026-05-01T08:00:00Z";
  attempt.ended_utc = "2026-05-03T19:12:44Z";
  attempt.outcome = "finished";
  attempt.command_line = "olmo-harness train configs/OLMo-1B.json";
  attempt.policy = R"({"numerics":"fast","threads":8,"isa":"avx2"})";
  attempt.build = R"({"version":"0.1.0","compiler":"GNU 12.2.0","libraries":{"torch":"2.11.0"}})";
  attempt.environment = which == 0
                            ? R"({"host":"nid005012","cpu":"AMD EPYC 7A53","devices":["MI250X"]})"
                            : R"({"host":"a100-07","cpu":"AMD EPYC 7763","devices":["A100"]})";
  run.attempts = {attempt};
  run.inputs = {{"data", "preprocessed/part-0-00000.npy", 4'294'967'296, std::string(64, 'd')}};
  return run;
}

inline Trajectory synthetic_trajectory(const store::RecordedRun& a, const store::RecordedRun& b) {
  Trajectory t;
  t.loss.tokens = a.steps.tokens;
  for (std::size_t i = 0; i < a.steps.size(); ++i)
    t.loss.values.push_back(b.steps.loss[i] - a.steps.loss[i]);
  t.first_loss_relative = 3.2e-7;
  t.largest = 0.0039;
  t.largest_relative = 0.0017;
  t.largest_smoothed = 0.0004;
  t.growth = Growth{
      0.91, std::log(0.0012), static_cast<double>(a.steps.tokens.back()) * 0.4, true, 34, 0.2};
  t.margin = 0.0024;
  t.margin_source = "Twice the standard deviation between seeds, 0.0012 nats.";
  const auto from = a.steps.tokens[a.steps.size() * 9 / 10];
  t.last.from_tokens = from;
  t.last.points = static_cast<std::int64_t>(a.steps.size() / 10);
  t.last.mean = -1.37e-4;
  t.last.series = SeriesMean{{-1.37e-4, 9e-5, 38}, 10, 40, 0.1, 166.7};
  t.last.test = Equivalence{-1.37e-4, {-6.1e-4, 3.4e-4}, 0.0024, 0.0009, true};
  t.last_interval95 = Interval{-7.2e-4, 4.5e-4};
  t.last_a = 2.33841;
  t.last_b = 2.33827;
  t.partings = {{Parting::Cause::kOtherData, 700, .99, .01}};
  t.caveats = {"Step 17 is missing in A."};
  t.drift = Drift{40, 22, 18, 0.64, -2e-8, 0.41};
  t.marks = {{'B', static_cast<std::int64_t>(a.steps.size() / 2),
              a.steps.tokens[a.steps.size() / 2], "spike", "gradient norm 6.3, 9 deviations"},
             {'A', static_cast<std::int64_t>(a.steps.size() / 3),
              a.steps.tokens[a.steps.size() / 3], "restart", "attempt 2 from a checkpoint"}};
  return t;
}

inline TasksComparison synthetic_tasks(std::int64_t flips) {
  struct Row {
    const char* task;
    std::int64_t n;
    double a, difference, half;
  };
  TasksComparison tasks;
  for (const Row& row :
       {Row{"arc_challenge", 299, .3445, .0033, .021}, Row{"arc_easy", 570, .6333, -.0018, .012},
        Row{"boolq", 3270, .6107, .0009, .004}, Row{"hellaswag", 10042, .6287, -.0004, .0023},
        Row{"openbookqa", 500, .362, .004, .013}, Row{"piqa", 1838, .7514, -.0011, .0062},
        Row{"sciq", 1000, .921, .001, .005}, Row{"winogrande", 1267, .597, .0032, .0094}}) {
    TaskComparison t;
    t.task = row.task;
    t.metric = "len_norm";
    t.n = row.n;
    t.counts = {row.n / 2, 9, 11, row.n / 2 - 20};
    t.accuracy_a = row.a;
    t.accuracy_b = row.a + row.difference;
    t.difference = row.difference;
    t.interval95 = {row.difference - row.half, row.difference + row.half};
    t.p = 0.43;
    t.equivalence = {row.difference,
                     {row.difference - .84 * row.half, row.difference + .84 * row.half},
                     std::max(.01, .3 / std::sqrt(static_cast<double>(row.n))),
                     .01,
                     row.half < .02};
    t.detectable = 1.2 * row.half;
    t.needed_n = 1420;
    t.agreement = {4 * row.n, row.n, 1e-7, 3e-5, -6e-5, 6e-5, 4.1e-4};
    t.flips = 20;
    t.explained_flips = 18;
    tasks.tasks.push_back(t);
  }
  tasks.macro = MacroComparison{
      .6061, .6072, .0011, {-.0024, .0046}, {.0011, {-.0018, .004}, .01, .0004, true}, {}};
  tasks.noise = 4.1e-4;
  tasks.noise_source = "The largest difference of a score between repeats.";
  tasks.all_pass_p = .03;
  tasks.all_flips = flips;
  tasks.all_explained = flips * 9 / 10;
  for (std::int64_t i = 0; i < flips; ++i)
    tasks.flips.push_back({"hellaswag",
                           31 * i,
                           2,
                           2,
                           1,
                           2e-4,
                           3e-4,
                           {-41.2345, -39.88, -38.101, -44.7},
                           {-41.2349, -38.0, -38.1005, -44.7},
                           i > flips / 10,
                           "The man lifts the lid of the piano.\nHe",
                           {" plays.", " sleeps.", " leaves.", " paints."}});
  return tasks;
}

/// Runs that part in their first loss; only B's distance from the reference was measured twice.
inline Identity synthetic_identity(std::int64_t steps) {
  Identity identity;
  identity.known = true;
  identity.common_steps = identity.equal_batches = steps;
  identity.first_different = 1;
  identity.first_field = "ce_loss";
  identity.equal_state = HashedState{0, 226, 0, {}};
  identity.parted_state =
      HashedState{steps / 2,
                  678,
                  675,
                  {"model/transformer.wte.weight", "model/transformer.blocks.0.att_proj.weight"}};
  identity.last_state = HashedState{steps, 678, 675, {"model/transformer.wte.weight"}};
  identity.operation =
      TracedOperation{1, 1, "micro_batch.0/forward/blocks.0.attention", "its output differs", ""};
  identity.reference_a = {
      "fast",
      {{1, 20, "nid005012, AMD EPYC 7A53, avx2", "within_envelope", {}, "", "", 1.1e-6, 3.2e-5}},
      1.1e-6,
      3.2e-5};
  identity.reference_b = {
      "fast",
      {{1, 20, "a100-07, AMD EPYC 7763, avx2", "within_envelope", {}, "", "", 8e-7, 2.9e-5},
       {41, 60, "a100-08, AMD EPYC 7763, avx2", "different", 44, "ce_loss", "", 9e-7, 3e-5}},
      9e-7,
      3e-5};
  identity.between = AuditedDistance{20, 1.4e-6, 4.4e-5, true};
  identity.chain_a = std::string(64, '1');
  identity.chain_b = std::string(64, '2');
  return identity;
}

inline Test synthetic_test(Endpoint endpoint, const char* name, const char* method,
                           const char* unit, double estimate, double half) {
  Test test;
  test.endpoint = endpoint;
  test.name = name;
  test.method = method;
  test.unit = unit;
  test.estimate = estimate;
  test.interval90 = {estimate - .84 * half, estimate + .84 * half};
  test.interval95 = {estimate - half, estimate + half};
  test.p = .43;
  test.holm_p = .86;
  test.n = 400;
  test.primary = endpoint != Endpoint::kTask;
  test.excludes = std::fabs(estimate) + .84 * half;
  return test;
}

/// The models' equivalence is certified by a declared margin, the setups' is not.
inline std::vector<Claim> synthetic_claims() {
  Claim models;
  models.scope = Scope::kModels;
  models.verdict = Verdict::kEquivalent;
  models.sentence =
      "These two models score the same within ±0.5 percentage points (macro average of 8 tasks, "
      "90 % interval −0.18 to +0.40).";
  models.tests = {
      synthetic_test(Endpoint::kLoss, "loss of the last stretch", "moving blocks", "nats", -1.37e-4,
                     5.8e-4),
      synthetic_test(Endpoint::kMacro, "macro average", "MOVER, 8 tasks", "pp", .11, .35),
      synthetic_test(Endpoint::kTask, "arc_challenge", "McNemar, exact", "pp", .33, 2.1)};
  models.tests[0].margin = {.0024, MarginSource::kRepeats, "", "", "2 deviations of 4 runs"};
  models.tests[1].margin = {.5, MarginSource::kDeclared, "a.user", "2026-04-30T12:00:00Z", ""};
  models.tests[2].margin = {1, MarginSource::kDefault, "", "", "a task is one of eight"};
  for (std::size_t i = 0; i < 2; ++i)
    models.tests[i].certified = models.tests[i].within_margin = true;
  models.tests[1].n = 18'786;
  models.deciding = 1;
  Claim setups;
  setups.scope = Scope::kSetups;
  setups.verdict = Verdict::kConsistent;
  setups.sentence =
      "No difference between the two setups was found; that they are equivalent is "
      "not shown.";
  setups.tests = {synthetic_test(Endpoint::kLoss, "loss of the last stretch", "Welch, 4 and 1 runs",
                                 "nats", -1.4e-4, 4.1e-3)};
  setups.tests[0].margin = {.0024, MarginSource::kRepeats, "", "", "2 deviations of 4 runs"};
  setups.tests[0].k_a = 4;
  setups.tests[0].power = .54;
  setups.deciding = 0;
  setups.stronger = "run side B five more times (6 runs a side: power 87 %)";
  return {models, setups};
}

/// Two tasks and a suite at five checkpoints.
inline std::vector<EvaluationScores> synthetic_scores(std::int64_t steps, int which) {
  std::vector<EvaluationScores> all;
  for (std::int64_t i = 1; i <= 5; ++i) {
    EvaluationScores evaluation;
    evaluation.evaluation_id = "e" + std::to_string(i);
    evaluation.status = "finished";
    evaluation.step = i * steps / 5;
    const double share = .3 + .05 * static_cast<double>(i) + .004 * wobble(i, which);
    for (const char* task : {"hellaswag", "piqa"})
      evaluation.scores.push_back(
          {task, "olmo", "", "len_norm", 1000, share, true, Interval{share - .03, share + .03}});
    evaluation.scores.push_back({"paloma", "olmo", "c4_en", "bits_per_byte", 512, 1.4 - share,
                                 false, Interval{1.38 - share, 1.42 - share}});
    all.push_back(evaluation);
  }
  return all;
}

/// A report with every section, of `steps` steps and `flips` flips a side.
inline ParityReport synthetic_report(std::int64_t steps, std::int64_t flips) {
  ParityReport r;
  r.verdict = Verdict::kConsistent;
  r.claim = "setups";
  r.reason = "No difference was found; equivalence is not certified, as side B has one run only.";
  r.caveats = {"Run side B three more times with other seeds (K = 4) to allow EQUIVALENT.",
               "arc_challenge needs n = 1,420 to certify ±1 percentage point; it has 299."};
  r.claims = synthetic_claims();
  r.alpha.difference_tests = 10;
  r.kind = Kind::kTrajectory;
  r.kind_reason = "Both runs start from the same weights and read the same batches.";
  r.a.run = synthetic_run(steps, 0);
  r.b.run = synthetic_run(steps, 1);
  for (Side* side : {&r.a, &r.b}) {
    side->label = side->run->name;
    side->database = side->run->label;
    side->database_sha256 = std::string(64, side == &r.a ? 'a' : 'b');
  }
  r.gate.mismatches = {{"global_train_batch_size", "2048", "1024", MismatchClass::kConfound,
                        "Runs are aligned on tokens and the verdict is capped."},
                       {"host.device", "AMD MI250X", "NVIDIA A100", MismatchClass::kBenign,
                        "It is what is compared."}};
  r.gate.equal = {"model",       "tokenizer", "data order",      "initial weights",
                  "lr schedule", "precision", "numerics policy", "code version"};
  r.gate.unknown = {{.key = "global_train_batch_size",
                     .a = "2048",
                     .b = "",
                     .if_different = MismatchClass::kConfound,
                     .reason = "Another batch size.",
                     .assumed = ""}};
  r.identity = synthetic_identity(steps);
  r.noise.runs_a = {"seed-1 (seed)", "seed-2 (seed)", "seed-3 (seed)"};
  r.noise.k_a = 4;
  for (int i = 0; i < 6; ++i) {
    Repeat repeat;
    repeat.side = i == 1 ? 'B' : 'A';
    repeat.run_id = "20260501T08000" + std::to_string(i) + "-7f3a9c11";
    repeat.host = i == 1 ? "a100-07" : "nid005012";
    repeat.seed = 6198 + i;
    repeat.tags = i < 2 ? "" : "noise:seed";
    repeat.known_by = i < 2 ? "compared" : "host nid005012";
    repeat.taken = i != 5;
    repeat.left_out = i == 5 ? "its chain is that of 20260501T080002-7f3a9c11" : "";
    repeat.mean = 2.338 + .001 * wobble(i, 5);
    r.noise.looked_at.push_back(repeat);
  }
  r.noise.values_a = {2.33841, 2.33907, 2.33712, 2.33866};
  r.noise.values_b = {2.33827};
  r.noise.seed_deviation = 0.0012;
  r.noise.to_run = "three more runs of side B with other seeds, tagged `seed`";
  r.trajectory = synthetic_trajectory(*r.a.run, *r.b.run);
  for (int i = 0; i < 40; ++i) {
    r.noise.envelope_tokens.push_back(4.2e6 * std::pow(static_cast<double>(steps), i / 39.0));
    r.noise.envelope.push_back(
        std::min(0.006, 2e-6 * std::pow(r.noise.envelope_tokens.back() / 4.2e6, .95)));
  }
  r.tasks = synthetic_tasks(flips);
  r.scores_a = synthetic_scores(steps, 0);
  r.scores_b = synthetic_scores(steps, 1);
  r.perplexity.emplace();
  for (const char* source : {"c4_en", "dolma_books", "dolma_wiki", "m2d2_s2orc", "pile", ""})
    r.perplexity->sources.push_back(
        {"paloma", source, "bits per byte", 512, 524'288, 2'211'840, .9312, .93135, 1.5e-4,
         Interval{-3e-4, 6e-4}, Equivalence{1.5e-4, {-2.2e-4, 5.2e-4}, kBpbMargin, .0003, true}, .4,
         1, 12});
  r.efficiency_a.emplace();
  r.efficiency_a->device = "AMD MI250X (one GCD)";
  r.efficiency_a->devices = 128;
  r.efficiency_a->tokens = 4'194'304.0 * static_cast<double>(steps);
  r.efficiency_a->train_seconds = 212'400;
  r.efficiency_a->tokens_per_second = 310'000;
  r.efficiency_a->tokens_per_second_per_device = 2421.9;
  r.efficiency_a->mfu = .191;
  r.efficiency_a->peaks = {{1.915e14, "AMD's data sheet, dense bf16", .191},
                           {1.4e14, "measured: matrix products", .261}};
  r.efficiency_a->peak_flops = 1.915e14;
  r.efficiency_a->peak_source = "AMD's data sheet, dense bf16";
  r.efficiency_a->energy_method = "not measured: no sensor could be read on this node";
  r.efficiency_b = r.efficiency_a;
  r.efficiency_b->device = "NVIDIA A100-SXM4-40GB";
  r.efficiency_b->tokens_per_second = 440'000;
  r.efficiency_b->peaks = {{3.12e14, "NVIDIA's data sheet, dense bf16", .21}};
  r.efficiency_b->peak_source = "NVIDIA's data sheet, dense bf16";
  r.efficiency_b->joules = 6.1e9;
  r.efficiency_b->kwh = 1694.4;
  r.efficiency_b->energy_method = "NVML, total energy of each GPU";
  r.efficiency_b->energy_coverage = .997;
  r.efficiency_b->sources = {{"nvml", "gpu0", "device", 6.1e9, 212'000.0, 2'120'000}};
  r.command = "olmo-harness report parity lumi.db mosaic.db --out parity.html";
  r.version = "0.1.0";
  return r;
}

}  // namespace olmo::report

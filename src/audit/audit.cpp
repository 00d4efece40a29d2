#include "audit/audit.h"

#include <algorithm>
#include <chrono>

#include "audit/replay.h"
#include "core/clock.h"
#include "core/compute/random.h"
#include "core/error.h"
#include "core/process/activity.h"
#include "core/process/terminal.h"
#include "core/text/text.h"
#include "train/preparation.h"
#include "train/stepper.h"

namespace olmo::audit {
namespace {

void append(std::vector<store::Finding>& all, std::vector<store::Finding> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

std::size_t count_differences(const std::vector<OpDigest>& a, const std::vector<OpDigest>& b) {
  std::size_t count = std::max(a.size(), b.size()) - std::min(a.size(), b.size());
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    count += a[i].digest != b[i].digest ? 1U : 0U;
  return count;
}

class Auditor {
 public:
  Auditor(const AuditedRun& recorded, const config::TrainConfig& config, const Policy& policy,
          const AuditOptions& options)
      : recorded_(recorded),
        config_(config),
        policy_(policy),
        options_(options),
        places_{options.checkpoints, options.database} {}

  StretchResult run(const Stretch& stretch) {
    const auto start = std::chrono::steady_clock::now();
    StretchResult result;
    result.stretch = stretch;
    if (policy_.numerics == Numerics::kFast) {
      audit_fast(result);
    } else {
      audit_portable(result);
    }
    result.seconds = seconds_since(start);
    return result;
  }

  /// unlike_inputs() of the run; the files are hashed once.
  const std::vector<std::string>& unlike() {
    if (!unlike_)
      unlike_ =
          during("hashing the token files", [&] { return unlike_inputs(recorded_, config_); });
    return *unlike_;
  }

 private:
  using AfterStep = std::function<void(Replay&, const store::StepRecord&)>;

  /// Computes the stretch, from the checkpoint before it, under `policy`.
  void replay(StretchResult& result, const Policy& policy, std::vector<store::Finding>& findings,
              const AfterStep& after_step) {
    Activity activity;
    activity.now("reading the state before step " + std::to_string(result.stretch.first));
    Replay training(recorded_, config_, policy, places_, result.stretch.first - 1, findings);
    result.started_from = training.started_from();
    result.start_step = training.step();
    compare_state(training, std::nullopt, result);
    const auto first = training.step() + 1;
    activity.now("computing step " + std::to_string(first));
    ProgressLine line;
    while (training.step() < result.stretch.last) {
      const auto next = training.step() + 1;
      const bool wanted = options_.trace && next >= result.stretch.first;
      const auto recorded = policy.numerics == Numerics::kPortable ? options_.recorded_trace(next)
                                                                   : std::vector<OpDigest>{};
      OpTrace trace(format_of(recorded));
      const auto row = training.advance(wanted || !recorded.empty() ? &trace : nullptr);
      if (!row) {
        findings.push_back({next, "loss",
                            "step " + std::to_string(next) +
                                ": the loss or gradient is not finite here, and was recorded"});
        break;
      }
      if (!recorded.empty()) compare_trace(next, recorded, trace, result);
      if (wanted) result.traces.push_back({next, trace.digests()});
      activity.done();
      line.show(train::progress_of(*row, first, result.stretch.last));
      after_step(training, *row);
    }
    line.finish();
  }

  void audit_portable(StretchResult& result) {
    replay(result, policy_, result.findings,
           [&](const Replay& training, const store::StepRecord& row) {
             compare_row(row, result);
             compare_state(training, find_checkpoint(recorded_, places_, row.step), result);
           });
    if (result.findings.empty()) return;
    result.verdict = AuditVerdict::kDifferent;
    std::stable_sort(result.findings.begin(), result.findings.end(),
                     [](const auto& a, const auto& b) { return a.step < b.step; });
    // A damaged checkpoint is found when a start is looked for, and again when the steps pass it.
    const auto same = [](const auto& a, const auto& b) { return a.sentence == b.sentence; };
    result.findings.erase(std::unique(result.findings.begin(), result.findings.end(), same),
                          result.findings.end());
    explain(result);
  }

  void audit_fast(StretchResult& result) {
    Policy portable = policy_;
    portable.numerics = Numerics::kPortable;
    std::vector<store::StepRecord> reference, here;
    replay(result, portable, result.findings,
           [&](const Replay&, const auto& row) { reference.push_back(row); });
    result.findings.clear();   // the second replay finds them again
    result.operation.clear();  // of `fast`, which `portable` computes otherwise
    result.tensors_compared = 0;
    result.traces.clear();
    replay(result, policy_, result.findings,
           [&](const Replay&, const auto& row) { here.push_back(row); });
    const EnvelopeResult inside = compare_with_envelope(recorded_, reference, here);
    result.steps_compared = inside.steps;
    result.distances = inside.distances;
    append(result.findings, inside.outside);
    if (!result.findings.empty()) {
      result.verdict = AuditVerdict::kDifferent;
    } else if (!inside.identical) {
      result.verdict = AuditVerdict::kWithinEnvelope;
    }
  }

  void compare_row(const store::StepRecord& row, StretchResult& result) const {
    const auto recorded = recorded_.rows.find(row.step);
    if (recorded == recorded_.rows.end()) return;  // a broken proof says so
    ++result.steps_compared;
    append(result.findings, compare_rows(recorded->second, row, recorded_.chain_format));
    result.distances.add(recorded->second, row);
  }

  /// With the record and with `checkpoint`, as far as they are there; the state is hashed once.
  void compare_state(const Replay& training, const std::optional<std::filesystem::path>& checkpoint,
                     StretchResult& result) const {
    const auto recorded = recorded_.state_hashes.find(training.step());
    const bool is_recorded = recorded != recorded_.state_hashes.end();
    if (!is_recorded && !checkpoint) return;
    const auto hashes = training.stepper().state_hashes();
    const auto compare = [&](const std::string& source, const auto& expected) {
      result.tensors_compared += std::ssize(hashes);
      append(result.findings, compare_states(training.step(), source, expected, hashes));
    };
    if (is_recorded) compare("the record", recorded->second);
    if (!checkpoint) return;
    append(result.findings, verify_checkpoint(recorded_, training.step(), *checkpoint));
    try {
      compare(checkpoint->string(), hashes_of(store::CheckpointReader(*checkpoint)));
    } catch (const Error&) {
      return;  // verify_checkpoint has said what is wrong
    }
  }

  void compare_trace(std::int64_t step, const std::vector<OpDigest>& recorded, const OpTrace& trace,
                     StretchResult& result) {
    const auto difference = first_difference(recorded, trace.digests());
    if (!difference) return;
    result.findings.push_back({step, difference->operation,
                               "step " + std::to_string(step) + ": operation " +
                                   difference->operation + ": " + difference->reason});
    // A wrong output spoils the operations after it; an altered hash stands alone.
    if (result.operation.empty() && count_differences(recorded, trace.digests()) > 1)
      result.operation = difference->operation;
  }

  /// Why a step reads another batch here: most often the files are others.
  [[nodiscard]] std::string advice_on_batches() {
    if (!unlike().empty()) return "the batches differ, since " + unlike().front();
    return "the batches differ, though the token files are those of the record: it was altered, or "
           "their order is made in another way here";
  }

  /// Was the training another one, or was the record altered afterwards?
  void explain(StretchResult& result) {
    const std::int64_t step = result.findings.front().step;
    const auto rows = std::count_if(result.findings.begin(), result.findings.end(),
                                    [](const store::Finding& finding) {
                                      return finding.quantity != "checkpoint" &&
                                             finding.quantity.find('/') == std::string::npos;
                                    });
    const bool other_batch = std::ranges::any_of(result.findings, [&](const auto& finding) {
      return finding.step == step && finding.quantity == "batch_hash";
    });
    if (other_batch) {
      result.operation.clear();  // whatever computes them, other tokens give another output
      result.advice = advice_on_batches();
    } else if (!result.operation.empty()) {
      result.advice =
          "the operations before it agree: what computed it, there or here, is at fault";
    } else if (rows > 1) {
      const auto from = std::to_string(std::max<std::int64_t>(1, step - 1));
      const auto steps = from + ".." + std::to_string(step);
      result.advice = "the record holds no trace of these steps: `audit RUN --steps " + steps +
                      " --trace --record` on both machines, then `audit RUN --against OTHER` "
                      "names the operation";
    } else if (rows == 0 && step == result.stretch.last && step < recorded_.last_step() &&
               result.findings.front().quantity != "checkpoint") {
      result.advice = "audit a step more to learn whether the training or its record differs";
    } else {
      result.advice =
          "nothing that follows from it differs: it was altered or damaged after the training";
    }
  }

  const AuditedRun& recorded_;
  const config::TrainConfig& config_;
  const Policy& policy_;
  const AuditOptions& options_;
  CheckpointPlaces places_;
  std::optional<std::vector<std::string>> unlike_;
};

bool covers(const std::vector<Stretch>& stretches, std::int64_t step) {
  return std::ranges::any_of(stretches, [&](const Stretch& stretch) {
    return stretch.first <= step && step <= stretch.last;
  });
}

}  // namespace

std::vector<std::string> unlike_inputs(const AuditedRun& recorded,
                                       const config::TrainConfig& config) {
  std::vector<store::InputRecord> expected;
  std::ranges::copy_if(recorded.inputs, std::back_inserter(expected), [](const auto& input) {
    return input.kind == "tokens" || input.kind == "label_mask";
  });
  const auto here = train::each_once(train::describe_inputs(train::data_files_of(config)));
  if (here.size() != expected.size())
    return {"the run read " + counted(std::ssize(expected), "file") +
            " of tokens and label masks, here are " + std::to_string(here.size())};
  std::vector<std::string> unlike;
  for (std::size_t i = 0; i < here.size(); ++i)
    if (here[i].sha256 != expected[i].sha256)
      unlike.push_back(here[i].path + " is not the file that the run read as " + expected[i].path +
                       ": its SHA-256 is " + here[i].sha256 + ", the record says " +
                       expected[i].sha256);
  return unlike;
}

std::string to_string(AuditVerdict verdict) {
  switch (verdict) {
    case AuditVerdict::kWithinEnvelope:
      return "within_envelope";
    case AuditVerdict::kDifferent:
      return "different";
    case AuditVerdict::kIdentical:
      break;
  }
  return "identical";
}

AuditVerdict AuditResult::verdict() const {
  AuditVerdict worst = broken_proofs.empty() ? AuditVerdict::kIdentical : AuditVerdict::kDifferent;
  for (const auto& stretch : stretches) worst = std::max(worst, stretch.verdict);
  return worst;
}

void require_recorded(const AuditedRun& recorded, const Stretch& stretch) {
  const auto first = recorded.first_step(), last = recorded.last_step();
  if (stretch.first <= stretch.last && stretch.first >= first && stretch.last <= last) return;
  throw Error(ErrorKind::kUsage, "audit: --steps must lie within the recorded steps " +
                                     std::to_string(first) + ".." + std::to_string(last) +
                                     ", got " + std::to_string(stretch.first) + ".." +
                                     std::to_string(stretch.last));
}

std::vector<Stretch> sample_stretches(const AuditedRun& recorded, std::int64_t count,
                                      std::int64_t length, std::uint64_t seed) {
  const auto first = recorded.first_step(), last = recorded.last_step();
  length = std::min(length, last - first + 1);
  const auto places = static_cast<std::uint64_t>(last - length + 2 - first);
  Pcg64 random(seed);
  std::vector<Stretch> stretches;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto begin = first + static_cast<std::int64_t>(random.next_u64() % places);
    stretches.push_back({begin, begin + length - 1});
  }
  std::sort(stretches.begin(), stretches.end(),
            [](const Stretch& a, const Stretch& b) { return a.first < b.first; });
  return stretches;
}

AuditResult audit(const AuditedRun& recorded, const config::TrainConfig& config,
                  const Policy& policy, const AuditOptions& options,
                  const std::function<void(const StretchResult&)>& done) {
  AuditResult result;
  result.broken_proofs = recorded.damage;
  std::vector<Stretch> stretches = options.stretches;
  // The chain says that a row was altered; only computing it again says which of its fields.
  constexpr std::size_t kMostSuspects = 3;
  for (std::size_t i = 0; i < std::min(kMostSuspects, result.broken_proofs.size()); ++i) {
    const auto step = std::max<std::int64_t>(1, result.broken_proofs[i].step);
    if (recorded.rows.contains(step) && !covers(stretches, step)) stretches.push_back({step, step});
  }
  Auditor auditor(recorded, config, policy, options);
  for (const Stretch& stretch : stretches) {
    result.stretches.push_back(auditor.run(stretch));
    done(result.stretches.back());
  }
  result.other_inputs = auditor.unlike();
  return result;
}

}  // namespace olmo::audit

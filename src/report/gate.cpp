#include "report/gate.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/json.h"
#include "core/text/number.h"
#include "core/text/text.h"
#include "report/comparability/comparability.h"
#include "report/comparability/settings.h"
#include "report/comparability/side_by_side.h"
#include "report/cost/world.h"
#include "report/evaluations/evaluation_match.h"
#include "report/training/identity.h"

namespace olmo::report {
namespace {

/// Fatal mismatches first.
void sort_by_weight(Gate& gate) {
  std::stable_sort(gate.mismatches.begin(), gate.mismatches.end(),
                   [](const auto& x, const auto& y) { return x.mismatch < y.mismatch; });
}

/// Makes what weighs, and yet is harmless, benign for this reason.
template <class IsHarmless>
void excuse(Gate& gate, const std::string& reason, const IsHarmless& is_harmless) {
  for (Mismatch& mismatch : gate.mismatches) {
    if (mismatch.mismatch == MismatchClass::kBenign || !is_harmless(mismatch)) continue;
    mismatch.mismatch = MismatchClass::kBenign;
    mismatch.reason = reason;
  }
  sort_by_weight(gate);
}

class Comparer {
 public:
  /// Those that differ.
  void settings(const std::vector<SettingLine>& lines, const std::string& prefix, auto rule) {
    for (const SettingLine& line : lines) {
      if (!line.differs) continue;
      const auto [mismatch, reason] = rule(line);
      add(prefix + line.key, line.values[0].value_or(kNotSet), line.values[1].value_or(kNotSet),
          mismatch, reason);
    }
  }

  void add(const std::string& what, const std::string& a, const std::string& b,
           MismatchClass mismatch, const std::string& reason) {
    gate_.mismatches.push_back({what, a, b, mismatch, reason});
  }
  void same(const std::string& what) { gate_.equal.push_back(what); }
  /// `key` is a config key, or what is unknown in the words of the page.
  void unknown(std::string key, MismatchClass if_different, const std::string& reason,
               const std::string& a = "", const std::string& b = "") {
    std::replace(key.begin(), key.end(), ' ', '_');  // as --assume has it
    gate_.unknown.push_back({key, a, b, if_different, reason, ""});
  }

  /// A fingerprint: fatal where both are known and differ.
  void fingerprint(const std::string& what, const std::string& a, const std::string& b,
                   const std::string& reason) {
    if (a.empty() || b.empty()) return unknown(what, MismatchClass::kFatal, reason, a, b);
    if (a == b) return same(what);
    add(what, a, b, MismatchClass::kFatal, reason);
  }

  [[nodiscard]] bool differs_in(const std::string& what) const {
    return std::any_of(gate_.mismatches.begin(), gate_.mismatches.end(),
                       [&](const Mismatch& found) { return found.what == what; });
  }

  Gate& gate() { return gate_; }
  Gate take() {
    sort_by_weight(gate_);
    return std::move(gate_);
  }

 private:
  Gate gate_;
};

/// The first digits of the digests of a kind of input, in the order in which it is read.
std::vector<std::string> digests(const store::RecordedRun& run, const std::string& kind) {
  std::vector<std::string> found;
  for (const auto& input : run.inputs)
    if (input.kind == kind) found.push_back(input.sha256.substr(0, 16));
  return found;
}

/// The tokenizer's digest; where a side lacks it, the name that its config gives. A name may be a
/// path: `allenai/dolma` is `tokenizers/allenai_dolma.json`.
void compare_tokenizers(Comparer& compare, const store::RecordedRun& a,
                        const store::RecordedRun& b) {
  const char* reason = "Another tokenizer: the same text is other tokens, so no loss compares.";
  const std::string x = joined(digests(a, "tokenizer"), " "),
                    y = joined(digests(b, "tokenizer"), " ");
  if (!x.empty() && !y.empty()) return compare.fingerprint("tokenizer", x, y, reason);
  const auto named = [](const store::RecordedRun& run) {
    const Settings settings = leaves_of(run.config, run.label + ": its config");
    std::string name = settings.contains("tokenizer.identifier")
                           ? shown_value(settings, "tokenizer.identifier")
                           : "";
    if (name.ends_with(".json")) name.resize(name.size() - 5);
    std::replace(name.begin(), name.end(), '/', '_');
    return name;
  };
  const std::string in_a = named(a), in_b = named(b);
  const bool same =
      !in_a.empty() && !in_b.empty() && (in_a.ends_with(in_b) || in_b.ends_with(in_a));
  compare.fingerprint("tokenizer", in_a, same ? in_a : in_b, reason);
}

void compare_configs(Comparer& compare, const store::RecordedRun& a, const store::RecordedRun& b) {
  const std::array configs = {stated_config(a), stated_config(b)};
  const Settings &x = configs[0].settings, &y = configs[1].settings;
  if (x.empty() || y.empty())
    return compare.unknown("config", MismatchClass::kConfound, "Settings that no record tells.");
  if (x == y) return compare.same("config");
  const auto lines = configs_side_by_side(configs);
  compare.settings(lines, "", [](const SettingLine& line) {
    return std::pair{line.mismatch, line.reason};
  });
  for (const std::size_t side : {0U, 1U})
    for (const SettingLine& line : lines)
      if (line.untold && line.values[side] && line.mismatch != MismatchClass::kBenign)
        compare.unknown(line.key, line.mismatch, line.reason, line.values[0].value_or(""),
                        line.values[1].value_or(""));
}

/// Equal batches excuse whatever the files are; the same files in another order are named.
void compare_token_files(Comparer& compare, const store::RecordedRun& a,
                         const store::RecordedRun& b, const Comparability& found, Kind kind) {
  const auto x = digests(a, "tokens"), y = digests(b, "tokens");
  const char* other = "Other training data.";
  if (found.order_known && found.same_order) {
    if (x == y || x.empty() || y.empty()) return compare.same("token files");
    return compare.add("token files", joined(x, " "), joined(y, " "), MismatchClass::kBenign,
                       "Every common batch is equal, so the same tokens were read.");
  }
  const auto sorted = [](std::vector<std::string> digests) {
    std::sort(digests.begin(), digests.end());
    return digests;
  };
  if (x == y || sorted(x) != sorted(y))
    return compare.fingerprint("token files", joined(x, " "), joined(y, " "), other);
  compare.add("order of the token files", joined(x, " "), joined(y, " "),
              kind == Kind::kTrajectory ? MismatchClass::kFatal : MismatchClass::kBenign,
              "The same files in another order: the same step reads other batches.");
}

/// The labels of A and B.
using Labels = std::array<std::string, 2>;

/// Facts of two places: policies, builds or machines. `read` makes settings of a record's text.
void compare_places(Comparer& compare, const Labels& labels, const std::string& what,
                    const std::string& text_a, const std::string& text_b,
                    decltype(leaves_of) read = leaves_of) {
  const Settings a = read(text_a, labels[0] + ": its " + what),
                 b = read(text_b, labels[1] + ": its " + what);
  if (a.empty() || b.empty())  // an import does not tell
    return compare.unknown(what, MismatchClass::kBenign, "This is what is being compared.");
  if (a == b) return compare.same(what);
  const std::array places = {a, b};
  const bool told = compare.differs_in("precision");  // by the configs: one confound, told once
  compare.settings(side_by_side(places), what + ".", [&](const SettingLine& line) {
    const bool confound = !told && (line.key == "precision" || line.key == "mixed_precision");
    return std::pair{
        confound ? MismatchClass::kConfound : MismatchClass::kBenign,
        std::string(confound ? "Another precision." : "This is what is being compared.")};
  });
}

/// Tokens of a step: as the steps tell, else as both configs do.
void compare_batch_sizes(Comparer& compare, const store::RecordedRun& a,
                         const store::RecordedRun& b, const Comparability& found) {
  constexpr char kKey[] = "global_train_batch_size";
  if (a.steps.size() == 0 || b.steps.size() == 0 || compare.differs_in(kKey)) return;
  const char* reason = config::rule_of(kKey).reason;
  if (found.batch_size_known) {
    if (!found.same_batch_size)
      compare.add("tokens of a step", std::to_string(*found.tokens_a),
                  std::to_string(*found.tokens_b), MismatchClass::kConfound, reason);
    else
      std::erase_if(compare.gate().unknown, [&](const auto& fact) { return fact.key == kKey; });
    return;
  }
  const Settings x = settings_of(a), y = settings_of(b);
  if (!x.contains(kKey) || !y.contains(kKey))
    compare.unknown(kKey, MismatchClass::kConfound, reason,
                    x.contains(kKey) ? shown_value(x, kKey) : "",
                    y.contains(kKey) ? shown_value(y, kKey) : "");
}

void compare_orders(Comparer& compare, const Comparability& found, Kind kind) {
  const bool trajectory = kind == Kind::kTrajectory;
  if (!found.order_known) {
    compare.unknown("data order", trajectory ? MismatchClass::kFatal : MismatchClass::kBenign,
                    "Other batches, which would make it no trajectory of one training.");
  } else if (found.same_order) {
    compare.same("data order (the hash of every common batch)");
  } else if (trajectory && found.same_batch_size) {
    compare.add("data order", "", "", MismatchClass::kFatal,
                "The same steps saw other batches, so this is no trajectory of one training.");
  }
}

void compare_starts(Comparer& compare, const Comparability& found, Kind kind) {
  const bool trajectory = kind == Kind::kTrajectory;
  if (!found.start_known)
    return compare.unknown(kInitialWeights,
                           trajectory ? MismatchClass::kFatal : MismatchClass::kBenign,
                           "Another start, which would make it no trajectory of one training.");
  if (found.same_start) return compare.same("initial weights (the hash of every tensor)");
  const bool close = found.first_losses_agree();
  compare.add("initial weights", "", "",
              trajectory && !close ? MismatchClass::kFatal : MismatchClass::kBenign,
              !trajectory ? "Independent trainings start anew."
              : close     ? "A perturbation below the first loss's rounding."
                          : "Another start, so this is no trajectory of one training.");
}

/// With the same start and the same first batch the first losses differ by rounding only.
void compare_first_losses(Comparer& compare, const Comparability& found) {
  const bool same_batch = !found.order_known || found.same_order;
  const bool same_start = !found.start_known || found.same_start;
  if (!found.first_loss || !same_batch || !same_start || !found.same_batch_size) return;
  const FirstLoss& first = *found.first_loss;
  const std::string step = first.step ? "step " + std::to_string(*first.step) : "the first step";
  const std::string limit = Json(first.tolerance).dump() + " (relative; " + first.basis + ")";
  if (first.relative > first.tolerance) {
    compare.add("loss of " + step, Json(first.a).dump(), Json(first.b).dump(),
                MismatchClass::kFatal,
                "With the same start and data it may differ by " + limit +
                    " at most: this is a difference of configuration or code" +
                    (first.means_known ? "" : ", or of what the losses are means over") +
                    ", not of hardware.");
  } else {
    compare.same("loss of " + step + " (within " + limit + ")");
    // Fine in bf16, and a fault of configuration or code in fp32.
    if (first.relative > first.tolerance_fp32 && !first.precision_known)
      compare.unknown("precision", MismatchClass::kFatal,
                      "The losses of " + step + " differ by " + Json(first.relative).dump() +
                          " (relative), which is too much for fp32.");
  }
}

/// How many ranks shared the work, and how: attempts of one run may have been of several sizes.
void compare_worlds(Comparer& compare, const store::RecordedRun& a, const store::RecordedRun& b) {
  const auto x = world_of(a).attempts, y = world_of(b).attempts;
  if (x.empty() || y.empty()) return;  // a record that says nothing of it
  if (x == y) return compare.same("ranks");
  compare.add("ranks", joined(x, "; "), joined(y, "; "), MismatchClass::kBenign,
              "Ranks add in the order of one process, so that their number and strategy change no "
              "bit; what they cost is under efficiency.");
}

void compare_runs(Comparer& compare, const store::RecordedRun& a, const store::RecordedRun& b,
                  Kind kind) {
  const Comparability found = comparability(a, b);
  compare_configs(compare, a, b);
  const bool told = !precision_of(a).empty() || !precision_of(b).empty();
  if (!told && !settings_of(a).empty() && !settings_of(b).empty())
    compare.unknown("precision", MismatchClass::kConfound, config::rule_of("precision").reason);
  compare_tokenizers(compare, a, b);
  compare_token_files(compare, a, b, found, kind);
  const std::string mask_a = joined(digests(a, "label_mask"), " ");
  const std::string mask_b = joined(digests(b, "label_mask"), " ");
  if (!mask_a.empty() || !mask_b.empty())
    compare.fingerprint("label masks", mask_a, mask_b, "Other tokens count as labels.");
  compare_batch_sizes(compare, a, b, found);
  compare_orders(compare, found, kind);
  compare_starts(compare, found, kind);
  if (found.same_start) excuse_drawing(compare.gate());
  if (kind == Kind::kTrajectory) compare_first_losses(compare, found);
  if (a.attempts.empty() || b.attempts.empty()) return;
  compare_worlds(compare, a, b);
  const Labels labels = {a.label, b.label};
  const auto &in_a = a.attempts.back(), &in_b = b.attempts.back();
  compare_places(compare, labels, "policy", in_a.policy, in_b.policy);
  compare_places(compare, labels, "build", in_a.build, in_b.build);
  compare_places(compare, labels, "environment", in_a.environment, in_b.environment, machine_of);
}

void compare_evaluations(Comparer& compare, const Labels& labels, const EvaluationData& a,
                         const EvaluationData& b, Kind kind) {
  if (kind == Kind::kCheckpoint)
    compare.fingerprint("weights", a.weights_digest, b.weights_digest,
                        "Other weights, so this is not one checkpoint on two machines.");
  compare.fingerprint("tokenizer of the evaluation", a.tokenizer_digest, b.tokenizer_digest,
                      "Another tokenizer: prompts become other tokens.");
  if (!requests_known(a, b))
    compare.unknown("prompts", MismatchClass::kFatal,
                    "Other instructions or examples before a question make it another test.");
  compare_places(compare, labels, "evaluation policy", a.policy, b.policy);
  if (kind == Kind::kCheckpoint) {
    compare_places(compare, labels, "evaluation build", a.build, b.build);
    compare_places(compare, labels, "evaluation environment", a.environment, b.environment,
                   machine_of);
  }
}

}  // namespace

bool Gate::has(MismatchClass mismatch) const {
  return std::any_of(mismatches.begin(), mismatches.end(),
                     [&](const Mismatch& found) { return found.mismatch == mismatch; });
}

Gate compare_settings(const Side& a, const Side& b, Kind kind) {
  Comparer compare;
  if (a.run && b.run && kind != Kind::kCheckpoint) compare_runs(compare, *a.run, *b.run, kind);
  if (a.evaluation && b.evaluation)
    compare_evaluations(compare, {a.label, b.label}, *a.evaluation, *b.evaluation, kind);
  return compare.take();
}

void excuse_settings(Gate& gate, const store::RecordedRun& a, const store::RecordedRun& b,
                     const Identity& identity) {
  const auto steps = static_cast<std::size_t>(identity.common_steps);
  if (!identity.same_training() || steps != a.steps.size() || steps != b.steps.size()) return;
  excuse(gate,
         "It changed no bit: all " + std::to_string(identity.common_steps) + " steps are equal.",
         [](const Mismatch& mismatch) {
           const auto* row = config::find_key(mismatch.what);
           return row != nullptr && !row->group;
         });
}

void excuse_drawing(Gate& gate) {
  excuse(gate, "The initial weights are equal, however they were drawn.",
         [](const Mismatch& mismatch) { return config::is_of_drawing(mismatch.what); });
  std::erase_if(gate.unknown, [](const auto& fact) { return config::is_of_drawing(fact.key); });
}

void excuse_gradient_scale(Gate& gate, const store::RecordedRun& a, const store::RecordedRun& b) {
  const double factor_a = a.steps.loss_factor, factor_b = b.steps.loss_factor;
  excuse(gate, "The same for gradients of means over labels.", [&](const Mismatch& mismatch) {
    if (mismatch.what != "max_grad_norm" && mismatch.what != "optimizer.eps") return false;
    const auto x = parse_number<double>(mismatch.a), y = parse_number<double>(mismatch.b);
    return x && y && std::abs(*x * factor_a - *y * factor_b) <= kRoundingOfMeans * std::abs(*y);
  });
}

bool are_repeats(const store::RecordedRun& a, const store::RecordedRun& b) {
  if (axes_differ(a, b)) return false;
  Comparer compare;
  const Comparability found = comparability(a, b);
  compare_configs(compare, a, b);
  compare_tokenizers(compare, a, b);
  compare_token_files(compare, a, b, found, Kind::kOutcome);
  compare_batch_sizes(compare, a, b, found);
  const Gate gate = compare.take();
  return !gate.has(MismatchClass::kFatal) && !gate.has(MismatchClass::kConfound);
}

}  // namespace olmo::report

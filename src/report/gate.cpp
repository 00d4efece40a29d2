#include "report/gate.h"

#include <algorithm>
#include <charconv>
#include <map>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"
#include "report/comparability.h"
#include "report/identity.h"

namespace olmo::report {
namespace {

using Leaves = std::map<std::string, std::string>;

Json parse(const std::string& text, const std::string& where) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded())
    throw Error(ErrorKind::kDamaged, where + ": is not JSON, so the record is damaged");
  return json;
}

/// 1.0 is 1 and 4e-4 is 0.0004, as configs of several trainers write numbers in their own ways.
bool same_number(const std::string& a, const std::string& b) {
  const auto number = [](const std::string& text) {
    double value = 0;
    const auto* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, value);
    return parsed.ec == std::errc() && parsed.ptr == end ? std::optional(value) : std::nullopt;
  };
  const auto x = number(a), y = number(b);
  return x && y && *x == *y;
}

void add_leaves(const Json& json, const std::string& path, int depth, Leaves& leaves) {
  constexpr int kDeepest = 32;
  if (json.is_object() && depth < kDeepest) {
    for (const auto& [key, value] : json.items())
      add_leaves(value, path.empty() ? key : path + "." + key, depth + 1, leaves);
  } else if (json.is_string() &&
             json.get_ref<const std::string&>().find("${") != std::string::npos) {
    return;  // of another trainer's config, not resolved: not known
  } else if (!json.is_null()) {
    leaves[path] = json.is_string() ? json.get<std::string>() : json.dump();
  }
}

Leaves leaves_of(const std::string& text, const std::string& where) {
  Leaves leaves;
  add_leaves(parse(text, where), "", 0, leaves);
  return leaves;
}

/// Fatal mismatches first.
void sort_by_weight(Gate& gate) {
  std::stable_sort(gate.mismatches.begin(), gate.mismatches.end(),
                   [](const auto& x, const auto& y) { return x.mismatch < y.mismatch; });
}

class Comparer {
 public:
  void leaf_by_leaf(const Leaves& a, const Leaves& b, const std::string& prefix, auto rule) {
    Leaves all = a;
    all.insert(b.begin(), b.end());
    for (const auto& [key, unused] : all) {
      const auto of = [&, name = key](const Leaves& leaves) {
        const auto found = leaves.find(name);
        return found == leaves.end() ? std::string("not set") : found->second;
      };
      if (of(a) == of(b) || same_number(of(a), of(b))) continue;
      const auto [mismatch, reason] = rule(key);
      add(prefix + key, of(a), of(b), mismatch, reason);
    }
  }

  void add(const std::string& what, const std::string& a, const std::string& b,
           MismatchClass mismatch, const std::string& reason) {
    gate_.mismatches.push_back({what, a, b, mismatch, reason});
  }
  void same(const std::string& what) { gate_.equal.push_back(what); }
  void unknown(const std::string& what, MismatchClass if_different, const std::string& reason,
               const std::string& a = "", const std::string& b = "") {
    gate_.unknown.push_back({what, a, b, if_different, reason, ""});
  }

  /// A fingerprint: fatal where both are known and differ.
  void fingerprint(const std::string& what, const std::string& a, const std::string& b,
                   const std::string& reason) {
    if (a.empty() || b.empty()) return unknown(what, MismatchClass::kFatal, reason, a, b);
    if (a == b) return same(what);
    add(what, a, b, MismatchClass::kFatal, reason);
  }

  Gate take() {
    sort_by_weight(gate_);
    return std::move(gate_);
  }

 private:
  Gate gate_;
};

std::string digests(const store::RecordedRun& run, const std::string& kind) {
  std::vector<std::string> found;
  for (const auto& input : run.inputs)
    if (input.kind == kind) found.push_back(input.sha256);
  std::string joined;
  for (const auto& digest : found) joined += (joined.empty() ? "" : " ") + digest.substr(0, 16);
  return joined;
}

/// The tokenizer's digest; where a side lacks it, the name that its config gives.
void compare_tokenizers(Comparer& compare, const store::RecordedRun& a,
                        const store::RecordedRun& b) {
  std::string x = digests(a, "tokenizer"), y = digests(b, "tokenizer");
  if (x.empty() || y.empty()) {
    const auto named = [](const store::RecordedRun& run) {
      const Leaves leaves = leaves_of(run.config, run.label + ": its config");
      const auto found = leaves.find("tokenizer.identifier");
      return found == leaves.end() ? std::string()
                                   : found->second.substr(found->second.rfind('/') + 1);
    };
    x = named(a);
    y = named(b);
  }
  compare.fingerprint("tokenizer", x, y,
                      "Another tokenizer: the same text is other tokens, so no loss compares.");
}

/// The leaves of `of` that `other` has, too.
Leaves common_to(const Leaves& of, const Leaves& other) {
  Leaves common;
  for (const auto& leaf : of)
    if (other.contains(leaf.first)) common.insert(leaf);
  return common;
}

void compare_configs(Comparer& compare, const store::RecordedRun& a, const store::RecordedRun& b) {
  const Leaves x = leaves_of(a.config, a.label + ": its config");
  const Leaves y = leaves_of(b.config, b.label + ": its config");
  if (x.empty() || y.empty())
    return compare.unknown("config", MismatchClass::kConfound, "Settings that no record tells.");
  const auto by_rule = [](const std::string& key) {
    const auto rule = config::rule_of(key);
    return std::pair{rule.mismatch, rule.reason};
  };
  if (x == y) return compare.same("config");
  if (!a.imported && !b.imported) return compare.leaf_by_leaf(x, y, "", by_rule);
  // Another trainer's config names what it needs, and has defaults of its own for the rest.
  compare.leaf_by_leaf(common_to(x, y), common_to(y, x), "", by_rule);
  const auto say_unknown = [&](const Leaves& of, const Leaves& other, char side) {
    for (const auto& [key, value] : of)
      if (!other.contains(key) && config::rule_of(key).mismatch != MismatchClass::kBenign)
        compare.unknown(key, config::rule_of(key).mismatch, config::rule_of(key).reason,
                        side == 'A' ? value : "", side == 'B' ? value : "");
  };
  say_unknown(x, y, 'A');
  say_unknown(y, x, 'B');
}

void compare_places(Comparer& compare, const std::string& what, const std::string& a,
                    const std::string& b) {
  const Leaves x = leaves_of(a, what);
  const Leaves y = leaves_of(b, what);
  if (x.empty() || y.empty())  // an import does not tell
    return compare.unknown(what, MismatchClass::kBenign, "This is what is being compared.");
  if (x == y) return compare.same(what);
  compare.leaf_by_leaf(x, y, what + ".", [](const std::string& key) {
    const bool confound = key == "precision";
    return std::pair{confound ? MismatchClass::kConfound : MismatchClass::kBenign,
                     confound ? "Another precision." : "This is what is being compared."};
  });
}

/// Facts of a place that say nothing about the computation change from minute to minute.
std::string stable_facts(const std::string& environment) {
  const Json json = parse(environment, "environment");
  Json kept = Json::object();
  for (const char* key : {"host", "architecture", "cpu", "cores_usable", "kernel", "os", "devices"})
    if (json.contains(key)) kept[key] = json[key];
  return kept.dump();
}

void compare_runs(Comparer& compare, const store::RecordedRun& a, const store::RecordedRun& b,
                  Kind kind) {
  compare_configs(compare, a, b);
  compare_tokenizers(compare, a, b);
  compare.fingerprint("token files", digests(a, "tokens"), digests(b, "tokens"),
                      "Other training data.");
  if (!digests(a, "label_mask").empty() || !digests(b, "label_mask").empty())
    compare.fingerprint("label masks", digests(a, "label_mask"), digests(b, "label_mask"),
                        "Other tokens count as labels.");
  const Comparability found = comparability(a, b);
  const bool trajectory = kind == Kind::kTrajectory;
  if (!found.batch_size_known && a.steps.size() > 0 && b.steps.size() > 0)
    compare.unknown("global_train_batch_size", MismatchClass::kConfound, "Another batch size.");
  if (!found.order_known) {
    compare.unknown("data order", trajectory ? MismatchClass::kFatal : MismatchClass::kBenign,
                    "Other batches, which would make it no trajectory of one training.");
  } else if (found.same_order) {
    compare.same("data order (the hash of every common batch)");
  } else if (trajectory && found.same_batch_size) {
    compare.add("data order", "", "", MismatchClass::kFatal,
                "The same steps saw other batches, so this is no trajectory of one training.");
  }
  if (!found.start_known) {
    compare.unknown("initial weights", trajectory ? MismatchClass::kFatal : MismatchClass::kBenign,
                    "Another start, which would make it no trajectory of one training.");
  } else if (found.same_start) {
    compare.same("initial weights (the hash of every tensor)");
  } else {
    const bool close = found.first_loss && *found.first_loss <= kFirstLossTolerance;
    compare.add("initial weights", "", "",
                trajectory && !close ? MismatchClass::kFatal : MismatchClass::kBenign,
                !trajectory ? "Independent trainings start anew."
                : close     ? "A perturbation below the first loss's rounding."
                            : "Another start, so this is no trajectory of one training.");
  }
  const bool same_first_batch = found.order_known ? found.same_order : true;
  const bool same_start = found.start_known ? found.same_start : true;
  if (trajectory && same_first_batch && same_start && found.same_batch_size && found.first_loss) {
    if (*found.first_loss > kFirstLossTolerance) {
      const auto text = [](const store::RecordedRun& run) {
        return Json(run.steps.loss[0]).dump();
      };
      compare.add("loss of the first step", text(a), text(b), MismatchClass::kFatal,
                  "With the same start and data it may differ by 2e-5 (relative) at most: this is "
                  "a difference of configuration or code, not of hardware.");
    } else {
      compare.same("loss of the first step (within 2e-5)");
    }
  }
  if (a.attempts.empty() || b.attempts.empty()) return;
  compare_places(compare, "policy", a.attempts.back().policy, b.attempts.back().policy);
  compare_places(compare, "build", a.attempts.back().build, b.attempts.back().build);
  compare_places(compare, "environment", stable_facts(a.attempts.back().environment),
                 stable_facts(b.attempts.back().environment));
}

void compare_evaluations(Comparer& compare, const EvaluationData& a, const EvaluationData& b,
                         Kind kind) {
  if (kind == Kind::kCheckpoint)
    compare.fingerprint("weights", a.weights_digest, b.weights_digest,
                        "Other weights, so this is not one checkpoint on two machines.");
  compare.fingerprint("tokenizer of the evaluation", a.tokenizer_digest, b.tokenizer_digest,
                      "Another tokenizer: prompts become other tokens.");
  compare_places(compare, "evaluation policy", a.policy, b.policy);
  if (kind == Kind::kCheckpoint) {
    compare_places(compare, "evaluation build", a.build, b.build);
    compare_places(compare, "evaluation environment", stable_facts(a.environment),
                   stable_facts(b.environment));
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
    compare_evaluations(compare, *a.evaluation, *b.evaluation, kind);
  return compare.take();
}

void excuse_settings(Gate& gate, const store::RecordedRun& a, const store::RecordedRun& b,
                     const Identity& identity) {
  const auto steps = static_cast<std::size_t>(identity.common_steps);
  if (!identity.same_training() || steps != a.steps.size() || steps != b.steps.size()) return;
  for (Mismatch& mismatch : gate.mismatches) {
    const auto* row = config::find_key(mismatch.what);
    if (row == nullptr || row->group || mismatch.mismatch == MismatchClass::kBenign) continue;
    mismatch.mismatch = MismatchClass::kBenign;
    mismatch.reason =
        "It changed no bit: all " + std::to_string(identity.common_steps) + " steps are equal.";
  }
  sort_by_weight(gate);
}

bool are_repeats(const store::RecordedRun& a, const store::RecordedRun& b) {
  if (axes_differ(a, b)) return false;
  Comparer compare;
  compare_configs(compare, a, b);
  compare_tokenizers(compare, a, b);
  compare.fingerprint("token files", digests(a, "tokens"), digests(b, "tokens"), "");
  const Gate gate = compare.take();
  return !gate.has(MismatchClass::kFatal) && !gate.has(MismatchClass::kConfound);
}

}  // namespace olmo::report

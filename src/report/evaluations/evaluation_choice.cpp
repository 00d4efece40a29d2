#include "report/evaluations/evaluation_choice.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/text/text.h"
#include "report/evaluations/evaluation_places.h"
#include "report/evaluations/named_evaluations.h"

namespace olmo::report {
namespace {

using store::EvaluationEntry;
using Names = std::set<std::string>;

Names without(const Names& names, const Names& others) {
  Names left;
  std::ranges::set_difference(names, others, std::inserter(left, left.end()));
  return left;
}

/// Whether two evaluations may be set against each other.
bool may_pair(const EvaluationEntry& a, const EvaluationEntry& b, std::optional<Kind> kind,
              const EvaluationPlaces& places) {
  const auto& x = a.record;
  const auto& y = b.record;
  if (kind == Kind::kCheckpoint && !x.weights_digest.empty() && !y.weights_digest.empty())
    return x.weights_digest == y.weights_digest;
  return !x.step || !y.step || places.same(*x.step, *y.step);
}

struct Pair {
  const NamedEvaluation* a = nullptr;
  const NamedEvaluation* b = nullptr;
};

Names common_names(const Pair& pair) { return in_both(names_of(*pair.a), names_of(*pair.b)); }

/// What makes a pair later than another, whichever side is A. Two evaluations may have been made in
/// one millisecond: then their places tell.
auto lateness_of(const Pair& pair) {
  const auto of_both = [&](const auto& of) {
    auto [low, high] = std::minmax({of(*pair.a), of(*pair.b)});
    return std::pair(high, low);
  };
  return std::tuple(of_both([](const NamedEvaluation& one) { return one.entry->created_utc; }),
                    of_both([](const NamedEvaluation& one) { return one.place; }),
                    of_both([](const NamedEvaluation& one) { return one.entry->evaluation_id; }));
}

Pair choose_pair(const std::vector<NamedEvaluation>& a, const std::vector<NamedEvaluation>& b,
                 std::optional<Kind> kind, const EvaluationPlaces& places) {
  Pair best;
  const auto rank = [](const Pair& pair) {
    return std::tuple(pair.a->entry->record.step.value_or(0), common_names(pair).size(),
                      computed_alike(*pair.a->entry, *pair.b->entry),
                      asked_alike(*pair.a, *pair.b).size(), lateness_of(pair));
  };
  for (const NamedEvaluation& x : a) {
    for (const NamedEvaluation& y : b) {
      if (!may_pair(*x.entry, *y.entry, kind, places)) continue;
      const Pair now{&x, &y};
      if (!best.a || rank(now) > rank(best)) best = now;
    }
  }
  if (!best.a && a.size() == 1 && b.size() == 1 && !places.unlike_steps()) best = {&a[0], &b[0]};
  return best;
}

/// Other evaluations of the pair's step, the latest first.
std::vector<Pair> others_of(const Pair& pair, const std::vector<NamedEvaluation>& a,
                            const std::vector<NamedEvaluation>& b) {
  std::vector<Pair> others;
  for (const NamedEvaluation& x : a)
    for (const NamedEvaluation& y : b)
      if (x.entry->record.step == pair.a->entry->record.step &&
          y.entry->record.step == pair.b->entry->record.step && (&x != pair.a || &y != pair.b))
        others.push_back({&x, &y});
  std::ranges::stable_sort(others, std::greater(), lateness_of);
  return others;
}

/// Puts what `names` has of `from` in the place of what `to` has.
void take(const Names& names, EvaluationData from, EvaluationData& to) {
  const auto move_those = [&](auto& source, auto& target, auto name) {
    std::erase_if(target, [&](const auto& each) { return names.contains(each.*name); });
    for (auto& each : source)
      if (names.contains(each.*name)) target.push_back(std::move(each));
    std::ranges::sort(target, {}, name);
  };
  move_those(from.tasks, to.tasks, &EvaluatedTask::task);
  move_those(from.suites, to.suites, &EvaluatedSuite::suite);
  if (from.evaluation_id == to.evaluation_id) return;
  to.sealed = to.sealed && from.sealed;
  to.damage.insert(to.damage.end(), from.damage.begin(), from.damage.end());
}

std::string listed(const Names& names) {
  return joined(std::vector<std::string>(names.begin(), names.end()));
}

Names all_names(const std::vector<NamedEvaluation>& evaluations, const NamedEvaluation& chosen) {
  Names names;
  for (const NamedEvaluation& one : evaluations)
    if (one.entry->record.step == chosen.entry->record.step) names.merge(names_of(one));
  return names;
}

void add_others(const Pair& pair, const SideRecords& in_a, const std::vector<NamedEvaluation>& a,
                const SideRecords& in_b, const std::vector<NamedEvaluation>& b,
                ChosenEvaluations& chosen) {
  std::map<std::string, Asked> compared;
  for (const auto& name : asked_alike(*pair.a, *pair.b))
    compared.emplace(name, pair.a->parts.at(name));
  Names otherwise;
  const auto add = [&](const Pair& other, const Names& names) {
    Names more;
    for (const auto& name : names) {
      const auto known = compared.find(name);
      if (known == compared.end() || asks_more(other.a->parts.at(name), known->second))
        more.insert(name);
    }
    if (more.empty()) return;
    if (!same_model(*other.a->entry, *pair.a->entry) ||
        !same_model(*other.b->entry, *pair.b->entry)) {
      otherwise.insert(more.begin(), more.end());
      return;
    }
    take(more, read_evaluation(in_a, other.a->entry->evaluation_id), *chosen.a);
    take(more, read_evaluation(in_b, other.b->entry->evaluation_id), *chosen.b);
    for (const auto& name : more) compared.insert_or_assign(name, other.a->parts.at(name));
  };
  const auto others = others_of(pair, a, b);
  for (const Pair& other : others) add(other, asked_alike(*other.a, *other.b));
  for (const auto& name : common_names(pair)) compared.emplace(name, pair.a->parts.at(name));
  for (const Pair& other : others) add(other, without(common_names(other), names_of(compared)));
  otherwise = without(otherwise, names_of(compared));
  if (!otherwise.empty())
    chosen.caveats.push_back("Not compared: " + listed(otherwise) +
                             ", which both sides evaluated with another precision, tokenizer "
                             "or other weights than what is compared.");
  const Names all_a = all_names(a, *pair.a), all_b = all_names(b, *pair.b);
  for (const auto& [letter, alone, own] :
       {std::tuple('A', without(all_a, all_b), names_of(*pair.a)),
        std::tuple('B', without(all_b, all_a), names_of(*pair.b))})
    if (const Names left = without(alone, own); !left.empty())
      chosen.caveats.push_back("Not compared: " + listed(left) + ", which only " + letter +
                               " evaluated, in an evaluation of its own.");
}

/// A step of each side.
struct PlacedSteps {
  std::int64_t a = 0, b = 0;
};

/// The last of these that is of a later step; null: none is.
const EvaluationEntry* later_than(std::int64_t step, const std::vector<EvaluationEntry>& entries) {
  const EvaluationEntry* found = nullptr;
  for (const EvaluationEntry& entry : entries)
    if (entry.record.step > (found ? found->record.step : step)) found = &entry;
  return found;
}

/// Names what the sides have of later steps than those that are compared, the last that both
/// evaluated; below any step: none is.
void add_later(const PlacedSteps& compared, const SideRecords& in_a, const SideRecords& in_b,
               const EvaluationPlaces& places, std::vector<std::string>& caveats) {
  for (const auto& [letter, other, last, records] :
       {std::tuple('A', 'B', compared.a, &in_a), std::tuple('B', 'A', compared.b, &in_b)}) {
    const auto add = [&, side = letter](const EvaluationEntry& entry, const std::string& why) {
      caveats.push_back(std::string("Not compared: the evaluation of ") + side + " at " +
                        places.text(side, *entry.record.step) + ", " + why + ".");
    };
    if (const auto* entry = later_than(last, records->evaluations))
      add(*entry, std::string("as ") + other + " has none at that " +
                      (places.unlike_steps() ? "number of tokens" : "step") + " that is finished");
    if (const auto* entry = later_than(last, records->unfinished))
      add(*entry, "which is recorded as " + entry->status);
  }
}

/// A database of evaluations alone stands for its latest model: what else it holds is told.
void add_other_models(char letter, const SideRecords& records, const EvaluationData& compared,
                      const EvaluationData& other, std::vector<std::string>& caveats) {
  if (records.is_named || !records.run_id.empty()) return;
  const std::string database = records.database().path().filename().string();
  const bool unlike = compared.weights_digest != other.weights_digest;
  std::string of_other;  // an evaluation of the other side's weights
  const auto all = store::EvaluationDb(records.database()).list();
  for (const auto& entry : all)
    if (unlike && entry.status == "finished" && !other.weights_digest.empty() &&
        entry.record.weights_digest == other.weights_digest)
      of_other = entry.evaluation_id;
  if (all.size() <= records.evaluations.size()) return;
  const std::string more = counted(std::ssize(all) - std::ssize(records.evaluations), "evaluation");
  caveats.push_back(
      std::string("Of ") + letter + ", " + database + ", " +
      (compared.weights_digest.empty()
           ? "the latest evaluation is compared, which does not tell its weights; it holds " +
                 more + " more."
           : "what was finished with the latest one's weights is compared; it holds " + more +
                 " more, of other weights or not finished.") +
      (of_other.empty()
           ? ""
           : " The other side's weights are those of " + database + ":" + of_other + "."));
}

/// Why no evaluation of one side can be set against one of the other.
std::string problem_of_none(const NamedEvaluation& last_a, const NamedEvaluation& last_b,
                            const EvaluationPlaces& places) {
  if (!places.unlike_steps())
    return "No step was evaluated on both sides: evaluate the same step, or leave the evaluations "
           "out with --skip-evaluations.";
  const auto at = [&](char side, const NamedEvaluation& one) {
    return places.text(side, one.entry->record.step.value_or(0));
  };
  return "No number of tokens was evaluated on both sides, whose batches are of other sizes: the "
         "last evaluation of A is of " +
         at('A', last_a) + ", that of B of " + at('B', last_b) +
         ". Evaluate checkpoints of equal tokens, or leave the evaluations out with "
         "--skip-evaluations.";
}

}  // namespace

ChosenEvaluations choose_evaluations(const Side& a, const SideRecords& in_a, const Side& b,
                                     const SideRecords& in_b, std::optional<Kind> kind) {
  ChosenEvaluations chosen;
  const auto of_a = named_evaluations(in_a), of_b = named_evaluations(in_b);
  const EvaluationPlaces places(a, b);
  const Pair pair = choose_pair(of_a, of_b, kind, places);
  if (pair.a) {
    chosen.a = read_evaluation(in_a, pair.a->entry->evaluation_id);
    chosen.b = read_evaluation(in_b, pair.b->entry->evaluation_id);
    add_others(pair, in_a, of_a, in_b, of_b, chosen);
    add_other_models('A', in_a, *chosen.a, *chosen.b, chosen.caveats);
    add_other_models('B', in_b, *chosen.b, *chosen.a, chosen.caveats);
    const auto step_a = pair.a->entry->record.step, step_b = pair.b->entry->record.step;
    if (!step_a || !step_b || !places.same(*step_a, *step_b)) return chosen;
    add_later({*step_a, *step_b}, in_a, in_b, places, chosen.caveats);
    if (places.unlike_steps())
      chosen.caveats.push_back("The scores are those of equal tokens: of A at " +
                               places.text('A', *step_a) + ", of B at " +
                               places.text('B', *step_b) + ".");
    return chosen;
  }
  if (of_a.empty() && of_b.empty()) {
    add_later({-1, -1}, in_a, in_b, places, chosen.caveats);
    return chosen;
  }
  const Side& without = of_a.empty() ? a : b;
  chosen.problem =
      !of_a.empty() && !of_b.empty()
          ? problem_of_none(of_a.back(), of_b.back(), places)
          : without.label +
                " holds no finished evaluation, the other side does: a metric that is missing is "
                "no pass; evaluate both, or leave them out with --skip-evaluations.";
  return chosen;
}

}  // namespace olmo::report

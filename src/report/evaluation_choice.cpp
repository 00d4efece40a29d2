#include "report/evaluation_choice.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <set>
#include <tuple>

#include <nlohmann/json.hpp>

#include "core/recorded_json.h"
#include "core/text.h"
#include "report/evaluation_match.h"
#include "report/evaluation_places.h"

namespace olmo::report {
namespace {

using store::EvaluationDb;
using store::EvaluationEntry;
using Names = std::set<std::string>;

/// A finished evaluation and the names of its finished tasks and suites.
struct Named {
  const EvaluationEntry* entry;
  std::size_t place;  ///< among those of its side, the oldest first
  Names names;
};

std::vector<Named> named(const SideRecords& records) {
  std::vector<Named> found;
  const EvaluationDb db(records.database());
  for (const auto& entry : records.evaluations) {
    Named& one = found.emplace_back(Named{&entry, found.size(), {}});
    for (const auto& task : db.tasks(entry.evaluation_id))
      if (task.status == "finished") one.names.insert(task.record.task);
  }
  return found;
}

Names in_both(const Names& a, const Names& b) {
  Names names;
  std::ranges::set_intersection(a, b, std::inserter(names, names.end()));
  return names;
}

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

/// What is rounded, as the policy of an evaluation has it.
std::string rounding_of(const EvaluationEntry& entry) {
  const Json policy = recorded_json(entry.record.policy);
  std::string text;
  for (const char* key : {"precision", "mixed_precision"})
    text += (policy.is_object() && policy.contains(key) ? policy[key].dump() : "") + " ";
  return text;
}

/// The same model asked in the same way, whatever was asked.
bool alike(const EvaluationEntry& a, const EvaluationEntry& b) {
  const auto& x = a.record;
  const auto& y = b.record;
  return x.step == y.step && x.weights_digest == y.weights_digest &&
         x.tokenizer_digest == y.tokenizer_digest &&
         limits_of(x.settings) == limits_of(y.settings) && rounding_of(a) == rounding_of(b);
}

struct Pair {
  const Named* a = nullptr;
  const Named* b = nullptr;
};

/// What makes a pair later than another, whichever side is A. Two evaluations may have been made in
/// one millisecond: then their places tell.
auto lateness_of(const Pair& pair) {
  const auto of_both = [&](const auto& of) {
    auto [low, high] = std::minmax({of(*pair.a), of(*pair.b)});
    return std::pair(high, low);
  };
  return std::tuple(of_both([](const Named& one) { return one.entry->created_utc; }),
                    of_both([](const Named& one) { return one.place; }),
                    of_both([](const Named& one) { return one.entry->evaluation_id; }));
}

Pair choose_pair(const std::vector<Named>& a, const std::vector<Named>& b, std::optional<Kind> kind,
                 const EvaluationPlaces& places) {
  Pair best;
  const auto rank = [](const Pair& pair) {
    return std::tuple(pair.a->entry->record.step.value_or(0),
                      in_both(pair.a->names, pair.b->names).size(), lateness_of(pair));
  };
  for (const Named& x : a) {
    for (const Named& y : b) {
      if (!may_pair(*x.entry, *y.entry, kind, places)) continue;
      const Pair now{&x, &y};
      if (!best.a || rank(now) > rank(best)) best = now;
    }
  }
  if (!best.a && a.size() == 1 && b.size() == 1 && !places.unlike_steps()) best = {&a[0], &b[0]};
  return best;
}

/// Other evaluations of the pair's step, the latest first.
std::vector<Pair> others_of(const Pair& pair, const std::vector<Named>& a,
                            const std::vector<Named>& b) {
  std::vector<Pair> others;
  for (const Named& x : a)
    for (const Named& y : b)
      if (x.entry->record.step == pair.a->entry->record.step &&
          y.entry->record.step == pair.b->entry->record.step && (&x != pair.a || &y != pair.b))
        others.push_back({&x, &y});
  std::ranges::stable_sort(others, std::greater(), lateness_of);
  return others;
}

/// Moves what `names` has of `from` into `to`, unless that is there.
void take(const Names& names, EvaluationData from, Names& there, EvaluationData& to) {
  const auto move_those = [&](auto& source, auto& target, auto name) {
    for (auto& each : source)
      if (names.contains(each.*name) && !there.contains(each.*name))
        target.push_back(std::move(each));
    std::ranges::sort(target, {}, name);
  };
  move_those(from.tasks, to.tasks, &EvaluatedTask::task);
  move_those(from.suites, to.suites, &EvaluatedSuite::suite);
  there.insert(names.begin(), names.end());
  to.sealed = to.sealed && from.sealed;
  to.damage.insert(to.damage.end(), from.damage.begin(), from.damage.end());
}

std::string listed(const Names& names) {
  return joined(std::vector<std::string>(names.begin(), names.end()));
}

Names all_names(const std::vector<Named>& evaluations, const Named& chosen) {
  Names names;
  for (const Named& one : evaluations)
    if (one.entry->record.step == chosen.entry->record.step)
      names.insert(one.names.begin(), one.names.end());
  return names;
}

void add_others(const Pair& pair, const SideRecords& in_a, const std::vector<Named>& a,
                const SideRecords& in_b, const std::vector<Named>& b, ChosenEvaluations& chosen) {
  Names has_a = pair.a->names, has_b = pair.b->names, otherwise;
  for (const Pair& other : others_of(pair, a, b)) {
    const Names more = without(in_both(other.a->names, other.b->names), in_both(has_a, has_b));
    if (more.empty()) continue;
    if (!alike(*other.a->entry, *pair.a->entry) || !alike(*other.b->entry, *pair.b->entry)) {
      otherwise.insert(more.begin(), more.end());
      continue;
    }
    const auto read = [](const SideRecords& records, const Named& one) {
      return read_evaluation(records.database(), one.entry->evaluation_id);
    };
    if (other.a != pair.a) take(more, read(in_a, *other.a), has_a, *chosen.a);
    if (other.b != pair.b) take(more, read(in_b, *other.b), has_b, *chosen.b);
  }
  otherwise = without(otherwise, in_both(has_a, has_b));
  if (!otherwise.empty())
    chosen.caveats.push_back("Not compared: " + listed(otherwise) +
                             ", which both sides evaluated with another limit, precision, "
                             "tokenizer or other weights than what is compared.");
  const Names all_a = all_names(a, *pair.a), all_b = all_names(b, *pair.b);
  for (const auto& [letter, alone] : {std::pair('A', without(without(all_a, all_b), has_a)),
                                      std::pair('B', without(without(all_b, all_a), has_b))})
    if (!alone.empty())
      chosen.caveats.push_back("Not compared: " + listed(alone) + ", which only " + letter +
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

/// Why no evaluation of one side can be set against one of the other.
std::string problem_of_none(const Named& last_a, const Named& last_b,
                            const EvaluationPlaces& places) {
  if (!places.unlike_steps())
    return "No step was evaluated on both sides: evaluate the same step, or leave the evaluations "
           "out with --skip-evaluations.";
  const auto at = [&](char side, const Named& one) {
    return places.text(side, one.entry->record.step.value_or(0));
  };
  return "No number of tokens was evaluated on both sides, whose batches are of other sizes: the "
         "last evaluation of A is of " +
         at('A', last_a) + ", that of B of " + at('B', last_b) +
         ". Evaluate checkpoints of equal tokens, or leave the evaluations out with "
         "--skip-evaluations.";
}

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

/// The first task or suite of `names` that differs in a bit; empty: none does.
std::string first_unlike(const EvaluationData& a, const EvaluationData& b, const Names& names) {
  Names unlike;
  Findings ignored;
  for (const auto metric : {TaskMetric::kAccuracy, TaskMetric::kCost})
    for (const TaskPair& pair : match_tasks(a, b, metric, ignored))
      if (!std::ranges::equal(pair.a->logprobs, pair.b->logprobs, same_bits))
        unlike.insert(pair.a->task);
  for (const SuitePair& pair : match_suites(a, b, true, ignored))
    if (!std::ranges::all_of(pair.documents, [](const DocumentPair& documents) {
          return same_bits(documents.a->nll, documents.b->nll);
        }))
      unlike.insert(pair.a->suite);
  const Names found = in_both(unlike, names);
  return found.empty() ? "" : *found.begin();
}

}  // namespace

ChosenEvaluations choose_evaluations(const Side& a, const SideRecords& in_a, const Side& b,
                                     const SideRecords& in_b, std::optional<Kind> kind) {
  ChosenEvaluations chosen;
  const auto of_a = named(in_a), of_b = named(in_b);
  const EvaluationPlaces places(a, b);
  const Pair pair = choose_pair(of_a, of_b, kind, places);
  if (pair.a) {
    chosen.a = read_evaluation(in_a.database(), pair.a->entry->evaluation_id);
    chosen.b = read_evaluation(in_b.database(), pair.b->entry->evaluation_id);
    add_others(pair, in_a, of_a, in_b, of_b, chosen);
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

std::vector<std::string> damage_at_step(const EvaluationData& data) {
  const std::string at = data.step ? " at step " + std::to_string(*data.step) : "";
  std::vector<std::string> sentences;
  for (const auto& sentence : data.damage)
    sentences.push_back("the evaluation " + data.evaluation_id + at + ": " + sentence);
  return sentences;
}

UnlikeScores scores_that_differ(const SideRecords& a, const SideRecords& b) {
  UnlikeScores found;
  std::optional<std::pair<std::int64_t, std::string>> first;
  std::set<std::string> damage_a, damage_b;  // an evaluation may be read for several of the other
  const auto add = [](const EvaluationData& data, std::set<std::string>& damage) {
    const auto sentences = damage_at_step(data);
    damage.insert(sentences.begin(), sentences.end());
  };
  const auto of_a = named(a), of_b = named(b);
  for (const Named& x : of_a) {
    const std::int64_t step = x.entry->record.step.value_or(0);
    std::optional<EvaluationData> in_x;
    for (const Named& y : of_b) {
      const Names common = in_both(x.names, y.names);
      if (common.empty() || !alike(*x.entry, *y.entry)) continue;
      if (!in_x) in_x = read_evaluation(a.database(), x.entry->evaluation_id);
      const auto in_y = read_evaluation(b.database(), y.entry->evaluation_id);
      add(*in_x, damage_a);
      add(in_y, damage_b);
      const std::pair now(step, first_unlike(*in_x, in_y, common));
      if (!now.second.empty() && (!first || now < *first)) first = now;
    }
  }
  found.damage_a.assign(damage_a.begin(), damage_a.end());
  found.damage_b.assign(damage_b.begin(), damage_b.end());
  if (first)
    found.first = "the scores of " + first->second + " at step " + std::to_string(first->first);
  return found;
}

}  // namespace olmo::report

#include "report/training/assignment.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "report/comparability/comparability.h"
#include "report/comparability/settings.h"
#include "report/record/side.h"
#include "report/training/decimals.h"
#include "store/runs/recorded_run.h"

namespace olmo::report {
namespace {

constexpr std::string_view kSideTag = "side:";

bool is_repeat_tag(const std::string& tag) {
  return tag.starts_with("noise") || tag.starts_with("repeat");
}

std::string text_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::set<std::string> side_tags(const store::RecordedRun& run) {
  std::set<std::string> names;
  for (const auto& tag : run.tags)
    if (tag.starts_with(kSideTag)) names.insert(tag.substr(kSideTag.size()));
  return names;
}

/// What one run has in common with A and not with B, or the other way round.
std::optional<char> nearer(const std::set<std::string>& run, const std::set<std::string>& a,
                           const std::set<std::string>& b) {
  const auto has = [&](const std::set<std::string>& side, const std::set<std::string>& other) {
    return std::any_of(run.begin(), run.end(), [&](const auto& name) {
      return side.contains(name) && !other.contains(name);
    });
  };
  const bool of_a = has(a, b), of_b = has(b, a);
  if (of_a == of_b) return std::nullopt;
  return of_a ? 'A' : 'B';
}

struct Level {
  const char* name;
  std::string Place::*value;
};
constexpr Level kLevels[] = {{"cluster", &Place::cluster},
                             {"host", &Place::host},
                             {"name of its hosts", &Place::hosts},
                             {"hardware", &Place::hardware}};

/// Ids of the runs that go on from a checkpoint or are tagged, but for the compared ones.
std::set<std::string> ids_to_read(const SideRecords& records,
                                  const std::set<std::string>& compared) {
  std::set<std::string> ids;
  for (const auto& [run_id, tag] : store::read_tags(records.database()))
    if (is_repeat_tag(tag)) ids.insert(run_id);
  for (auto& id : store::runs_from_checkpoints(records.database())) ids.insert(std::move(id));
  for (const auto& id : compared) ids.erase(id);
  return ids;
}

}  // namespace

Place place_of(const store::RecordedRun& run) {
  const Json facts = store::environment_of(run);
  Place place{.cluster = text_at(facts, "cluster"), .host = text_at(facts, "host")};
  place.hosts = place.host.substr(0, place.host.find_first_of("0123456789"));
  const auto variables = facts.find("variables");
  if (place.cluster.empty() && variables != facts.end() && variables->is_object())
    place.cluster = text_at(*variables, "SLURM_CLUSTER_NAME");
  for (const char* key : {"architecture", "cpu", "gpu", "devices"}) {
    const std::string value = text_at(facts, key);
    if (!value.empty()) place.hardware += (place.hardware.empty() ? "" : ", ") + value;
  }
  return place;
}

std::optional<std::uint64_t> seed_of(const store::RecordedRun& run) {
  if (!run.imported || run.seed != 0) return run.seed;
  return leaves_of(run.config, run.label + ": its config").contains("seed")
             ? std::optional(run.seed)
             : std::nullopt;
}

bool is_tagged_repeat(const store::RecordedRun& run) {
  return std::any_of(run.tags.begin(), run.tags.end(), is_repeat_tag);
}

bool is_same_run(const store::RecordedRun& a, const store::RecordedRun& b) {
  constexpr std::size_t kEnough = 20;  // that many losses of two trainings are not equal by chance
  if (!a.last_chain.empty() && a.last_chain == b.last_chain) return true;
  const auto &x = a.steps.loss, &y = b.steps.loss;
  const auto shorter = std::min(x.size(), y.size());
  const WrittenLosses in_a(a), in_b(b);
  const auto same = [&](double p, double q) {
    constexpr double kOfDecimals = 1 + 1e-6;  // which binary numbers meet nearly
    return std::abs(p - q) <= kOfDecimals * (in_a.half_unit(p) + in_b.half_unit(q));
  };
  const auto common = common_steps(a.steps, b.steps);
  const bool enough = common.size() >= kEnough || (common.size() == shorter && shorter >= 2);
  if (enough && std::ranges::all_of(
                    common, [&](const auto& step) { return same(x[step.first], y[step.second]); }))
    return true;
  return x.size() == y.size() && shorter >= kEnough && std::ranges::equal(x, y, same);
}

std::vector<Candidate> read_candidates(const Side& a, const SideRecords& in_a, const Side& b,
                                       const SideRecords& in_b) {
  std::set<std::string> compared;
  for (const Side* side : {&a, &b})
    if (side->run) compared.insert(side->run->run_id);
  const auto ids_a = ids_to_read(in_a, compared), ids_b = ids_to_read(in_b, compared);
  std::set<std::string> all = ids_a;
  all.insert(ids_b.begin(), ids_b.end());
  std::vector<Candidate> candidates;
  for (const auto& id : all) {
    const bool first = ids_a.contains(id);
    Candidate candidate{read_whole_run((first ? in_a : in_b).database(), id), first,
                        ids_b.contains(id)};
    candidate.run.label = id;
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

Assigned side_of(const Candidate& candidate, const store::RecordedRun& a,
                 const store::RecordedRun& b) {
  const auto tags = side_tags(candidate.run), tags_a = side_tags(a), tags_b = side_tags(b);
  if (!tags.empty()) {
    const std::string tag = "tag side:" + *tags.begin();
    const auto side = nearer(tags, tags_a, tags_b);
    if (side) return {side, tag};
    if (!tags_a.empty() || !tags_b.empty())
      return {std::nullopt, tag + ", which does not tell A from B: tag the compared runs alike"};
  }
  const Place place = place_of(candidate.run), in_a = place_of(a), in_b = place_of(b);
  std::string elsewhere;
  for (const auto& level : kLevels) {
    const std::string &value = place.*level.value, &of_a = in_a.*level.value,
                      &of_b = in_b.*level.value;
    const std::string what = std::string(level.name) + " " + value;
    // A side named by its cluster or host.
    if (const auto side = nearer(tags, {of_a}, {of_b}))
      return {side, "tag side:" + *tags.begin() + ", the " + level.name + " of that side"};
    if (value.empty() || of_a == of_b || of_a.empty() || of_b.empty()) continue;
    if (value == of_a || value == of_b) return {value == of_a ? 'A' : 'B', what};
    if (elsewhere.empty()) elsewhere = what;
  }
  if (!tags.empty())
    return {std::nullopt,
            "tag side:" + *tags.begin() +
                ", which neither compared run has: olmo-harness runs tag RUN side:NAME"};
  if (!elsewhere.empty()) return {std::nullopt, elsewhere + " is neither A's nor B's"};
  if (candidate.in_a != candidate.in_b)
    return {candidate.in_a ? 'A' : 'B', "its database", /*by_database=*/true};
  return {std::nullopt,
          "its record does not tell on which side it ran: tag it and the compared runs, "
          "olmo-harness runs tag RUN side:NAME"};
}

}  // namespace olmo::report

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "report/page/json_parts.h"
#include "report/page/pages.h"
#include "report/page/sections.h"

namespace olmo::report {
namespace {

using namespace page;
using Ordered = OrderedJson;

/// What is unknown stands among the mismatches, too: it is neither equal nor different.
Ordered gate_json(const Gate& gate) {
  Ordered mismatches = Ordered::array(), unknown = Ordered::array();
  for (const Mismatch& m : gate.mismatches)
    mismatches.push_back({{"what", m.what},
                          {"class", to_string(m.mismatch)},
                          {"a", m.a},
                          {"b", m.b},
                          {"reason", m.reason}});
  for (const UnknownFact& fact : gate.unknown) {
    unknown.push_back(fact.key);
    mismatches.push_back({{"what", fact.key},
                          {"class", "unknown"},
                          {"a", fact.a},
                          {"b", fact.b},
                          {"reason", fact.reason},
                          {"if_different", to_string(fact.if_different)},
                          {"assumed", fact.assumed}});
  }
  return {{"mismatches", mismatches}, {"equal", gate.equal}, {"unknown", unknown}};
}

const char* endpoint_name(Endpoint endpoint) {
  if (endpoint == Endpoint::kScores) return "scores";
  if (endpoint == Endpoint::kLoss) return "loss";
  if (endpoint == Endpoint::kMacro) return "macro";
  return endpoint == Endpoint::kBpb ? "bpb" : "task";
}

Ordered margin_json(const Margin& m) {
  return {{"value", json_of(m.value)},
          {"source", to_string(m.source)},
          {"who", m.who},
          {"when", m.when},
          {"reason", m.reason}};
}

Ordered test_json(const Test& t) {
  // Of too few values there is an estimate, and nothing that says how far it may be off.
  const auto tested = [&](const auto& value) {
    return t.too_few ? Ordered(nullptr) : json_of(value);
  };
  return {{"endpoint", endpoint_name(t.endpoint)},
          {"name", t.name},
          {"method", t.method},
          {"unit", t.unit},
          {"noise", t.noise},
          {"primary", t.primary},
          {"estimate", json_of(t.estimate)},
          {"interval90", tested(t.interval90)},
          {"interval95", tested(t.interval95)},
          {"standard_error", json_of(t.standard_error)},
          {"margin", margin_json(t.margin)},
          {"p", json_of(t.p)},
          {"holm_p", json_of(t.holm_p)},
          {"n", t.n},
          {"k_a", t.k_a},
          {"k_b", t.k_b},
          {"equal_bits", t.equal_bits},
          {"too_few", t.too_few},
          {"excludes", tested(t.excludes)},
          {"within_margin", t.within_margin},
          {"certified", t.certified},
          {"different", t.different},
          {"power", json_of(t.power)}};
}

Ordered claim_json(const Claim& c) {
  Ordered tests = Ordered::array();
  for (const Test& test : c.tests) tests.push_back(test_json(test));
  return {{"claim", to_string(c.scope)}, {"verdict", to_string(c.verdict)},
          {"sentence", c.sentence},      {"deciding", or_null<Ordered>(c.deciding)},
          {"stronger", c.stronger},      {"tests", tests}};
}

Ordered claims_json(const ParityReport& r) {
  Ordered claims = Ordered::array();
  for (const Claim& claim : r.claims) claims.push_back(claim_json(claim));
  return claims;
}

Ordered alpha_json(const AlphaSpent& a) {
  return {{"equivalence", json_of(a.equivalence)},
          {"difference", json_of(a.difference)},
          {"difference_tests", a.difference_tests}};
}

Ordered margins_json(const Margins& m) {
  return {{"loss", margin_json(m.loss)},
          {"macro", margin_json(m.macro)},
          {"bpb", margin_json(m.bpb)},
          {"task", margin_json(m.task)}};
}

Ordered state_json(const HashedState& s) {
  return {{"step", s.step},
          {"tensors", s.tensors},
          {"different", s.different},
          {"first_names", s.names}};
}

Ordered operation_json(const TracedOperation& o) {
  return {{"parted", o.parted},
          {"traced_step", or_null<Ordered>(o.traced)},
          {"operation", o.operation},
          {"reason", o.reason},
          {"to_run", o.to_run}};
}

Ordered reference_json(const ReferenceDistance& r) {
  return {{"numerics", r.numerics},
          {"ce_loss_distance", json_of(r.ce_loss)},
          {"grad_norm_distance", json_of(r.grad_norm)},
          {"audits", json_list(r.audits)}};
}

Ordered between_json(const AuditedDistance& d) {
  return {{"steps", d.steps},
          {"ce_loss_distance", json_of(d.ce_loss)},
          {"grad_norm_distance", json_of(d.grad_norm)},
          {"explained", d.explained}};
}

Ordered identity_json(const Identity& i) {
  if (!i.known) return nullptr;
  return {
      {"chains_comparable", i.same_format},
      {"common_steps", i.common_steps},
      {"equal_steps", i.equal_steps},
      {"equal_through", i.equal_through},
      {"first_different", i.first_different == 0 ? Ordered(nullptr) : Ordered(i.first_different)},
      {"first_field", i.first_field},
      {"equal_batches", i.same_format ? Ordered(i.equal_batches) : Ordered(nullptr)},
      {"equal_state", i.equal_state ? state_json(*i.equal_state) : Ordered(nullptr)},
      {"parted_state", i.parted_state ? state_json(*i.parted_state) : Ordered(nullptr)},
      {"last_state", i.last_state ? state_json(*i.last_state) : Ordered(nullptr)},
      {"operation", i.operation ? operation_json(*i.operation) : Ordered(nullptr)},
      {"reference", {{"a", reference_json(i.reference_a)}, {"b", reference_json(i.reference_b)}}},
      {"between", i.between ? between_json(*i.between) : Ordered(nullptr)},
      {"chain_a", i.chain_a},
      {"chain_b", i.chain_b}};
}

Ordered repeat_json(const Repeat& r) {
  return {{"run_id", r.run_id},
          {"side", r.side ? Ordered(std::string(1, *r.side)) : Ordered(nullptr)},
          {"seed", or_null<Ordered>(r.seed)},
          {"host", r.host},
          {"tags", r.tags},
          {"known_by", r.known_by},
          {"taken", r.taken},
          {"left_out", r.left_out},
          {"mean", r.taken ? json_of(r.mean) : Ordered(nullptr)}};
}

Ordered noise_json(const NoiseFloor& n) {
  Ordered branches = Ordered::array(), unpaired = Ordered::array();
  for (const BranchPair& pair : n.branches.pairs)
    branches.push_back({{"from_step", pair.from_step},
                        {"start", pair.start},
                        {"steps", pair.steps},
                        {"run_a", pair.run_a},
                        {"run_b", pair.run_b},
                        {"difference", json_of(pair.difference)},
                        {"equal_bits", pair.equal_bits}});
  for (const UnpairedBranch& branch : n.branches.unpaired)
    unpaired.push_back({{"run_id", branch.run_id}, {"reason", branch.reason}});
  Ordered looked_at = Ordered::array();
  for (const Repeat& repeat : n.looked_at) looked_at.push_back(repeat_json(repeat));
  return {{"looked_at", looked_at},
          {"pairs", n.pairs},
          {"branches", branches},
          {"branches_without_partner", unpaired},
          {"runs_a", n.runs_a},
          {"runs_b", n.runs_b},
          {"k_a", n.k_a},
          {"k_b", n.k_b},
          {"values_a", json_list(n.values_a)},
          {"values_b", json_list(n.values_b)},
          {"seed_deviation", json_of(n.seed_deviation)},
          {"p", json_of(n.p)},
          {"minimum_p", json_of(n.minimum_p)},
          {"equivalence", json_or_null(n.equivalence)},
          {"to_run", n.to_run}};
}

Ordered growth_json(const Growth& g) {
  return {{"slope", json_of(g.slope)},
          {"log_level", json_of(g.log_level)},
          {"knee_tokens", json_of(g.knee_tokens)},
          {"saturated", g.saturated},
          {"bins", g.bins},
          {"residual", json_of(g.residual)}};
}

Ordered drift_json(const Drift& d) {
  return {{"blocks", d.blocks},        {"positive", d.positive},
          {"negative", d.negative},    {"sign_p", json_of(d.sign_p)},
          {"slope", json_of(d.slope)}, {"slope_p", json_of(d.slope_p)}};
}

Ordered last_json(const Trajectory& t) {
  Ordered json = {{"share", json_of(t.share)},
                  {"from_tokens", t.last.from_tokens},
                  {"points", t.last.points},
                  {"loss_a", json_of(t.last_a)},
                  {"loss_b", json_of(t.last_b)},
                  {"mean", json_of(t.last.mean)},
                  {"interval95", json_or_null(t.last_interval95)},
                  {"test", json_or_null(t.last.test)},
                  {"autocorrelation_time", nullptr},
                  {"block", nullptr}};
  if (t.last.series) {
    json["autocorrelation_time"] = json_of(t.last.series->autocorrelation_time());
    json["block"] = t.last.series->block();
  }
  return json;
}

Ordered trajectory_json(const Trajectory& t) {
  Ordered partings = Ordered::array();
  for (const Parting& p : t.partings)
    partings.push_back({{"cause", to_string(p.cause)},
                        {"position", p.position},
                        {"before", json_of(p.before)},
                        {"after", json_of(p.after)}});
  return {{"partings", partings},
          {"caveats", t.caveats},
          {"tokens_known", t.tokens_known},
          {"bin_tokens", t.binned ? Ordered(t.bin_tokens) : Ordered(nullptr)},
          {"points", t.loss.tokens.size()},
          {"only_a", t.loss.only_a},
          {"only_b", t.loss.only_b},
          {"first_loss_relative", json_of(t.first_loss_relative)},
          {"largest", json_of(t.largest)},
          {"largest_relative", json_of(t.largest_relative)},
          {"largest_smoothed", json_of(t.largest_smoothed)},
          {"margin", json_of(t.margin)},
          {"margin_source", t.margin_source},
          {"last_stretch", last_json(t)},
          {"growth", t.growth ? growth_json(*t.growth) : Ordered(nullptr)},
          {"drift", t.drift ? drift_json(*t.drift) : Ordered(nullptr)},
          {"marks", json_list(t.marks)}};
}

Ordered agreement_json(const ScoreAgreement& s) {
  return {{"options", s.options},          {"equal_bits", s.equal_bits},
          {"mean", json_of(s.mean)},       {"standard_deviation", json_of(s.standard_deviation)},
          {"low", json_of(s.low)},         {"high", json_of(s.high)},
          {"median", json_of(s.median)},   {"quantile999", json_of(s.quantile999)},
          {"largest", json_of(s.largest)}, {"divergence", json_of(s.divergence)}};
}

Ordered task_json(const TaskComparison& t) {
  return {{"task", t.task},
          {"metric", t.metric},
          {"n", t.n},
          {"both_right", t.counts.both_right},
          {"only_a_right", t.counts.only_a_right},
          {"only_b_right", t.counts.only_b_right},
          {"both_wrong", t.counts.both_wrong},
          {"accuracy_a", json_of(t.accuracy_a)},
          {"accuracy_b", json_of(t.accuracy_b)},
          {"difference", json_of(t.difference)},
          {"interval95", json_of(t.interval95)},
          {"p", json_of(t.p)},
          {"holm_p", json_of(t.holm_p)},
          {"equivalence", json_of(t.equivalence)},
          {"detectable", json_of(t.detectable)},
          {"needed_n", t.needed_n},
          {"agreement", agreement_json(t.agreement)},
          {"flips", t.flips},
          {"explained_flips", t.explained_flips}};
}

Ordered flip_json(const Flip& f) {
  return {{"task", f.task},
          {"doc_id", f.doc_id},
          {"label", f.label},
          {"chosen_a", f.chosen_a},
          {"chosen_b", f.chosen_b},
          {"margin_a", json_of(f.margin_a)},
          {"margin_b", json_of(f.margin_b)},
          {"logprobs_a", json_list(f.logprobs_a)},
          {"logprobs_b", json_list(f.logprobs_b)},
          {"explained", f.explained}};
}

Ordered macro_json(const MacroComparison& m) {
  return {{"accuracy_a", json_of(m.accuracy_a)},
          {"accuracy_b", json_of(m.accuracy_b)},
          {"difference", json_of(m.difference)},
          {"interval95", json_of(m.interval95)},
          {"equivalence", json_of(m.equivalence)}};
}

Ordered tasks_json(const TasksComparison& t) {
  Ordered tasks = Ordered::array();
  for (const TaskComparison& task : t.tasks) tasks.push_back(task_json(task));
  Ordered flips = Ordered::array();
  for (const Flip& flip : t.flips) flips.push_back(flip_json(flip));
  return {{"tasks", tasks},
          {"macro", t.macro ? macro_json(*t.macro) : Ordered(nullptr)},
          {"all_pass_p", json_of(t.all_pass_p)},
          {"noise", json_of(t.noise)},
          {"noise_source", t.noise_source},
          {"flips", t.all_flips},
          {"explained_flips", t.all_explained},
          {"listed_flips", flips},
          {"invalid", t.invalid},
          {"mismatched", t.mismatched}};
}

Ordered perplexity_json(const PerplexityComparison& p) {
  Ordered sources = Ordered::array();
  for (const SourceComparison& s : p.sources)
    sources.push_back({{"suite", s.suite},
                       {"source", s.source.empty() ? Ordered(nullptr) : Ordered(s.source)},
                       {"unit", s.unit},
                       {"documents", s.documents},
                       {"tokens", s.tokens},
                       {"bytes", s.bytes},
                       {"bpb_a", json_of(s.bpb_a)},
                       {"bpb_b", json_of(s.bpb_b)},
                       {"difference", json_of(s.difference)},
                       {"interval95", json_or_null(s.interval95)},
                       {"equivalence", json_or_null(s.equivalence)},
                       {"p", json_of(s.p)},
                       {"holm_p", json_of(s.holm_p)},
                       {"equal_bits", s.equal_bits}});
  return {{"sources", sources}, {"invalid", p.invalid}, {"mismatched", p.mismatched}};
}

}  // namespace

nlohmann::ordered_json parity_json(const ParityReport& r) {
  return {
      {"schema", kParitySchema},
      {"verdict", to_string(r.verdict)},
      {"exit_code", exit_code(r.verdict)},
      {"claim", r.claim.empty() ? Ordered(nullptr) : Ordered(r.claim)},
      {"reason", r.reason},
      {"claims", claims_json(r)},
      {"margins", margins_json(r.margins)},
      {"alpha", alpha_json(r.alpha)},
      {"caveats", r.caveats},
      {"kind", to_string(r.kind)},
      {"kind_reason", r.kind_reason},
      {"a", json_of(r.a)},
      {"b", json_of(r.b)},
      {"gate", gate_json(r.gate)},
      {"damage", r.damage},
      {"identity", identity_json(r.identity)},
      {"noise_floor", noise_json(r.noise)},
      {"trajectory", r.trajectory ? trajectory_json(*r.trajectory) : Ordered(nullptr)},
      {"tasks", r.tasks ? tasks_json(*r.tasks) : Ordered(nullptr)},
      {"perplexity", r.perplexity ? perplexity_json(*r.perplexity) : Ordered(nullptr)},
      {"evaluations", {{"a", json_list(r.scores_a)}, {"b", json_list(r.scores_b)}}},
      {"efficiency", {{"a", json_or_null(r.efficiency_a)}, {"b", json_or_null(r.efficiency_b)}}},
      {"command", r.command},
      {"version", r.version}};
}

}  // namespace olmo::report

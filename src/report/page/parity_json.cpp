#include <nlohmann/json.hpp>

#include "report/page/json_parts.h"
#include "report/page/pages.h"

namespace olmo::report {
namespace {

using namespace page;
using Ordered = OrderedJson;

Ordered gate_json(const Gate& gate) {
  Ordered mismatches = Ordered::array();
  for (const Mismatch& m : gate.mismatches)
    mismatches.push_back({{"what", m.what},
                          {"class", to_string(m.mismatch)},
                          {"a", m.a},
                          {"b", m.b},
                          {"reason", m.reason}});
  Ordered unknown = Ordered::array();
  for (const UnknownFact& fact : gate.unknown) unknown.push_back(fact.key);
  return {{"mismatches", mismatches}, {"equal", gate.equal}, {"unknown", unknown}};
}

template <typename Value>
Ordered value_or_null(const std::optional<Value>& value) {
  return value ? Ordered(*value) : Ordered(nullptr);
}

Ordered state_json(const HashedState& s) {
  return {{"step", s.step},
          {"tensors", s.tensors},
          {"different", s.different},
          {"first_names", s.names}};
}

Ordered operation_json(const TracedOperation& o) {
  return {{"parted", o.parted},
          {"traced_step", value_or_null(o.traced)},
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

Ordered noise_json(const NoiseFloor& n) {
  return {{"runs_a", n.runs_a},
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
  if (t.last.bootstrap) {
    json["autocorrelation_time"] = json_of(t.last.bootstrap->autocorrelation_time);
    json["block"] = t.last.bootstrap->block;
  }
  return json;
}

Ordered trajectory_json(const Trajectory& t) {
  return {{"tokens_known", t.tokens_known},
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
  return {{"options", s.options},         {"equal_bits", s.equal_bits},
          {"mean", json_of(s.mean)},      {"standard_deviation", json_of(s.standard_deviation)},
          {"low", json_of(s.low)},        {"high", json_of(s.high)},
          {"largest", json_of(s.largest)}};
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
          {"discordance_floor", json_of(t.discordance_floor)},
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
      {"schema", "olmo-harness/parity@1"},
      {"verdict", to_string(r.verdict)},
      {"exit_code", exit_code(r.verdict)},
      {"reason", r.reason},
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
      {"efficiency", {{"a", json_or_null(r.efficiency_a)}, {"b", json_or_null(r.efficiency_b)}}},
      {"command", r.command},
      {"version", r.version}};
}

}  // namespace olmo::report

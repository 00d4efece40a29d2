#include "report/page/json_parts.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "core/files/json.h"

namespace olmo::report::page {
namespace {

OrderedJson run_json(const store::RecordedRun& run) {
  const store::StepColumns& steps = run.steps;
  OrderedJson json = {
      {"run_id", run.run_id},
      {"name", run.name},
      {"status", run.status},
      {"created_utc", run.created_utc},
      {"experiment_digest", run.experiment_digest},
      {"tags", run.tags},
      {"imported", run.imported},
      {"parameters", run.n_parameters > 0 ? OrderedJson(run.n_parameters) : nullptr},
      {"steps", steps.size()},
      {"last_step", nullptr},
      {"tokens", nullptr},
      {"last_loss", nullptr},
      {"attempts", run.attempts.size()}};
  if (!steps.step.empty() && steps.steps_known) json["last_step"] = steps.step.back();
  if (!steps.tokens.empty() && run.tokens_known) json["tokens"] = steps.tokens.back();
  if (!steps.loss.empty()) json["last_loss"] = json_of(steps.loss.back());
  if (steps.loss_factor != 1) json["loss_factor"] = steps.loss_factor;
  json["steps_known"] = steps.steps_known;
  json["tokens_known"] = run.tokens_known;
  json["metrics"] = OrderedJson::array();
  for (const auto& metric : run.metrics)
    json["metrics"].push_back({{"name", metric.name},
                               {"points", metric.points},
                               {"last_step", metric.last_step},
                               {"last", json_of(metric.last)}});
  return json;
}

OrderedJson evaluation_json(const EvaluationData& evaluation) {
  return {{"evaluation_id", evaluation.evaluation_id},
          {"created_utc", evaluation.created_utc},
          {"checkpoint", evaluation.checkpoint},
          {"weights_digest", evaluation.weights_digest},
          {"tokenizer_digest", evaluation.tokenizer_digest},
          {"step", or_null<OrderedJson>(evaluation.step)},
          {"tasks", evaluation.tasks.size()},
          {"suites", evaluation.suites.size()}};
}

OrderedJson world_json(const World& world) {
  OrderedJson phases = OrderedJson::array(), ranks = OrderedJson::array();
  for (const PhaseTime& phase : world.phases)
    phases.push_back({{"phase", phase.phase},
                      {"mean", json_of(phase.mean)},
                      {"least", json_of(phase.least)},
                      {"most", json_of(phase.most)}});
  for (const store::RankRecord& rank : world.ranks)
    ranks.push_back({{"rank", rank.rank},
                     {"host", rank.host},
                     {"device", rank.device},
                     {"threads", rank.threads},
                     {"steps", rank.steps},
                     {"data_seconds", json_of(rank.data_seconds)},
                     {"compute_seconds", json_of(rank.compute_seconds)},
                     {"gather_seconds", json_of(rank.gather_seconds)},
                     {"exchange_seconds", json_of(rank.exchange_seconds)},
                     {"save_seconds", json_of(rank.save_seconds)},
                     {"wait_seconds", json_of(rank.wait_seconds)},
                     {"gathered_bytes", rank.gathered_bytes},
                     {"exchanged_bytes", rank.exchanged_bytes},
                     {"slowest_steps", rank.slowest_steps}});
  return {{"attempts", world.attempts},
          {"phases", phases},
          {"slowest", world.slowest ? OrderedJson(to_text(*world.slowest)) : OrderedJson(nullptr)},
          {"bytes_of_step", or_null<OrderedJson>(world.bytes_of_step)},
          {"ranks", ranks}};
}

OrderedJson energy_json(const store::EnergyRecord& energy) {
  return {{"host", energy.host},
          {"source", energy.source},
          {"device", energy.device},
          {"covers", energy.covers},
          {"joules", json_of(energy.joules)},
          {"seconds", json_of(energy.seconds)},
          {"samples", energy.samples},
          {"note", energy.note}};
}

OrderedJson cluster_json(const Cluster& cluster) {
  return {{"name", cluster.name},
          {"device", cluster.device},
          {"devices_per_node", json_of(cluster.devices_per_node)},
          {"peak_flops", json_of(cluster.peak_flops)},
          {"peak_source", cluster.peak_source},
          {"pue", json_of(cluster.pue)},
          {"pue_source", cluster.pue_source},
          {"kg_per_kwh", json_of(cluster.kg_per_kwh)},
          {"kg_per_kwh_source", cluster.kg_per_kwh_source},
          {"kg_per_kwh_market", json_of(cluster.kg_per_kwh_market)},
          {"kg_per_kwh_market_source", cluster.kg_per_kwh_market_source},
          {"price_per_device_hour", json_of(cluster.price_per_device_hour)},
          {"currency", cluster.currency},
          {"price_source", cluster.price_source}};
}

}  // namespace

OrderedJson json_of(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
}

OrderedJson json_of(const std::optional<double>& value) {
  return value ? json_of(*value) : OrderedJson(nullptr);
}

OrderedJson json_of(const Interval& interval) {
  return OrderedJson::array({json_of(interval.low), json_of(interval.high)});
}

OrderedJson json_of(const Equivalence& equivalence) {
  return {{"estimate", json_of(equivalence.estimate)},
          {"interval90", json_of(equivalence.interval)},
          {"margin", json_of(equivalence.margin)},
          {"p", json_of(equivalence.p)},
          {"certified", equivalence.certified}};
}

OrderedJson json_of(const Side& side) {
  return {
      {"label", side.label},
      {"database", side.database},
      {"sha256",
       side.database_sha256.empty() ? OrderedJson(nullptr) : OrderedJson(side.database_sha256)},
      {"run", side.run ? run_json(*side.run) : OrderedJson(nullptr)},
      {"unchecked", side.unchecked},
      {"evaluation", side.evaluation ? evaluation_json(*side.evaluation) : OrderedJson(nullptr)}};
}

OrderedJson json_of(const Mark& mark) {
  return {{"side", std::string(1, mark.side)},
          {"step", mark.step == kUnknownStep ? OrderedJson(nullptr) : OrderedJson(mark.step)},
          {"tokens", mark.tokens},
          {"kind", mark.kind},
          {"text", mark.text}};
}

OrderedJson json_of(const Efficiency& e) {
  OrderedJson sources = OrderedJson::array();
  for (const store::EnergyRecord& energy : e.sources) sources.push_back(energy_json(energy));
  OrderedJson peaks = OrderedJson::array();
  for (const Peak& peak : e.peaks)
    peaks.push_back(
        {{"flops", json_of(peak.flops)}, {"source", peak.source}, {"mfu", json_of(peak.mfu)}});
  return {{"device", e.device},
          {"devices", json_of(e.devices)},
          {"tokens", json_of(e.tokens)},
          {"train_seconds", json_of(e.train_seconds)},
          {"redone_seconds", json_of(e.redone_seconds)},
          {"tokens_per_second", json_of(e.tokens_per_second)},
          {"tokens_per_second_per_device", json_of(e.tokens_per_second_per_device)},
          {"flops_per_token", json_of(e.flops_per_token)},
          {"flops_formula", e.flops_formula},
          {"peak_flops", json_of(e.peak_flops)},
          {"peak_source", e.peak_source},
          {"peaks", peaks},
          {"mfu", json_of(e.mfu)},
          {"mfu_note", e.mfu_note},
          {"device_hours", json_of(e.device_hours)},
          {"hours_note", e.hours_note},
          {"joules", json_of(e.joules)},
          {"energy_method", e.energy_method},
          {"energy_coverage", json_of(e.energy_coverage)},
          {"kwh", json_of(e.kwh)},
          {"facility_kwh", json_of(e.facility_kwh)},
          {"carbon_kg", json_of(e.carbon_kg)},
          {"carbon_kg_market", json_of(e.carbon_kg_market)},
          {"tokens_per_joule", json_of(e.tokens_per_joule)},
          {"cost", json_of(e.cost)},
          {"cluster", cluster_json(e.cluster)},
          {"energy_sources", sources},
          {"world", world_json(e.world)}};
}

OrderedJson json_of(const AuditedStretch& a) {
  return {{"first_step", a.first_step},
          {"last_step", a.last_step},
          {"machine", a.machine},
          {"verdict", a.verdict},
          {"difference_step", or_null<OrderedJson>(a.difference_step)},
          {"difference", a.difference},
          {"operation", a.operation},
          {"ce_loss_distance", json_of(a.ce_loss)},
          {"grad_norm_distance", json_of(a.grad_norm)}};
}

OrderedJson json_of(const EvaluationScores& evaluation) {
  OrderedJson scores = OrderedJson::array();
  for (const Score& score : evaluation.scores)
    scores.push_back({{"task", score.task},
                      {"convention", score.convention},
                      {"scope", score.scope},
                      {"metric", score.metric},
                      {"n", score.n},
                      {"value", json_of(score.value)},
                      {"interval95", json_or_null(score.interval95)}});
  return {{"evaluation_id", evaluation.evaluation_id},
          {"created_utc", evaluation.created_utc},
          {"status", evaluation.status},
          {"checkpoint", evaluation.checkpoint},
          {"step", or_null<OrderedJson>(evaluation.step)},
          {"scores", scores},
          {"problems", evaluation.problems},
          {"damage", evaluation.damage}};
}

}  // namespace olmo::report::page

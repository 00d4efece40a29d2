#include "cli/compute/audit_output.h"

#include <nlohmann/json.hpp>

#include "core/files/recorded_json.h"
#include "core/process/terminal.h"
#include "core/text/text.h"
#include "store/runs/policy_json.h"

namespace olmo::cli::compute {
namespace {

constexpr std::size_t kMostFindings = 8;

/// A member of a JSON text; empty if it is not there.
std::string member(const std::string& text, const char* key) {
  const Json json = recorded_json(text);
  if (!json.is_object() || !json.contains(key)) return {};
  return json[key].is_string() ? json[key].get<std::string>() : json[key].dump();
}

std::string steps_of(const audit::Stretch& stretch) {
  if (stretch.first == stretch.last) return "step " + std::to_string(stretch.first);
  return "steps " + std::to_string(stretch.first) + ".." + std::to_string(stretch.last);
}

std::string list_of(const std::vector<std::string>& sentences) {
  std::string text;
  for (std::size_t i = 0; i < std::min(kMostFindings, sentences.size()); ++i)
    text += "    " + sentences[i] + "\n";
  if (sentences.size() > kMostFindings)
    text += "    and " + std::to_string(sentences.size() - kMostFindings) + " more (--json)\n";
  return text;
}

std::string lines_of(const std::vector<store::Finding>& findings) {
  std::vector<std::string> sentences;
  for (const auto& finding : findings) sentences.push_back(finding.sentence);
  return list_of(sentences);
}

Json json_of(const std::vector<store::Finding>& findings) {
  Json list = Json::array();
  for (const auto& [step, quantity, sentence] : findings)
    list.push_back({{"step", step}, {"quantity", quantity}, {"message", sentence}});
  return list;
}

Json json_of(const audit::StretchResult& stretch) {
  const auto& [far_ce, far_grad] = stretch.distances;
  Json json = {{"first_step", stretch.stretch.first},
               {"last_step", stretch.stretch.last},
               {"started_from", stretch.started_from},
               {"start_step", stretch.start_step},
               {"verdict", to_string(stretch.verdict)},
               {"findings", json_of(stretch.findings)},
               {"operation", stretch.operation},
               {"advice", stretch.advice},
               {"steps_compared", stretch.steps_compared},
               {"tensors_compared", stretch.tensors_compared},
               {"ce_loss_distance", far_ce},
               {"grad_norm_distance", far_grad},
               {"seconds", stretch.seconds}};
  return json;
}

}  // namespace

std::string audit_header(const audit::AuditedRun& recorded, const Policy& policy) {
  const std::string cpu = member(recorded.attempts.back().environment, "cpu");
  return "run " + recorded.run_id + " (" + recorded.name + "), " +
         std::to_string(recorded.rows.size()) + " steps in " + format_duration(recorded.seconds) +
         ", " + member(recorded.attempts.back().policy, "numerics") + ", " +
         member(recorded.attempts.back().policy, "isa") + ", " +
         member(recorded.attempts.back().policy, "threads") + " threads" +
         (cpu.empty() ? "" : " of " + cpu) + "\nhere " + olmo::to_string(policy.numerics) + ", " +
         olmo::to_string(policy.isa) + ", " + std::to_string(policy.threads) + " threads" +
         (policy.mixed_precision == MixedPrecision::kNone
              ? "\n"
              : ", " + precision_text(policy.mixed_precision) + "\n");
}

std::string to_text(const audit::StretchResult& stretch) {
  std::string text = steps_of(stretch.stretch) + " from " + stretch.started_from;
  if (stretch.start_step > 0) text += " (after step " + std::to_string(stretch.start_step) + ")";
  text += ": " + to_string(stretch.verdict) + ", " + std::to_string(stretch.steps_compared) +
          " steps and " + std::to_string(stretch.tensors_compared) + " tensors compared in " +
          format_duration(stretch.seconds) + "\n";
  if (stretch.verdict == audit::AuditVerdict::kWithinEnvelope) {
    text += "    at most " + formatted("%.2g", stretch.distances.ce_loss) +
            " nats of ce_loss and " + formatted("%.2g", stretch.distances.grad_norm) +
            " of grad_norm from the portable reference\n";
  }
  text += lines_of(stretch.findings);
  if (!stretch.operation.empty())
    text += "    first operation that differs: " + stretch.operation + "\n";
  if (!stretch.advice.empty()) text += "    " + stretch.advice + "\n";
  return text;
}

std::string audit_footer(const audit::AuditResult& result, const audit::AuditedRun& recorded) {
  std::string text;
  if (recorded.chain_format != kChainFormat) {
    text += "the record's batch_hash, chain_hash have format " +
            std::to_string(recorded.chain_format) +
            ", which is not computed any more: they were checked against each other, and not "
            "against this training\n";
  }
  if (!result.broken_proofs.empty())
    text += "the record itself:\n" + lines_of(result.broken_proofs);
  if (!result.other_inputs.empty() && result.verdict() != audit::AuditVerdict::kDifferent)
    text +=
        "the token files are others than the run read, though the audited steps read the same "
        "batches from them:\n" +
        list_of(result.other_inputs);
  if (is_branch(recorded))
    text += "the run began from another run's checkpoint, " +
            recorded.attempts.front().resumed_from + ", whose own steps are not audited here\n";
  if (!result.disagreement.empty()) text += "the run " + result.disagreement + "\n";
  switch (result.verdict()) {
    case audit::AuditVerdict::kDifferent:
      return text + "AUDIT FAILED\n";
    case audit::AuditVerdict::kWithinEnvelope:
      return text + "AUDIT PASSED: within what `fast` differs by on this machine\n";
    case audit::AuditVerdict::kIdentical:
      break;
  }
  return text + "AUDIT PASSED: every bit agrees, and the hash chain of all " +
         std::to_string(recorded.rows.size()) + " steps is sound\n";
}

Json to_json(const audit::AuditResult& result, const audit::AuditedRun& recorded,
             const Policy& policy) {
  Json stretches = Json::array();
  for (const auto& stretch : result.stretches) stretches.push_back(json_of(stretch));
  return {{"run_id", recorded.run_id},
          {"verdict", to_string(result.verdict())},
          {"chain_format", recorded.chain_format},
          {"recorded_steps", recorded.rows.size()},
          {"recorded_seconds", recorded.seconds},
          {"policy", store::policy_json(policy)},
          {"broken_proofs", json_of(result.broken_proofs)},
          {"other_inputs", result.other_inputs},
          {"disagreement", result.disagreement},
          {"stretches", stretches}};
}

std::string to_text(const TraceComparison& comparison) {
  const std::string step = std::to_string(comparison.steps.back());
  if (comparison.difference) {
    return "step " + step + ": " + comparison.difference->operation + ": " +
           comparison.difference->reason + "; the operations before it agree\nTRACES DIFFER\n";
  }
  return std::to_string(comparison.steps.size()) + " traced steps, the last is " + step +
         ": every operation agrees\nTRACES AGREE\n";
}

Json to_json(const TraceComparison& comparison) {
  Json json = {{"steps", comparison.steps}, {"verdict", "identical"}};
  if (comparison.difference) {
    json["verdict"] = "different";
    json["step"] = comparison.steps.back();
    json["operation"] = comparison.difference->operation;
    json["reason"] = comparison.difference->reason;
  }
  return json;
}

}  // namespace olmo::cli::compute

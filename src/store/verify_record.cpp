#include "store/verify_record.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/error.h"
#include "core/hash.h"

namespace olmo::store {
namespace {

std::string at(std::int64_t step) { return "step " + std::to_string(step) + ": "; }

void verify_loss(std::int64_t step, double loss, std::vector<Finding>& findings) {
  if (!std::isfinite(loss))
    findings.push_back({step, "ce_loss", at(step) + "the loss is missing or not finite"});
}

void verify_tokens(std::int64_t step, std::int64_t before, std::int64_t tokens,
                   std::vector<Finding>& findings) {
  if (tokens > before) return;
  findings.push_back(
      {step, "tokens",
       at(step) + "the tokens seen so far do not grow (" + std::to_string(tokens) + ")"});
}

}  // namespace

std::optional<Digest> digest_of(const std::string& hex) {
  try {
    return Digest::from_hex(hex);
  } catch (const Error&) {
    return std::nullopt;
  }
}

StepVerifier::StepVerifier(const RunRecord& run, std::int64_t first)
    : format_(run.chain_format), step_(first) {
  if (const auto experiment = digest_of(run.experiment_digest))
    start_ = chain_start(*experiment, format_);
  if (first == 0) link_ = start_;
}

bool StepVerifier::follows(const StepRecord& row) const {
  const auto batch = digest_of(row.batch_hash), own = digest_of(row.chain_hash);
  const auto losses = format_ == 1 ? std::optional(Digest{}) : digest_of(row.loss_hash);
  const auto grad_norm = static_cast<float>(row.grad_norm);  // the chain holds these bits
  if (!batch || !own || !losses || static_cast<double>(grad_norm) != row.grad_norm) return false;
  if (!link_) return true;
  const StepProof proof{row.step, *batch, *losses, row.ce_loss, row.z_loss, grad_norm};
  return chain_next(*link_, proof, format_) == *own;
}

void StepVerifier::add(const StepRecord& row, std::vector<Finding>& findings) {
  if (!begun_ && row.step <= step_) {
    step_ = 0;
    link_ = start_;
  }
  begun_ = true;
  if (row.step <= step_) {
    findings.push_back(
        {row.step, "step", at(row.step) + "comes after step " + std::to_string(step_)});
  } else if (row.step > step_ + 1) {
    const auto missing = row.step == step_ + 2 ? at(step_ + 1) + "the record lacks it"
                                               : "steps " + std::to_string(step_ + 1) + " to " +
                                                     std::to_string(row.step - 1) + " are missing";
    findings.push_back({step_ + 1, "step", missing});
    link_.reset();  // the row's own link is all there is to go on from
  }
  if (!follows(row)) {
    findings.push_back({row.step, "chain_hash",
                        at(row.step) + "chain_hash " + row.chain_hash.substr(0, 16) +
                            "… does not follow from the link before and the recorded batch_hash, "
                            "ce_loss, z_loss, grad_norm and loss_hash: one of them was altered"});
  }
  verify_loss(row.step, row.ce_loss, findings);
  verify_tokens(row.step, tokens_, row.tokens, findings);
  link_ = digest_of(row.chain_hash);
  step_ = row.step;
  tokens_ = row.tokens;
}

void verify_imported(const ImportedStepRecord& row, const ImportedStepRecord* before,
                     std::vector<Finding>& findings) {
  verify_loss(row.position, row.loss.value_or(std::nan("")), findings);
  if (before != nullptr)
    verify_tokens(row.position, before->tokens.value_or(before->position),
                  row.tokens.value_or(row.position), findings);
}

void verify_seals(const std::map<std::int64_t, std::string>& seals,
                  const std::map<std::int64_t, std::vector<StateHash>>& hashes,
                  const std::map<std::int64_t, Digest>& links, std::vector<Finding>& findings) {
  for (const auto& [step, seal] : seals) {
    const auto found = hashes.find(step);
    const auto link = links.find(step);
    if (found != hashes.end() && link != links.end() &&
        seal_of(found->second, link->second).hex() == seal)
      continue;
    findings.push_back(
        {step, "state_hashes",
         at(step) + "the seal of the state's hashes does not fit them: one was altered"});
  }
}

Digest seal_of(std::vector<StateHash> hashes, const Digest& chain) {
  std::sort(hashes.begin(), hashes.end(), [](const auto& a, const auto& b) {
    return std::tie(a.part, a.name) < std::tie(b.part, b.name);
  });
  Sha256 seal;
  seal.update(chain.bytes.data(), chain.bytes.size());
  for (const auto& hash : hashes) {
    for (const std::string* field : {&hash.part, &hash.name, &hash.sha256})
      seal.update_u64(field->size()).update(*field);
  }
  return seal.finish();
}

}  // namespace olmo::store

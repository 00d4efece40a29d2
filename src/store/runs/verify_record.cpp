#include "store/runs/verify_record.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <tuple>
#include <type_traits>

#include "core/error.h"
#include "core/hash.h"
#include "core/text/text.h"

namespace olmo::store {
namespace {

std::string at(std::int64_t step) { return "step " + std::to_string(step) + ": "; }

/// So far below 0 the mean of small losses may come by rounding.
constexpr double kRounding = 1e-6;

void verify_loss(std::int64_t step, double loss, std::vector<Finding>& findings) {
  if (!std::isfinite(loss))
    findings.push_back({step, "ce_loss", at(step) + "the loss is missing or not finite"});
  else if (loss < -kRounding)
    findings.push_back({step, "ce_loss",
                        at(step) + "the loss is " + formatted("%g", loss) +
                            ", and a cross-entropy is not negative"});
}

/// The chain is over both terms of the loss that is trained on, and not over their sum.
void verify_sum(const StepRecord& row, std::vector<Finding>& findings) {
  const double sum = row.ce_loss + row.z_loss.value_or(0.0);
  if (!std::isfinite(sum) || row.loss == sum) return;
  findings.push_back({row.step, "loss",
                      at(row.step) + "its loss is " + formatted("%.17g", row.loss) + ", and " +
                          (row.z_loss ? "ce_loss and z_loss add up to " : "its ce_loss is ") +
                          formatted("%.17g", sum) + ": the column loss was altered"});
}

void verify_tokens(std::int64_t step, std::int64_t before, std::int64_t tokens,
                   std::vector<Finding>& findings) {
  if (tokens > before) return;
  findings.push_back(
      {step, "tokens",
       at(step) + "the tokens seen so far do not grow (" + std::to_string(tokens) + ")"});
}

using Bits = std::array<std::uint64_t, 2>;
Bits bits_of(std::int64_t value) { return {1, static_cast<std::uint64_t>(value)}; }
Bits bits_of(double value) { return {1, std::bit_cast<std::uint64_t>(value)}; }
Bits bits_of(const std::optional<double>& value) { return value ? bits_of(*value) : Bits{}; }

template <class Visit>
void visit_values(const Visit& visit) {
  visit_computed_values([&](const char* column, auto member) {
    if constexpr (std::is_same_v<decltype(member), decltype(&StepRecord::max_grad_norm)>)
      if (member == &StepRecord::max_grad_norm) return;
    visit(column, member);
  });
}

}  // namespace

std::optional<Digest> digest_of(const std::string& hex) {
  try {
    return Digest::from_hex(hex);
  } catch (const Error&) {
    return std::nullopt;
  }
}

StepVerifier::StepVerifier(const RunRecord& run, std::int64_t first, std::optional<Digest> link)
    : format_(run.chain_format), step_(first), link_(link) {
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
  } else {
    verify_sum(row, findings);
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

void verify_seals(const SealedStates& states, std::vector<Finding>& findings) {
  const auto wrong = [&](std::int64_t step, const std::string& what) {
    findings.push_back({step, "state_hashes", at(step) + what});
  };
  for (const auto& [step, seal] : states.seals) {
    if (step == states.first && step > 0 && !states.links.contains(step)) continue;
    const auto found = states.hashes.find(step);
    const auto link = states.links.find(step);
    if (found == states.hashes.end())
      wrong(step, "the hashes of its state are missing: there is a seal over them");
    else if (link == states.links.end())
      wrong(step, "its state was recorded, and the step itself is missing or damaged");
    else if (seal_of(found->second, link->second).hex() != seal)
      wrong(step, "the seal of the state's hashes does not fit them: one was altered");
  }
  if (!states.all_sealed) return;
  for (const auto& [step, hashes] : states.hashes)
    if (!states.seals.contains(step)) wrong(step, "the seal of the state's hashes is missing");
}

void verify_end(const RunRecord& run, std::int64_t last, std::vector<Finding>& findings) {
  if (run.status != "finished" || last >= run.max_steps) return;
  findings.push_back({last + 1, "step",
                      "the run finished at step " + std::to_string(run.max_steps) +
                          ", and the record ends at step " + std::to_string(last)});
}

std::uint64_t digest_of_values(const StepRecord& row) {
  std::uint64_t digest = 0;
  visit_values([&](const char*, auto member) {
    for (const std::uint64_t bits : bits_of(row.*member)) {
      digest = (digest ^ bits) + 0x9e3779b97f4a7c15;  // a step of SplitMix64
      digest = (digest ^ (digest >> 30)) * 0xbf58476d1ce4e5b9;
      digest = (digest ^ (digest >> 27)) * 0x94d049bb133111eb;
      digest ^= digest >> 31;
    }
  });
  return digest;
}

std::string first_value_that_differs(const StepRecord& a, const StepRecord& b) {
  std::string found;
  visit_values([&](const char* column, auto member) {
    if (found.empty() && bits_of(a.*member) != bits_of(b.*member)) found = column;
  });
  return found;
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

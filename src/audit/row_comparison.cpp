#include "audit/row_comparison.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <map>

#include "core/hash_chain.h"

namespace olmo::audit {
namespace {

std::string shown(const std::optional<double>& value) {
  if (!value) return "NULL";
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", *value);
  return text;
}
std::string shown(std::int64_t value) { return std::to_string(value); }
std::string shown(const std::string& value) { return value; }

bool same(const std::optional<double>& a, const std::optional<double>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return std::bit_cast<std::uint64_t>(*a) == std::bit_cast<std::uint64_t>(*b);
}
bool same(std::int64_t a, std::int64_t b) { return a == b; }
bool same(const std::string& a, const std::string& b) { return a == b; }

class RowComparison {
 public:
  explicit RowComparison(std::int64_t step) : step_(step) {}

  template <class T>
  void compare(const char* column, const T& recorded, const T& computed) {
    if (same(recorded, computed)) return;
    findings_.push_back({step_, column,
                         "step " + std::to_string(step_) + ": " + column + " was recorded as " +
                             shown(recorded) + ", is " + shown(computed)});
  }

  std::vector<store::Finding> take() { return std::move(findings_); }

 private:
  std::int64_t step_;
  std::vector<store::Finding> findings_;
};

using Key = std::pair<std::string, std::string>;

}  // namespace

std::vector<store::Finding> compare_rows(const store::StepRecord& recorded,
                                         const store::StepRecord& computed,
                                         std::int64_t chain_format) {
  RowComparison row(recorded.step);
  row.compare("epoch", recorded.epoch, computed.epoch);
  row.compare("tokens", recorded.tokens, computed.tokens);
  const bool same_format = chain_format == kChainFormat;
  if (same_format) row.compare("batch_hash", recorded.batch_hash, computed.batch_hash);
  row.compare("masked_instances", recorded.masked_instances, computed.masked_instances);
  const auto real = [&](const char* column, const std::optional<double>& a,
                        const std::optional<double>& b) { row.compare(column, a, b); };
  real("ce_loss", recorded.ce_loss, computed.ce_loss);
  real("ce_loss_per_label", recorded.ce_loss_per_label, computed.ce_loss_per_label);
  real("z_loss", recorded.z_loss, computed.z_loss);
  real("loss", recorded.loss, computed.loss);
  real("grad_norm", recorded.grad_norm, computed.grad_norm);
  real("max_grad_norm", recorded.max_grad_norm, computed.max_grad_norm);
  real("clipping_rate", recorded.clipping_rate, computed.clipping_rate);
  real("lr", recorded.lr, computed.lr);
  real("param_norm", recorded.param_norm, computed.param_norm);
  if (same_format) {
    row.compare("loss_hash", recorded.loss_hash, computed.loss_hash);
    row.compare("chain_hash", recorded.chain_hash, computed.chain_hash);
  }
  return row.take();
}

std::vector<store::Finding> compare_states(std::int64_t step, const std::string& source,
                                           const std::vector<store::StateHash>& recorded,
                                           const std::vector<store::StateHash>& computed) {
  std::map<Key, std::string> expected;
  for (const auto& hash : recorded) expected[{hash.part, hash.name}] = hash.sha256;
  std::vector<store::Finding> findings;
  const auto say = [&](const Key& key, const std::string& what) {
    const std::string tensor = key.first + "/" + key.second;
    findings.push_back({step, tensor, "step " + std::to_string(step) + ": " + tensor + " " + what});
  };
  for (const auto& hash : computed) {
    const Key key{hash.part, hash.name};
    const auto found = expected.find(key);
    if (found == expected.end()) {
      say(key, "is missing in " + source);
      continue;
    }
    if (found->second != hash.sha256) {
      say(key, "has the SHA-256 " + shown(found->second) + " in " + source + ", here " +
                   shown(hash.sha256));
    }
    expected.erase(found);
  }
  for (const auto& [key, unused] : expected)
    say(key, "is in " + source + ", and is no tensor of this training");
  return findings;
}

}  // namespace olmo::audit

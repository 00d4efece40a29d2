#include "import/metrics.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fnmatch.h>

#include "import/columns.h"

namespace olmo::import {
namespace {

constexpr std::array<std::string_view, 12> kFolders = {
    "eval", "evals",   "evaluation", "val",        "valid", "validation", "validation_metrics",
    "test", "heldout", "downstream", "perplexity", "device"};
constexpr std::array<std::string_view, 7> kBeginnings = {
    "eval_", "eval-", "val_", "valid_", "validation_", "test_", "downstream_"};
constexpr std::array<std::string_view, 14> kEndings = {
    "_acc", "_acc_norm", "_len_norm", "_pmi_dc", "_bpb",     "_ce_loss",   "_soft_loss",
    "_f1",  "_mcc",      "_em",       "_ppl",    "accuracy", "perplexity", "validation"};

template <typename Names, typename Fits>
bool any(const Names& names, const Fits& fits) {
  return std::any_of(names.begin(), names.end(), fits);
}

}  // namespace

bool is_metric_name(std::string_view column) {
  std::string name(metric_of(column));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (name.ends_with("__min") || name.ends_with("__max")) return false;
  for (std::size_t begin = 0, slash = 0; (slash = name.find_first_of("/.", begin)) != name.npos;
       begin = slash + 1) {
    const auto folder = std::string_view(name).substr(begin, slash - begin);
    if (std::find(kFolders.begin(), kFolders.end(), folder) != kFolders.end()) return true;
  }
  return any(kBeginnings, [&](auto beginning) { return name.starts_with(beginning); }) ||
         any(kEndings, [&](auto ending) { return name.ends_with(ending); });
}

bool matches_any(std::string_view column, const std::vector<std::string>& patterns) {
  const std::string whole(column), metric(metric_of(column));
  return any(patterns, [&](const std::string& pattern) {
    return fnmatch(pattern.c_str(), whole.c_str(), 0) == 0 ||
           fnmatch(pattern.c_str(), metric.c_str(), 0) == 0;
  });
}

}  // namespace olmo::import

#include "report/comparability/stated_tokens.h"

#include "report/comparability/settings.h"
#include "report/record/side.h"

namespace olmo::report {
namespace {

constexpr char kBatchSizeKey[] = "global_train_batch_size";

bool unlike_steps(const store::RecordedRun& a, const store::RecordedRun& b) {
  if (a.tokens_known || b.tokens_known || !a.steps.steps_known || !b.steps.steps_known)
    return false;
  const Settings x = settings_of(a), y = settings_of(b);
  return x.contains(kBatchSizeKey) && y.contains(kBatchSizeKey) &&
         !same_value(x.at(kBatchSizeKey), y.at(kBatchSizeKey));
}

}  // namespace

std::optional<std::int64_t> stated_tokens(const store::RecordedRun& run) {
  const Settings settings = settings_of(run);
  std::int64_t product = 1;
  for (const char* key : {kBatchSizeKey, "model.max_sequence_length"}) {
    const auto count = count_of(settings, key);
    if (!count || __builtin_mul_overflow(product, *count, &product)) return std::nullopt;
  }
  return product;
}

AlignedSteps align_unlike_steps(store::RecordedRun& a, store::RecordedRun& b) {
  AlignedSteps found;
  if (!unlike_steps(a, b)) return found;
  const auto x = stated_tokens(a), y = stated_tokens(b);
  if (!x || !y) {
    found.damage =
        "The batches of the two logs are of other sizes, and neither tells tokens: equal steps are "
        "not equal training. Import each with --tokens-per-step N, the instances of its steps "
        "times their length.";
    return found;
  }
  give_tokens(a, *x);
  give_tokens(b, *y);
  found.caveat = "The logs tell no tokens: a step has those that its config states, " +
                 std::to_string(*x) + " of A and " + std::to_string(*y) + " of B.";
  return found;
}

}  // namespace olmo::report

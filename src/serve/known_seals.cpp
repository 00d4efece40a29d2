#include "serve/known_seals.h"

#include "store/evaluations/evaluation_seal.h"

namespace olmo::serve {

std::vector<std::string> KnownSeals::altered(const store::RecordDatabase& records,
                                             const std::string& evaluation_id) {
  // Taken first: what is written meanwhile makes it be read again.
  const Stamp stamp = stamp_of(records.path());
  {
    const std::lock_guard held(mutex_);
    auto& known = known_[records.path()];
    if (!(known.stamp == stamp)) known = {.stamp = stamp, .altered = {}};
    if (const auto found = known.altered.find(evaluation_id); found != known.altered.end())
      return found->second;
  }
  auto altered = store::check_seals(records, evaluation_id).altered;
  const std::lock_guard held(mutex_);
  auto& known = known_[records.path()];
  if (known.stamp == stamp) known.altered[evaluation_id] = altered;
  return altered;
}

}  // namespace olmo::serve

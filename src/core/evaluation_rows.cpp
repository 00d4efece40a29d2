#include "core/evaluation_rows.h"

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "core/hash.h"

namespace olmo {

void rank_by(std::span<const double> scores, std::span<OptionRow> rows) {
  OLMO_CHECK(scores.size() == rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].rank = 1;
    double best_other = -std::numeric_limits<double>::infinity();
    for (std::size_t j = 0; j < rows.size(); ++j) {
      if (i == j) continue;
      if (scores[j] > scores[i] || (scores[j] == scores[i] && j < i)) ++rows[i].rank;
      best_other = std::max(best_other, scores[j]);
    }
    rows[i].margin = rows.size() > 1 ? scores[i] - best_other : 0;
  }
}

std::string request_hash(std::string_view context, std::string_view continuation) {
  Sha256 hash;
  hash.update(context).update(std::string_view("\0", 1)).update(continuation);
  return hash.finish().hex();
}

}  // namespace olmo

#include "train/rank_trace.h"

#include <algorithm>
#include <sstream>

#include "dist/exchange.h"

namespace olmo::train {

void gather_trace(dist::Communicator& ranks, const std::vector<PlacedDigest>& mine,
                  OpTrace& trace) {
  std::string lines;
  for (const auto& [place, entry] : mine)
    lines += std::to_string(place) + " " + entry.digest.hex() + " " + entry.operation + "\n";
  std::vector<PlacedDigest> all;
  for (const std::string& of_rank : dist::all_gather_text(ranks, lines)) {
    std::istringstream in(of_rank);
    std::string hex, operation;
    for (std::int64_t place = 0; in >> place >> hex && std::getline(in >> std::ws, operation);)
      all.push_back({place, {operation, Digest::from_hex(hex)}});
  }
  std::ranges::stable_sort(all, {}, &PlacedDigest::place);
  for (const auto& each : all) trace.append(each.entry);
}

}  // namespace olmo::train

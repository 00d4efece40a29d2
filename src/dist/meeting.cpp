#include "dist/meeting.h"

#include <string>

namespace olmo::dist {
namespace {

constexpr char kAllHere[] = "all-here";

std::vector<std::string> keys_of_all(int size) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < size; ++rank) keys.push_back("here/" + std::to_string(rank));
  return keys;
}

}  // namespace

std::vector<int> meet(Store& store, int rank, int size, std::chrono::milliseconds limit,
                      const std::function<void()>& check) {
  const auto keys = keys_of_all(size);
  const std::string all_here = kAllHere;
  store.set(keys[static_cast<std::size_t>(rank)], "1");
  if (rank == 0 && store.wait_all(keys, limit, check)) {
    store.set(all_here, "1");
    return {};
  }
  if (rank != 0 && store.wait_all({&all_here, 1}, limit, check)) return {};
  std::vector<int> missing;
  const auto here = store.get_all(keys);
  for (std::size_t i = 0; i < here.size(); ++i)
    if (!here[i]) missing.push_back(static_cast<int>(i));
  return missing;
}

}  // namespace olmo::dist

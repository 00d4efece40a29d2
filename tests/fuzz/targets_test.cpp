// The parsers of tests/fuzz with their seeds and some mutations: a short run of what
// scripts/fuzz.sh does for as long as it is told, without its sanitizers.
#include <algorithm>
#include <random>

#include "fuzz/target.h"
#include "support/catch.h"

namespace {

/// `input`, cut short or with some bytes changed.
std::string altered(std::string input, std::mt19937& random) {
  if (input.empty()) return input;
  if (random() % 3 == 0) {
    input.resize(random() % input.size());
    return input;
  }
  for (auto changes = 1 + random() % 4; changes > 0; --changes)
    input[random() % input.size()] = static_cast<char>(random() % 256);
  return input;
}

}  // namespace

TEST_CASE("parsers take their seeds, cut short and altered, or say what is wrong", "[fuzz]") {
  constexpr std::size_t kSeeds = 24, kMutations = 8;
  std::mt19937 random(6198);
  for (const auto& target : olmo::fuzz::all_targets()) {
    INFO(target.name);
    auto seeds = target.seeds();
    REQUIRE_FALSE(seeds.empty());
    std::ranges::sort(seeds);  // folders are listed in any order
    std::ranges::shuffle(seeds, random);
    for (std::size_t i = 0; i < std::min(kSeeds, seeds.size()); ++i) {
      if (seeds[i].size() > target.longest) continue;
      olmo::fuzz::take(target, seeds[i]);
      for (std::size_t mutation = 0; mutation < kMutations; ++mutation)
        olmo::fuzz::take(target, altered(seeds[i], random));
    }
  }
}

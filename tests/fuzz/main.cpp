#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "core/hash.h"
#include "fuzz/target.h"

namespace {

const olmo::fuzz::Target* chosen = nullptr;

}  // namespace

using namespace olmo::fuzz;

// NOLINTBEGIN(readability-identifier-naming): libFuzzer calls these.

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  static const auto kTargets = all_targets();
  if (*argc == 2 && std::strcmp((*argv)[1], "--list") == 0) {
    for (const auto& target : kTargets) std::puts(target.name);
    std::exit(0);
  }
  if (*argc < 3) {
    std::fprintf(stderr, "usage: olmo_fuzz --list | TARGET CORPUS [libFuzzer's options]\n");
    std::exit(2);
  }
  for (const auto& target : kTargets)
    if (std::strcmp(target.name, (*argv)[1]) == 0) chosen = &target;
  if (chosen == nullptr) {
    std::fprintf(stderr, "olmo_fuzz: no target '%s' (olmo_fuzz --list)\n", (*argv)[1]);
    std::exit(2);
  }
  const std::filesystem::path corpus = (*argv)[2];
  std::filesystem::create_directories(corpus);
  for (const auto& seed : chosen->seeds()) {
    if (seed.size() > chosen->longest) continue;
    std::ofstream(corpus / ("seed-" + olmo::sha256(seed).hex().substr(0, 16)), std::ios::binary)
        << seed;
  }
  static std::string longest = "-max_len=" + std::to_string(chosen->longest);
  (*argv)[1] = longest.data();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  take(*chosen, std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
// NOLINTEND(readability-identifier-naming)

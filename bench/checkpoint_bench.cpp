// olmo_checkpoint_bench [FOLDER [ROUNDS [BLOCKS]]]
//
// Saving a checkpoint of a model of width 768 (default 8 blocks: 1.4 GB of parameters and two
// moments) against the raw write speed of the same disk: a page-aligned buffer of the same size,
// written in blocks of 16 MiB and synced, through the page cache and past it. The same state is
// also saved by 1, 2 and 4 ranks, threads that share the machine's cores. Rounds are interleaved,
// their order rotates, figures are medians of GB/s (1e9 bytes). Every file is removed.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/compute/libtorch.h"
#include "core/compute/tensor.h"
#include "core/error.h"
#include "dist/thread_ranks.h"
#include "sharding/layout.h"
#include "store/checkpoint/checkpoint.h"
#include "train/rank_checkpoint.h"

namespace {

namespace fs = std::filesystem;
using olmo::store::CheckpointContents;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kWidth = 768;
constexpr std::int64_t kVocabulary = 50304;
constexpr std::size_t kBlock = 16U << 20U;

double seconds(const std::function<void()>& action) {
  const auto start = Clock::now();
  action();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Processor time of all threads so far.
double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds_of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

void add(CheckpointContents& contents, const std::string& name, at::IntArrayRef shape) {
  const auto make = [&](std::uint64_t seed) {
    at::Tensor tensor = at::empty(shape, at::kFloat);
    auto* words = static_cast<std::uint32_t*>(tensor.mutable_data_ptr());
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
      words[i] = static_cast<std::uint32_t>(
          (static_cast<std::uint64_t>(i) + seed) * 0x9E3779B97F4A7C15ULL >> 32U);
    }
    return tensor;
  };
  contents.model.push_back({name, make(1)});
  contents.optim.push_back({"exp_avg/" + name, make(2)});
  contents.optim.push_back({"exp_avg_sq/" + name, make(3)});
}

CheckpointContents make_contents(int blocks) {
  CheckpointContents contents;
  contents.trainer = olmo::Json{{"step", 1}};
  add(contents, "transformer.wte.weight", {kVocabulary, kWidth});
  for (int block = 0; block < blocks; ++block) {
    const std::string prefix = "transformer.blocks." + std::to_string(block) + ".";
    add(contents, prefix + "att_proj.weight", {3 * kWidth, kWidth});
    add(contents, prefix + "attn_out.weight", {kWidth, kWidth});
    add(contents, prefix + "ff_proj.weight", {8 * kWidth, kWidth});
    add(contents, prefix + "ff_out.weight", {kWidth, 4 * kWidth});
  }
  return contents;
}

std::size_t bytes_of(const CheckpointContents& contents) {
  std::size_t bytes = 0;
  for (const auto* tensors : {&contents.model, &contents.optim}) {
    for (const auto& entry : *tensors) bytes += entry.tensor.nbytes();
  }
  return bytes;
}

/// One sequential writer, as `dd` would do it; `preallocate` reserves the blocks first.
void write_raw(const fs::path& path, const std::byte* data, std::size_t bytes, int flags,
               bool preallocate) {
  const int fd = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | flags, 0644);
  OLMO_CHECK(fd >= 0);
  if (preallocate) OLMO_CHECK(::fallocate(fd, 0, 0, static_cast<off_t>(bytes)) == 0);
  for (std::size_t at = 0; at < bytes; at += kBlock) {
    const std::size_t size = std::min(kBlock, bytes - at);
    OLMO_CHECK(::pwrite(fd, data + at, size, static_cast<off_t>(at)) == static_cast<ssize_t>(size));
  }
  OLMO_CHECK(::fsync(fd) == 0 && ::close(fd) == 0);
}

/// The parts of a rank, if all parameters were one unit.
olmo::train::ParameterParts parts_of(const CheckpointContents& contents, int rank, int world) {
  std::vector<olmo::model::ParameterSpec> specs;
  for (const auto& [name, tensor] : contents.model)
    specs.push_back({name, tensor.sizes().vec(), olmo::model::ParameterRole::kFfOut, 0});
  const olmo::sharding::UnitLayout layout(specs, world);
  olmo::train::ParameterParts parts;
  for (const auto& place : layout.places()) parts.push_back({place.name, place.shape, 0, 0});
  for (const auto& part : layout.parts(rank)) {
    parts[part.tensor].begin = part.begin;
    parts[part.tensor].size = part.size;
  }
  return parts;
}

/// What each rank holds of `contents`, as views of it.
std::vector<CheckpointContents> held_by_ranks(const CheckpointContents& contents, int world) {
  std::vector<CheckpointContents> of_ranks;
  for (int rank = 0; rank < world; ++rank) {
    const auto parts = parts_of(contents, rank, world);
    auto& held = of_ranks.emplace_back(contents);
    for (auto* tensors : {&held.model, &held.optim}) {
      for (auto& [name, tensor] : *tensors) {
        for (const auto& part : parts) {
          if (part.name == name.substr(name.find('/') + 1))
            tensor = tensor.view({-1}).narrow(0, part.begin, part.size);
        }
      }
    }
  }
  return of_ranks;
}

void save_on_ranks(const fs::path& folder, const std::vector<CheckpointContents>& held,
                   const CheckpointContents& whole, int threads) {
  const int world = static_cast<int>(held.size());
  olmo::dist::run_ranks(world, [&](olmo::dist::Communicator& ranks) {
    olmo::train::RankCheckpoints(ranks.split(0), folder, parts_of(whole, ranks.rank(), world))
        .save({held[static_cast<std::size_t>(ranks.rank())], nullptr},
              {.hash_threads = std::max(1, threads / world)});
  });
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) try {
  const fs::path folder = fs::path(argc > 1 ? argv[1] : ".") / "olmo-checkpoint-bench";
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  const int blocks = argc > 3 ? std::atoi(argv[3]) : 8;
  olmo::apply_policy(olmo::resolve_policy("portable", "auto", 0));
  fs::create_directories(folder);

  CheckpointContents contents = make_contents(blocks);
  const std::size_t bytes = bytes_of(contents);
  const std::size_t raw_bytes = bytes / 4096 * 4096;
  auto* raw = static_cast<std::byte*>(
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  OLMO_CHECK(raw != MAP_FAILED);
  ::madvise(raw, bytes, MADV_HUGEPAGE);
  std::size_t filled = 0;
  for (const auto& entry : contents.model) {
    std::memcpy(raw + filled, entry.tensor.const_data_ptr(), entry.tensor.nbytes());
    filled += entry.tensor.nbytes();
  }
  for (; filled < bytes; filled += filled)
    std::memcpy(raw + filled, raw, std::min(filled, bytes - filled));

  const int threads = olmo::resolve_policy("portable", "auto", 0).threads;
  const auto on_one = held_by_ranks(contents, 1), on_two = held_by_ranks(contents, 2),
             on_four = held_by_ranks(contents, 4);
  olmo::store::CheckpointWriter writer(folder);
  std::vector<double> stalls;
  const fs::path raw_file = folder / "raw";
  std::vector<double> written;
  const auto save_in_background = [&] {
    writer.save_async(contents);
    const auto saved = writer.wait();
    stalls.push_back(saved->stall_seconds);
    written.push_back(static_cast<double>(bytes) / 1e9 / saved->seconds);
  };
  const std::vector<std::pair<std::string, std::function<void()>>> variants = {
      {"raw through the page cache", [&] { write_raw(raw_file, raw, raw_bytes, 0, false); }},
      {"raw direct", [&] { write_raw(raw_file, raw, raw_bytes, O_DIRECT, false); }},
      {"raw direct, preallocated", [&] { write_raw(raw_file, raw, raw_bytes, O_DIRECT, true); }},
      {"checkpoint in the background, copy included", save_in_background},
      {"checkpoint at once", [&] { olmo::store::save_checkpoint(folder, contents); }},
      {"by 1 rank", [&] { save_on_ranks(folder, on_one, contents, threads); }},
      {"by 2 ranks", [&] { save_on_ranks(folder, on_two, contents, threads); }},
      {"by 4 ranks", [&] { save_on_ranks(folder, on_four, contents, threads); }},
  };
  std::map<std::string, std::vector<double>> rates, processor;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < variants.size(); ++i) {
      const auto& [name, action] =
          variants[(i + static_cast<std::size_t>(round)) % variants.size()];
      const double before = processor_seconds();
      rates[name].push_back(static_cast<double>(bytes) / 1e9 / seconds(action));
      processor[name].push_back(processor_seconds() - before);
      fs::remove(raw_file);
      fs::remove_all(folder / "step1");
    }
  }
  fs::remove_all(folder);
  olmo::Json result = {{"bytes", bytes},
                       {"rounds", rounds},
                       {"stall_seconds", median(stalls)},
                       {"background_gb_per_s_after_the_copy", median(written)}};
  for (const auto& [name, action] : variants) {
    const auto& values = rates.at(name);
    result["gb_per_s"][name] = {{"median", median(values)},
                                {"min", *std::min_element(values.begin(), values.end())},
                                {"max", *std::max_element(values.begin(), values.end())}};
    result["processor_seconds"][name] = median(processor.at(name));
  }
  std::printf("%s\n", result.dump(1).c_str());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "olmo_checkpoint_bench: %s\n", error.what());
  return 1;
}

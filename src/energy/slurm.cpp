#include "energy/slurm.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <memory>

#include "core/process.h"

namespace olmo::energy {
namespace {

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 20 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// What a shell command writes, at most 64 KiB; nothing if it fails.
std::optional<std::string> output_of(const std::string& command) {
  constexpr std::size_t kMost = 65536;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string text;
  std::array<char, 1024> part{};
  std::size_t size = 0;
  while (text.size() < kMost && (size = std::fread(part.data(), 1, part.size(), pipe)) > 0)
    text.append(part.data(), size);
  return ::pclose(pipe) == 0 ? std::optional(text) : std::nullopt;
}

/// The largest number that is a line of its own: the job's, as its steps are parts of it.
std::uint64_t largest_line(const std::string& text) {
  std::uint64_t largest = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    std::uint64_t number = 0;
    const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, number);
    if (error == std::errc{} && stop == text.data() + end) largest = std::max(largest, number);
    begin = end + 1;
  }
  return largest;
}

}  // namespace

store::EnergyRecord ask_slurm(const std::optional<std::string>& job, const std::string& sacct) {
  store::EnergyRecord row{.source = "slurm", .device = "job", .covers = "job"};
  if (!job || !is_number(*job)) {
    row.note = "SLURM_JOB_ID names no job";
    return row;
  }
  row.device += "-" + *job;
  const auto timeout = find_program("timeout");
  const auto program = find_program(sacct);
  const auto text = timeout && program ? output_of(*timeout + " 5 '" + *program + "' -j " + *job +
                                                   " -n -P -o ConsumedEnergyRaw 2>/dev/null")
                                       : std::nullopt;
  if (!text) {
    row.note = "sacct did not answer";
    return row;
  }
  row.samples = 1;
  const auto joules = largest_line(*text);
  if (joules > 0) row.joules = static_cast<double>(joules);
  row.note = joules > 0
                 ? "the whole job until this attempt's end, with its other attempts"
                 : "sacct reports 0: Slurm counts no energy here, or not before the job ends";
  return row;
}

}  // namespace olmo::energy

#include "core/text/utc_time.h"

#include <array>
#include <cstdio>
#include <ctime>

namespace olmo {

std::string utc_text(std::chrono::system_clock::time_point at, int digits) {
  // Before 1970, too, what is left of a whole second is not negative.
  const auto whole = std::chrono::floor<std::chrono::seconds>(at);
  const auto micros = std::chrono::floor<std::chrono::microseconds>(at - whole).count();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(whole);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> date{};
  const std::size_t length = std::strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%s.%06d", date.data(), static_cast<int>(micros));
  return std::string(text.data(), length + 1 + static_cast<std::size_t>(digits)) + "Z";
}

}  // namespace olmo

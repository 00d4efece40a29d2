#include "report/utc_seconds.h"

#include <chrono>
#include <cstdio>

namespace olmo::report {

std::optional<double> utc_seconds(const std::string& text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, end = 0;
  double second = 0;
  if (text.size() > 32 || std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%lfZ%n", &year, &month,
                                      &day, &hour, &minute, &second, &end) != 6)
    return std::nullopt;
  namespace c = std::chrono;
  const c::year_month_day date{c::year(year), c::month(static_cast<unsigned>(month)),
                               c::day(static_cast<unsigned>(day))};
  const bool sound = date.ok() && hour >= 0 && hour < 24 && minute >= 0 && minute < 60 &&
                     second >= 0 && second < 61 && static_cast<std::size_t>(end) == text.size();
  if (!sound) return std::nullopt;
  return static_cast<double>(c::sys_days(date).time_since_epoch().count()) * 86400.0 +
         hour * 3600.0 + minute * 60.0 + second;
}

}  // namespace olmo::report

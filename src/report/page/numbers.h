// Numbers as text, the same in every locale: a point, commas between thousands, a true minus.
#pragma once

#include <cstdint>
#include <string>

#include "report/stats/interval.h"

namespace olmo::report::page {

/// With so many significant digits, trailing zeros dropped; powers of ten below 1e-4 and from 1e6.
/// "not finite" for a NaN or an infinity.
std::string number(double value, int digits = 5);
/// As number, with a sign unless it is 0.
std::string signed_number(double value, int digits = 4);
/// A fixed number of decimals.
std::string fixed(double value, int decimals);
/// 1,234,567.
std::string count(std::int64_t value);
/// For an axis: 250k, 1.5M, 2B, 3T.
std::string compact(double value);
/// A fraction as "45.31 %".
std::string percent(double fraction);
/// A difference of fractions in percentage points, "+0.12", without the unit.
std::string points(double fraction);
/// Three digits, "< 0.0001" below.
std::string p_value(double p);
/// Seconds as s, min, h or days.
std::string duration(double seconds);
/// "[−0.12, +0.31]"
std::string interval_text(const Interval& interval);
/// All digits that give the same double again, "" if not finite: for CSV.
std::string exact(double value);

}  // namespace olmo::report::page

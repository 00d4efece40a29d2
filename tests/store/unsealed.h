#pragma once

namespace olmo::test {

/// SQL that makes attempts those of an older version, which sealed none: what is altered then must
/// be found by other means.
inline constexpr char kUnseal[] =
    "DELETE FROM run_seals; INSERT INTO run_seals SELECT run_id, attempt, '', 0, NULL FROM "
    "attempts";

}  // namespace olmo::test

#include "report/claims/verdict.h"

#include "core/error.h"

namespace olmo::report {

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kIdentical:
      return "IDENTICAL";
    case Verdict::kEquivalent:
      return "EQUIVALENT";
    case Verdict::kConsistent:
      return "CONSISTENT";
    case Verdict::kInconclusive:
      return "INCONCLUSIVE";
    case Verdict::kDifferent:
      return "DIFFERENT";
    case Verdict::kDifferentNegligible:
      return "DIFFERENT_NEGLIGIBLE";
    case Verdict::kNotComparable:
      return "NOT_COMPARABLE";
    case Verdict::kInvalidData:
      break;
  }
  return "INVALID_DATA";
}

int exit_code(Verdict verdict) {
  switch (verdict) {
    case Verdict::kIdentical:
    case Verdict::kEquivalent:
      return 0;
    case Verdict::kConsistent:
      return 10;
    case Verdict::kInconclusive:
      return 11;
    case Verdict::kDifferent:
      return 20;
    case Verdict::kDifferentNegligible:
      return 21;
    case Verdict::kNotComparable:
      return 30;
    case Verdict::kInvalidData:
      break;
  }
  return 40;
}

const char* to_string(Kind kind) {
  if (kind == Kind::kCheckpoint) return "checkpoint";
  return kind == Kind::kTrajectory ? "trajectory" : "outcome";
}

Kind kind_named(const std::string& name) {
  for (const Kind kind : {Kind::kCheckpoint, Kind::kTrajectory, Kind::kOutcome}) {
    if (name == to_string(kind)) return kind;
  }
  throw Error(ErrorKind::kUsage,
              "kind: must be checkpoint, trajectory or outcome, is `" + name + "`");
}

const char* to_string(MismatchClass mismatch) {
  if (mismatch == MismatchClass::kFatal) return "fatal";
  return mismatch == MismatchClass::kConfound ? "declared confound" : "benign";
}

}  // namespace olmo::report

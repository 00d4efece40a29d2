// Databases of two sides, to be compared as a whole.
#pragma once

#include <string>
#include <vector>

#include "report/parity.h"
#include "support/simulated_side.h"
#include "support/temporary_directory.h"

namespace olmo::test {

/// A database of imported runs that a test adds to before it is compared.
class SideDb {
 public:
  explicit SideDb(const std::string& name)
      : name_(name), records_(folder_ / (name + ".db"), store::OpenMode::kCreate) {}

  std::string add(SimulatedRun run) {
    run.host = name_;
    return write_run(records_, run, name_ + std::to_string(++logs_) + ".csv");
  }
  void sql(const std::string& text) { records_.connection().execute(text); }
  store::RecordDatabase& records() { return records_; }
  [[nodiscard]] std::string path() const { return (folder_ / (name_ + ".db")).string(); }

 private:
  TemporaryDirectory folder_;
  std::string name_;
  store::RecordDatabase records_;
  int logs_ = 0;
};

/// A curve that falls, whose noise the seed decides.
inline std::vector<double> losses(std::uint64_t seed, std::size_t steps) {
  Normal normal(5, seed);
  std::vector<double> made;
  for (std::size_t i = 0; i < steps; ++i)
    made.push_back(2 + 5 / static_cast<double>(i + 1) + 0.03 * normal());
  return made;
}

inline report::ParityOptions of_kind(report::Kind kind) {
  report::ParityOptions options;
  options.kind = kind;
  return options;
}

}  // namespace olmo::test

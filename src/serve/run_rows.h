// Rows of a run's tables by the names of their columns, as pages show them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "store/runs/run_db.h"

namespace olmo::serve {

/// A column that an older schema lacks, or that is NULL, is not there.
class Row {
 public:
  Row(const std::vector<std::string>& names, const std::vector<store::SqlValue>& values);

  [[nodiscard]] std::string text(const std::string& name) const;
  [[nodiscard]] std::optional<double> number(const std::string& name) const;
  [[nodiscard]] std::int64_t integer(const std::string& name) const;  ///< 0: not there

 private:
  std::map<std::string, store::SqlValue> values_;
};

/// Those of store::for_each_row, in its order.
std::vector<Row> rows_of(const store::RunDb& db, const std::string& table,
                         const std::string& run_id);

}  // namespace olmo::serve

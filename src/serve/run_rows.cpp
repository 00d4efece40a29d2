#include "serve/run_rows.h"

namespace olmo::serve {

Row::Row(const std::vector<std::string>& names, const std::vector<store::SqlValue>& values) {
  for (std::size_t i = 0; i < names.size(); ++i) values_[names[i]] = values[i];
}

std::string Row::text(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return {};
  if (const auto* text = std::get_if<std::string>(&found->second)) return *text;
  if (const auto* integer = std::get_if<std::int64_t>(&found->second))
    return std::to_string(*integer);
  return {};
}

std::optional<double> Row::number(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return std::nullopt;
  if (const auto* real = std::get_if<double>(&found->second)) return *real;
  if (const auto* integer = std::get_if<std::int64_t>(&found->second))
    return static_cast<double>(*integer);
  return std::nullopt;
}

std::int64_t Row::integer(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return 0;
  const auto* integer = std::get_if<std::int64_t>(&found->second);
  return integer == nullptr ? 0 : *integer;
}

std::vector<Row> rows_of(const store::RunDb& db, const std::string& table,
                         const std::string& run_id) {
  std::vector<Row> rows;
  store::for_each_row(db, table, run_id, false, [&](const auto& names, const auto& values) {
    rows.emplace_back(names, values);
  });
  return rows;
}

}  // namespace olmo::serve

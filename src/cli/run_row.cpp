#include "cli/run_row.h"

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "core/process/terminal.h"
#include "core/text/text.h"

namespace olmo::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;
using store::RunOverview;
using store::SqlValue;

OrderedJson to_json(const SqlValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return nullptr;
}

}  // namespace

OrderedJson overview_json(const RunOverview& run) {
  OrderedJson row;
  row["run_id"] = run.run_id;
  row["name"] = run.name;
  row["status"] = run.status;
  row["created_utc"] = run.created_utc;
  row["n_parameters"] = or_null<OrderedJson>(run.n_parameters);
  row["max_steps"] = or_null<OrderedJson>(run.max_steps);
  row["attempts"] = run.attempts;
  row["step"] = or_null<OrderedJson>(run.step);
  row["tokens"] = or_null<OrderedJson>(run.tokens);
  row["ce_loss"] = or_null<OrderedJson>(run.ce_loss);
  row["tokens_per_second"] = or_null<OrderedJson>(run.tokens_per_second);
  row["chain_hash"] = run.chain_hash.empty() ? OrderedJson() : OrderedJson(run.chain_hash);
  row["tags"] = run.tags.empty() ? OrderedJson() : OrderedJson(joined(run.tags, " "));
  return row;
}

OrderedJson row_json(const std::vector<std::string>& names, const std::vector<SqlValue>& values) {
  OrderedJson object = OrderedJson::object();
  for (std::size_t i = 0; i < names.size(); ++i) object[names[i]] = to_json(values[i]);
  return object;
}

void warn_of(const store::RecordDatabase& records, const report::RecordCheck& check) {
  const std::string record = records.path().string() + ": the record ";
  if (check.is_damaged())
    log_warning(record + "is damaged: " + check.reason +
                "; `olmo-harness report run` tells all that is wrong");
  else if (check.is_unchecked())
    log_warning(record + check.reason);
}

report::RecordCheck warn_of_record(const store::RecordDatabase& records,
                                   const std::string& run_id) {
  auto check = report::check_record(records, run_id);
  warn_of(records, check);
  return check;
}

}  // namespace olmo::cli

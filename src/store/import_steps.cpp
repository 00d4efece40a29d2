#include "store/import_steps.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"
#include "core/hash.h"

namespace olmo::store {
namespace {

using Json = nlohmann::json;

/// Reads the cells of one row by target.
class RowReader {
 public:
  RowReader(const std::string& file, const ColumnMap& columns) : file_(file), columns_(columns) {}

  void look_at(std::int64_t line, const std::vector<LogCell>& cells) {
    line_ = line;
    cells_ = &cells;
  }
  /// The cell's text; null if it is absent or empty.
  [[nodiscard]] const std::string* text(std::string_view target) const {
    const auto column = columns_.find(target);
    if (column == columns_.end()) return nullptr;
    for (const auto& cell : *cells_) {
      if (cell.name != column->second) continue;
      const bool absent = cell.text.empty() || cell.text == "null" || cell.text == "None";
      return absent ? nullptr : &cell.text;
    }
    return nullptr;
  }
  /// Absent where the cell is or is not finite.
  [[nodiscard]] std::optional<double> number(std::string_view target) const {
    const auto* cell = text(target);
    if (cell == nullptr) return std::nullopt;
    const auto value = parse_log_number(*cell);
    if (!value) fail(target, "a number", *cell);
    return std::isfinite(*value) ? value : std::nullopt;
  }
  [[nodiscard]] std::optional<std::int64_t> count(std::string_view target) const {
    const auto* cell = text(target);
    if (cell == nullptr) return std::nullopt;
    constexpr double kExact = 9007199254740992.0;  // 2^53: every integer up to it is a double
    const auto value = parse_log_number(*cell);
    if (!value || !(*value >= 0 && *value <= kExact) || *value != std::floor(*value))
      fail(target, "a whole number from 0 to 2^53", *cell);
    return static_cast<std::int64_t>(*value);
  }

 private:
  [[noreturn]] void fail(std::string_view target, const std::string& expected,
                         const std::string& got) const {
    fail_at_line(file_, line_,
                 "column " + in_quotes(columns_.find(target)->second) + " must be " + expected +
                     ", got " + in_quotes(got));
  }

  const std::string& file_;
  const ColumnMap& columns_;
  std::int64_t line_ = 0;
  const std::vector<LogCell>* cells_ = nullptr;
};

std::vector<std::string> column_names(std::string_view text, const std::string& file,
                                      LogFormat format) {
  std::vector<std::string> names;
  std::set<std::string, std::less<>> seen;
  for_each_log_row(text, file, format, [&](std::int64_t, const std::vector<LogCell>& cells) {
    for (const auto& cell : cells)
      if (!seen.contains(cell.name)) names.push_back(*seen.emplace(cell.name).first);
  });
  return names;
}

/// Keeps the last row of each step; the rows come in the order of the log.
class StepCollector {
 public:
  explicit StepCollector(StepLog& log) : log_(log) {}

  void add(std::int64_t line, const ImportedStep& row) {
    const bool back = previous_ && row.step <= *previous_;
    if (back && (log_.restarts.empty() || log_.restarts.back().step != row.step)) {
      log_.restarts.push_back({row.step, "the log goes from step " + std::to_string(*previous_) +
                                             " back to step " + std::to_string(row.step) +
                                             " (line " + std::to_string(line) +
                                             "): of steps that occur twice the last is kept"});
    }
    previous_ = row.step;
    steps_[row.step] = row;
  }
  void finish() {
    for (const auto& [step, row] : steps_) log_.steps.push_back(row);
  }

 private:
  StepLog& log_;
  std::optional<std::int64_t> previous_;
  std::map<std::int64_t, ImportedStep> steps_;
};

std::string describe(const StepLog& log) {
  const Json facts = {{"imported", true},
                      {"format", to_string(log.format)},
                      {"columns", log.columns},
                      {"rows_without_loss", log.skipped}};
  return facts.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

StepLog read_step_log(const std::filesystem::path& path, const StepLogOptions& options) {
  const MappedFile file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  StepLog log;
  log.path = path.string();
  log.bytes = static_cast<std::int64_t>(text.size());
  log.sha256 = sha256(text).hex();
  log.format = options.format               ? *options.format
               : path.extension() == ".csv" ? LogFormat::kCsv
                                            : detect_log_format(text, log.path);
  const auto names = column_names(text, log.path, log.format);
  if (names.empty()) {
    throw Error(ErrorKind::kInput,
                log.path + ": holds no row in the format " + std::string(to_string(log.format)));
  }
  log.columns = find_columns(names, options.columns, log.path);

  RowReader reader(log.path, log.columns);
  StepCollector collector(log);
  for_each_log_row(
      text, log.path, log.format, [&](std::int64_t line, const std::vector<LogCell>& cells) {
        reader.look_at(line, cells);
        if (reader.text("loss") == nullptr) {
          ++log.skipped;
          return;
        }
        const auto step = reader.count("step");
        if (!step) fail_at_line(log.path, line, "has a loss, but no step");
        ImportedStep row{.step = *step,
                         .tokens = reader.count("tokens"),
                         .loss = reader.number("loss"),
                         .grad_norm = reader.number("grad_norm"),
                         .lr = reader.number("lr"),
                         .tokens_per_second = reader.number("tokens_per_second"),
                         .seconds = reader.number("seconds")};
        if (!row.tokens && options.tokens_per_step) {
          std::int64_t tokens = 0;
          if (__builtin_mul_overflow(*step, *options.tokens_per_step, &tokens))
            fail_at_line(log.path, line, "has a step too large for that many tokens a step");
          row.tokens = tokens;
        }
        collector.add(line, row);
      });
  collector.finish();
  if (log.steps.empty())
    throw Error(ErrorKind::kInput, log.path + ": no row has a loss in column " +
                                       in_quotes(log.columns.find("loss")->second));
  return log;
}

std::optional<std::string> find_import(const RecordDatabase& records, const std::string& sha256) {
  std::optional<std::string> found;
  records.query("SELECT max(run_id) FROM inputs WHERE kind = 'log' AND sha256 = ?", {sha256},
                [&](const auto&, const auto& row) {
                  if (const auto* id = std::get_if<std::string>(&row[0])) found = *id;
                });
  return found;
}

std::string write_step_log(RecordDatabase& records, const StepLog& log, const ImportedRun& run) {
  const std::string id = new_record_id();
  const std::string now = utc_now();
  const std::int64_t attempt = 1;
  std::vector<RecordDatabase::Row> rows;
  rows.push_back({"INSERT INTO runs VALUES (?, ?, ?, 'finished', ?, '', ?, 0, ?)",
                  {id, run.name, now, run.config, static_cast<std::int64_t>(run.seed),
                   log.steps.back().step}});
  rows.push_back({"INSERT INTO attempts VALUES (?, ?, ?, ?, 'finished', 0, NULL, ?, '{}', '{}', ?)",
                  {id, attempt, now, now, run.command_line, describe(log)}});
  rows.push_back(
      {"INSERT INTO inputs VALUES (?, 'log', ?, ?, ?)", {id, log.path, log.bytes, log.sha256}});
  for (const auto& row : log.steps) {
    rows.push_back({"INSERT INTO imported_steps VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    {id, row.step, optional_value(row.tokens), optional_value(row.loss),
                     optional_value(row.grad_norm), optional_value(row.lr),
                     optional_value(row.seconds), optional_value(row.tokens_per_second)}});
  }
  for (const auto& restart : log.restarts) {
    rows.push_back(
        {"INSERT INTO events (run_id, attempt, step, utc, kind, message) VALUES (?, ?, ?, ?, "
         "'restart', ?)",
         {id, attempt, restart.step, now, restart.message}});
  }
  for (const auto& tag : run.tags)
    rows.push_back({"INSERT OR IGNORE INTO tags VALUES (?, ?)", {id, tag}});
  records.write(std::move(rows));
  return id;
}

}  // namespace olmo::store

#include "import/steps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <unordered_map>

#include "core/error.h"
#include "core/files/input_file.h"
#include "core/hash.h"
#include "core/text/number.h"
#include "import/columns.h"
#include "import/log.h"

namespace olmo::import {
namespace {

bool is_absent(const std::string& text) { return text.empty() || text == "null" || text == "None"; }

/// Reads the cells of one row by target.
class RowReader {
 public:
  explicit RowReader(const StepLog& log) : log_(log) {}

  void look_at(std::int64_t line, const std::vector<LogCell>& cells) {
    line_ = line;
    cells_ = &cells;
  }
  /// The cell's text; null if it is absent or empty.
  [[nodiscard]] const std::string* text(std::string_view target) const {
    const auto column = log_.columns.find(target);
    if (column == log_.columns.end()) return nullptr;
    for (const auto& cell : *cells_)
      if (cell.name == column->second) return is_absent(cell.text) ? nullptr : &cell.text;
    return nullptr;
  }
  /// Whether the cell holds a number, be it infinite.
  [[nodiscard]] bool holds(std::string_view target) const {
    const auto* cell = text(target);
    const auto value = cell == nullptr ? std::nullopt : parse_log_number(*cell);
    return value && !std::isnan(*value);
  }
  /// Absent where the cell is or is not finite.
  [[nodiscard]] std::optional<double> number(std::string_view target) const {
    const auto* cell = text(target);
    if (cell == nullptr) return std::nullopt;
    const auto value = parse_log_number(*cell);
    if (!value) fail(target, "a number with a decimal point", *cell);
    return std::isfinite(*value) ? std::optional(*value * scale(target)) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::int64_t> count(std::string_view target) const {
    const auto* cell = text(target);
    if (cell == nullptr) return std::nullopt;
    constexpr double kExact = 9007199254740992.0;  // 2^53: every integer up to it is a double
    const bool scaled = log_.scales.contains(std::string(target));
    auto value = scaled ? parse_log_number(*cell) : parse_log_count(*cell);
    if (value && std::isnan(*value)) return std::nullopt;  // how pandas writes what is missing
    if (value && scaled) value = std::round(*value * scale(target));
    const auto shift = log_.shifts.find(std::string(target));
    if (value && shift != log_.shifts.end()) value = *value + static_cast<double>(shift->second);
    if (!value || !(*value >= 0 && *value <= kExact) || *value != std::floor(*value))
      fail(target,
           "a whole number from 0 to 2^53" +
               std::string(shift == log_.shifts.end() ? "" : " once --map has shifted it"),
           *cell);
    return static_cast<std::int64_t>(*value);
  }
  /// A header within the file: every cell is the name of its column.
  [[nodiscard]] bool is_header() const {
    return std::all_of(cells_->begin(), cells_->end(),
                       [](const LogCell& cell) { return cell.text == cell.name; });
  }
  /// pandas writes NaN for what is missing, trainers for a loss that is none: then they log the
  /// other columns of a step beside it.
  [[nodiscard]] bool has_loss() const {
    if (text("loss") == nullptr) return false;
    if (holds("loss")) return true;
    if (!parse_log_number(*text("loss"))) return true;  // no number at all: to be refused
    constexpr std::array<std::string_view, 5> kOfSteps = {
        "grad_norm", "lr", "seconds", "tokens_per_second", "tokens_per_second_per_device"};
    const auto logged = [&](auto target) { return log_.columns.contains(std::string(target)); };
    return std::none_of(kOfSteps.begin(), kOfSteps.end(), logged) ||
           std::any_of(kOfSteps.begin(), kOfSteps.end(), [&](auto target) {
             return text(target) != nullptr && !is_nan(*text(target));
           });
  }
  [[nodiscard]] std::int64_t line() const { return line_; }
  [[nodiscard]] const std::vector<LogCell>& cells() const { return *cells_; }

 private:
  static bool is_nan(const std::string& text) {
    const auto value = parse_log_number(text);
    return value && std::isnan(*value);
  }
  [[nodiscard]] double scale(std::string_view target) const {
    const auto found = log_.scales.find(std::string(target));
    return found == log_.scales.end() ? 1 : found->second;
  }
  [[noreturn]] void fail(std::string_view target, const std::string& expected,
                         const std::string& got) const {
    fail_at_line(log_.path, line_,
                 "column " + in_quotes(log_.columns.find(target)->second) + " must be " + expected +
                     ", got " + in_quotes(got));
  }

  const StepLog& log_;
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

/// What --map makes of a column's numbers.
struct Conversion {
  std::string column;
  std::optional<double> factor;
  std::optional<std::int64_t> shift;
};

/// Takes a factor off `COLUMN*FACTOR`; false if there is none.
bool take_factor(Conversion& made) {
  const auto star = made.column.rfind('*');
  if (star == made.column.npos) return false;
  const auto factor = parse_log_number(std::string_view(made.column).substr(star + 1));
  if (!factor || !std::isfinite(*factor) || *factor <= 0) return false;
  made.factor = factor;
  made.column.erase(star);
  return true;
}

/// Takes what is added off `COLUMN+N` or `COLUMN-N`; false if there is none.
bool take_shift(Conversion& made) {
  const auto sign = made.column.find_last_of("+-");
  if (sign == made.column.npos) return false;
  const auto digits = std::string_view(made.column).substr(sign + 1);
  const auto shift = digits.starts_with('-') ? std::nullopt : parse_number<std::int64_t>(digits);
  if (!shift) return false;
  made.shift = made.column[sign] == '-' ? -*shift : *shift;
  made.column.erase(sign);
  return true;
}

/// The columns alone; what --map makes of their numbers goes to the log. A column may be called
/// like a conversion. `COLUMN*1e+9` has a factor alone.
ColumnMap without_conversions(ColumnMap wanted, const std::vector<std::string>& names,
                              StepLog& log) {
  const auto is_column = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (auto& [target, column] : wanted) {
    Conversion made{.column = column, .factor = {}, .shift = {}};
    if (!is_column(column) && !take_factor(made) && (target == "step" || target == "tokens") &&
        take_shift(made) && !is_column(made.column))
      take_factor(made);
    column = made.column;
    if (made.factor) log.scales[target] = *made.factor;
    if (made.shift) log.shifts[target] = *made.shift;
  }
  return wanted;
}

/// What `row` does not tell, from another row of its step.
void complete(store::ImportedStepRecord& row, const store::ImportedStepRecord& other) {
  using Row = store::ImportedStepRecord;
  const auto take = [&](auto Row::*fact) {
    if (!(row.*fact)) row.*fact = other.*fact;
  };
  take(&Row::tokens);
  take(&Row::grad_norm);
  take(&Row::lr);
  take(&Row::seconds);
  take(&Row::tokens_per_second);
  take(&Row::tokens_per_second_per_device);
}

/// Collects the rows of steps and metrics, and what a log that goes back has superseded.
class StepCollector {
 public:
  explicit StepCollector(StepLog& log) : log_(log) {}

  void add(std::int64_t line, store::ImportedStepRecord row) { rows_.emplace_back(line, row); }
  /// A row without a loss: some trainers log the learning rate of a step in a row of its own.
  void add_beside(std::int64_t line, store::ImportedStepRecord row) {
    beside_.emplace(row.position, std::pair(line, row));
  }
  void add(std::int64_t line, const ImportedMetric& metric) {
    metrics_[{metric.position, metric.name}] = {metric.value, line};
  }
  void finish() {
    log_.reversed = is_descending();
    if (log_.reversed) std::reverse(rows_.begin(), rows_.end());
    std::int64_t previous_line = 0;
    for (const auto& [line, row] : rows_) {
      if (!steps_.empty() && row.position <= previous_) go_back(line, row.position, previous_line);
      previous_ = row.position;
      previous_line = line;
      steps_[row.position] = row;
    }
    for (const auto& [position, row] : steps_) {
      log_.steps.push_back(row);
      const auto [first, last] = beside_.equal_range(position);
      for (auto one = last; one != first;) complete(log_.steps.back(), (--one)->second.second);
    }
    for (const auto& [key, value] : metrics_)
      log_.metrics.push_back({key.first, key.second, value.first});
  }

 private:
  [[nodiscard]] bool is_descending() const {
    return rows_.size() > 2 &&
           std::adjacent_find(rows_.begin(), rows_.end(), [](const auto& a, const auto& b) {
             return a.second.position <= b.second.position;
           }) == rows_.end();
  }
  /// Rows without a loss may come before the first loss after a restart.
  [[nodiscard]] std::int64_t begin_of_restart(std::int64_t line, std::int64_t to,
                                              std::int64_t previous_line) const {
    std::int64_t begin = line;
    for (auto row = beside_.begin(); row != beside_.upper_bound(to); ++row)
      if (row->second.first > previous_line) begin = std::min(begin, row->second.first);
    return begin;
  }
  void go_back(std::int64_t line, std::int64_t to, std::int64_t previous_line) {
    if (to == previous_) {
      ++log_.repeated;
      return;
    }
    const auto from = steps_.lower_bound(to);
    const auto superseded = std::distance(from, steps_.end());
    steps_.erase(from, steps_.end());
    const std::int64_t begin = begin_of_restart(line, to, previous_line);
    std::erase_if(metrics_, [&](const auto& entry) {
      return entry.first.first >= to && entry.second.second < begin;
    });
    std::erase_if(beside_, [&](const auto& entry) {
      return entry.first >= to && entry.second.first < begin;
    });
    log_.restarts.push_back({to,
                             "the log goes from " + log_.place(previous_) + " back to " +
                                 log_.place(to) + " (line " + std::to_string(line) +
                                 "): " + std::to_string(superseded) +
                                 (superseded == 1 ? " row is" : " rows are") + " superseded",
                             /*of_file=*/false});
  }

  StepLog& log_;
  std::int64_t previous_ = 0;
  std::vector<std::pair<std::int64_t, store::ImportedStepRecord>> rows_;
  std::map<std::int64_t, store::ImportedStepRecord> steps_;
  /// By position, in the order of the log.
  std::multimap<std::int64_t, std::pair<std::int64_t, store::ImportedStepRecord>> beside_;
  std::map<std::pair<std::int64_t, std::size_t>, std::pair<double, std::int64_t>> metrics_;
};

/// The columns that are kept as metrics, by name.
class MetricColumns {
 public:
  MetricColumns(const std::vector<std::string>& names, const std::vector<std::string>& keep,
                StepLog& log) {
    const std::string_view loss = log.columns.find("loss")->second;
    const auto run = loss.substr(0, loss.size() - metric_of(loss).size());
    std::set<std::string_view> taken;
    for (const auto& [target, column] : log.columns) taken.insert(column);
    for (const auto& name : names) {
      if (taken.contains(name)) continue;
      const auto metric = metric_of(name);
      // An export of several runs has the others' columns, too.
      const bool of_run = metric.size() == name.size() || name.starts_with(run);
      if (of_run && (is_metric_name(name) || matches_any(name, keep))) {
        columns_.emplace(name, log.metric_names.size());
        log.metric_names.emplace_back(metric);
      } else {
        log.ignored.push_back(name);
      }
    }
  }
  /// Calls `on_value(index, value)` for every finite one in the row.
  template <typename OnValue>
  void visit(const std::vector<LogCell>& cells, const OnValue& on_value) const {
    if (columns_.empty()) return;
    for (const auto& cell : cells) {
      if (cell.text.empty()) continue;
      const auto column = columns_.find(std::string(cell.name));
      if (column == columns_.end()) continue;
      const auto value = parse_log_number(cell.text);
      if (value && std::isfinite(*value)) on_value(column->second, *value);
    }
  }

 private:
  std::unordered_map<std::string, std::size_t> columns_;
};

/// TensorBoard's numbers are floats: beyond 2^24 a count is rounded, and so not known.
std::optional<std::int64_t> tokens_of(const RowReader& reader, StepLog& log) {
  constexpr std::int64_t kExact = std::int64_t{1} << 24;
  const auto tokens = reader.count("tokens");
  if (log.format != LogFormat::kTensorboard || tokens.value_or(0) <= kExact) return tokens;
  ++log.rounded;
  return std::nullopt;
}

/// Step and tokens of a row, each from the other where the log tells one and the tokens of a step
/// are given; false if it tells neither.
bool find_position(const RowReader& reader, StepLog& log, const StepLogOptions& options,
                   store::ImportedStepRecord& row) {
  row.step = reader.count("step");
  row.tokens = tokens_of(reader, log);
  const auto per_step = options.tokens_per_step;
  if (per_step && row.step && !row.tokens) {
    std::int64_t tokens = 0;
    if (__builtin_mul_overflow(*row.step, *per_step, &tokens))
      fail_at_line(log.path, reader.line(), "has a step too large for that many tokens a step");
    row.tokens = tokens;
  }
  if (per_step && row.tokens && !log.columns.contains("step")) {
    if (*row.tokens % *per_step != 0)
      fail_at_line(log.path, reader.line(),
                   "has " + std::to_string(*row.tokens) + " tokens, which is no multiple of the " +
                       std::to_string(*per_step) + " that a step has by --tokens-per-step");
    row.step = *row.tokens / *per_step;
  }
  const auto& position = log.steps_known ? row.step : row.tokens;
  row.position = position.value_or(0);
  return position.has_value();
}

/// The numbers of a step but its place.
void read_facts(const RowReader& reader, const StepLogOptions& options,
                store::ImportedStepRecord& row) {
  row.loss = reader.number("loss");
  row.grad_norm = reader.number("grad_norm");
  row.lr = reader.number("lr");
  row.seconds = reader.number("seconds");
  row.tokens_per_second = reader.number("tokens_per_second");
  row.tokens_per_second_per_device = reader.number("tokens_per_second_per_device");
  if (!row.tokens_per_second && row.tokens_per_second_per_device && options.devices)
    row.tokens_per_second =
        *row.tokens_per_second_per_device * static_cast<double>(*options.devices);
  else if (!row.tokens_per_second && row.seconds.value_or(0) > 0 && options.tokens_per_step)
    row.tokens_per_second = static_cast<double>(*options.tokens_per_step) / *row.seconds;
}

void read_row(const RowReader& reader, const MetricColumns& metrics, const StepLogOptions& options,
              StepLog& log, StepCollector& collector) {
  if (reader.is_header()) {
    ++log.headers;
    return;
  }
  const bool has_loss = reader.has_loss();
  if (!has_loss) ++log.skipped;
  store::ImportedStepRecord row;
  const bool placed = find_position(reader, log, options, row);
  bool has_metrics = false;
  metrics.visit(reader.cells(), [&](std::size_t name, double value) {
    has_metrics = true;
    if (placed) collector.add(reader.line(), ImportedMetric{row.position, name, value});
  });
  if (const auto* time = reader.text("time"); time != nullptr && !log.begin_time)
    log.begin_time = parse_log_number(*time);
  if (!placed) {
    if (has_loss)
      fail_at_line(log.path, reader.line(),
                   log.steps_known ? "has a loss, but no step" : "has a loss, but no tokens");
    if (has_metrics) ++log.unplaced;
    return;
  }
  read_facts(reader, options, row);
  if (has_loss)
    collector.add(reader.line(), row);
  else
    collector.add_beside(reader.line(), row);
}

LogFormat format_of(std::string_view bytes, const std::string& file,
                    std::optional<LogFormat> told) {
  const auto binary = detect_binary_log(bytes, file);
  if (binary && told.value_or(*binary) != *binary)
    throw Error(ErrorKind::kUsage, file + ": is in the format " + std::string(to_string(*binary)) +
                                       ", and --format says " + std::string(to_string(*told)));
  if (binary) return *binary;
  refuse_foreign_log(bytes, file);
  if (told) return *told;
  if (std::filesystem::path(file).extension() == ".csv") return LogFormat::kCsv;
  return detect_log_format(bytes, file);
}

bool is_named_as_log(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  return name == "trainer_state.json" || name.ends_with(".wandb") ||
         name.find("tfevents") != std::string::npos;
}

/// A checkpoint's folder has its log within, and so has that of TensorBoard or W&B.
void refuse_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  std::set<std::string> logs;
  for (const auto& entry : std::filesystem::directory_iterator(path, ignored))
    if (is_named_as_log(entry.path())) logs.insert(entry.path().string());
  if (logs.empty()) return;
  throw Error(ErrorKind::kInput, path.string() + ": is a folder; the log in it is " +
                                     *logs.begin() +
                                     (logs.size() == 1 ? "" : ", and there are more of them"));
}

/// Columns without a number are no metrics.
void drop_empty_metrics(StepLog& log) {
  std::vector<bool> used(log.metric_names.size());
  for (const auto& metric : log.metrics) used[metric.name] = true;
  std::vector<std::size_t> index(used.size());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < used.size(); ++i) {
    index[i] = names.size();
    (used[i] ? names : log.ignored).push_back(log.metric_names[i]);
  }
  for (auto& metric : log.metrics) metric.name = index[metric.name];
  log.metric_names = std::move(names);
}

}  // namespace

std::string StepLog::place(std::int64_t position) const {
  return steps_known ? "step " + std::to_string(position) : std::to_string(position) + " tokens";
}

StepLog read_step_log(const std::filesystem::path& path, const StepLogOptions& options) {
  refuse_folder(path);
  const std::string bytes = read_file(path);  // no map: it may be cut while it is read
  std::string_view text = bytes;
  StepLog log;
  log.path = path.string();
  log.bytes = static_cast<std::int64_t>(text.size());
  log.sha256 = sha256(text).hex();
  log.format = format_of(text, log.path, options.format);
  if (log.format == LogFormat::kWandb) log.run = read_wandb_run(text, log.path);
  const auto names = column_names(text, log.path, log.format);
  if (names.empty()) {
    throw Error(ErrorKind::kInput,
                log.path + ": holds no row in the format " + std::string(to_string(log.format)));
  }
  auto wanted = without_conversions(options.columns, names, log);
  // An event has a step of its own, and a number that is called like one is a float.
  if (log.format == LogFormat::kTensorboard) wanted.try_emplace("step", "step");
  log.columns = find_columns(names, wanted, log.path);
  if (const auto seconds = log.columns.find("seconds");
      seconds != log.columns.end() && seconds->second.ends_with("(ms)"))
    log.scales.try_emplace("seconds", 1e-3);
  log.steps_known = log.columns.contains("step") || options.tokens_per_step.has_value();

  RowReader reader(log);
  const MetricColumns metrics(names, options.keep, log);
  StepCollector collector(log);
  log.cut = !for_each_log_row(text, log.path, log.format,
                              [&](std::int64_t line, const std::vector<LogCell>& cells) {
                                reader.look_at(line, cells);
                                read_row(reader, metrics, options, log, collector);
                              });
  collector.finish();
  drop_empty_metrics(log);
  if (log.steps.empty())
    throw Error(ErrorKind::kInput, log.path + ": no row has a loss in column " +
                                       in_quotes(log.columns.find("loss")->second));
  return log;
}

}  // namespace olmo::import

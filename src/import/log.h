// The formats in which other trainers leave their logs, as rows of named cells.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace olmo::import {

enum class LogFormat {
  kCsv,          ///< a header and rows (RFC 4180), e.g. exported from W&B
  kJsonl,        ///< one JSON object a line, e.g. W&B's history; NaN and Infinity may occur. Or
                 ///< Hugging Face's trainer_state.json, whose rows are its log_history
  kColumns,      ///< numbers between blanks, no header: `step loss`, then `column3`, …
  kTorchtitan,   ///< console: `step:  1  loss: 12.2  grad_norm: 1.3 …`
  kOlmo,         ///< console: `[step=1/10,epoch=0]`, then lines `    train/CrossEntropyLoss=11.2`
  kMegatron,     ///< console, NeMo's, too: ` iteration 1/ 10 | … | lm loss: 1.1E+01 | …`
  kTensorboard,  ///< event file
  kWandb,        ///< W&B's own record, run-ID.wandb
};

/// "csv", "jsonl", … Throws Error(kUsage).
LogFormat parse_log_format(std::string_view name);
/// "auto, csv, … or wandb"
std::string log_format_names();
std::string_view to_string(LogFormat format);
/// That of a file which is no text; nothing for a text.
std::optional<LogFormat> detect_binary_log(std::string_view bytes, const std::string& file);
/// By the first lines of `text`. Throws Error(kInput) naming `file`.
LogFormat detect_log_format(std::string_view text, const std::string& file);

struct LogCell {
  std::string_view name;  ///< of the column; valid while the row is looked at
  std::string text;       ///< empty: absent
};

/// One row of the log: `line` (from 1) is where it begins, of a binary log the record.
using OnLogRow = std::function<void(std::int64_t line, const std::vector<LogCell>& cells)>;

/// The rows of `text` in order. Returns false if it is a binary log that ends within a record,
/// which is left out. Throws Error(kInput) "FILE:LINE: …".
bool for_each_log_row(std::string_view text, const std::string& file, LogFormat format,
                      const OnLogRow& on_row);

/// A number as logs write it: a point before its decimals; commas between thousands where they
/// cannot be meant for that point (`1,234,567`, `1,234.5`); nan and inf are numbers.
std::optional<double> parse_log_number(std::string_view text);
/// The same where only a whole number makes sense: `2,345` has commas between thousands. Nothing
/// for a whole number beyond 2^53, which no double holds.
std::optional<double> parse_log_count(std::string_view text);

/// What a log says, short and printable enough to be quoted in a sentence.
std::string in_quotes(std::string_view text);

/// "FILE:LINE: what" with exit code 3.
[[noreturn]] void fail_at_line(const std::string& file, std::int64_t line, const std::string& what);

/// Parses one line as a JSON object in which NaN and Infinity, as Python writes them, are the
/// strings of that name. Throws Error(kInput) "FILE:LINE: …", also for what is nested too deep.
nlohmann::json parse_log_json(std::string_view text, const std::string& file, std::int64_t line);

/// Parses a JSON value likewise; `where` is how errors begin.
nlohmann::json parse_log_value(std::string_view text, const std::string& where);

/// Throws Error(kInput) for lm-eval's results_DATE.json, which has neither steps nor instances.
void refuse_summary(std::string_view text, const std::string& file);

/// Throws Error(kInput) for files that are no text and yet are what trainers leave (Parquet,
/// databases, compressed files, UTF-16), with the command that makes a readable file of them, and
/// for those that lie beside Hugging Face's log.
void refuse_foreign_log(std::string_view bytes, const std::string& file);

}  // namespace olmo::import

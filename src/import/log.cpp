#include "import/log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/json.h"
#include "core/text/number.h"
#include "core/text/text.h"
#include "import/console.h"
#include "import/tensorboard.h"
#include "import/text.h"
#include "import/wandb.h"

namespace olmo::import {
namespace {

constexpr std::array<std::pair<std::string_view, LogFormat>, 8> kFormats = {{
    {"csv", LogFormat::kCsv},
    {"jsonl", LogFormat::kJsonl},
    {"columns", LogFormat::kColumns},
    {"torchtitan", LogFormat::kTorchtitan},
    {"olmo", LogFormat::kOlmo},
    {"megatron", LogFormat::kMegatron},
    {"tensorboard", LogFormat::kTensorboard},
    {"wandb", LogFormat::kWandb},
}};

/// The numbers, texts and truths of an object; what lies deeper is called `eval/arc_easy/acc`.
/// W&B's media are objects with a `_type`.
void add_cells(const Json& object, const std::string& folder, RowCells& row) {
  for (const auto& [name, value] : object.items()) {
    if (value.is_object() && !value.contains("_type")) {
      add_cells(value, folder + name + "/", row);
    } else if (value.is_string() || value.is_number() || value.is_boolean()) {
      row.add(folder + name, value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
}

void emit_object(std::int64_t line, const Json& object, const OnLogRow& on_row) {
  RowCells row;
  add_cells(object, "", row);
  on_row(line, row.cells());
}

void read_jsonl(std::string_view text, const std::string& file, const OnLogRow& on_row) {
  for (Lines lines(text); lines.next();) {
    if (trimmed(lines.line()).empty()) continue;
    const Json object = parse_log_json(lines.line(), file, lines.number());
    emit_object(lines.number(), object, on_row);
  }
}

void read_columns(std::string_view text, const std::string& file, const OnLogRow& on_row) {
  std::vector<std::string> names = {"step", "loss"};
  for (Lines lines(text); lines.next();) {
    const auto words = split_words(lines.line());
    if (words.empty() || words[0].starts_with('#')) continue;
    if (words.size() < 2) fail_at_line(file, lines.number(), "needs a step and a loss, has one");
    while (names.size() < words.size())
      names.push_back("column" + std::to_string(names.size() + 1));
    std::vector<LogCell> cells;
    for (std::size_t i = 0; i < words.size(); ++i)
      cells.push_back({names[i], std::string(words[i])});
    on_row(lines.number(), cells);
  }
}

/// Quotes NaN, Infinity and -Infinity where they stand for a value.
std::string with_quoted_constants(std::string_view text) {
  std::string result;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size();) {
    std::string_view constant;
    if (!in_string) {
      for (const std::string_view name : {"NaN", "Infinity", "-Infinity"})
        if (text.substr(i).starts_with(name)) constant = name;
    }
    if (!constant.empty()) {
      result.append("\"").append(constant).append("\"");
      i += constant.size();
      continue;
    }
    if (text[i] == '"') in_string = !in_string;
    if (text[i] == '\\' && i + 1 < text.size()) result += text[i++];
    result += text[i++];
  }
  return result;
}

/// A number as C writes it, with or without a plus.
std::optional<double> number_without(const std::string& commas) {
  std::string_view digits = commas;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  if (digits.size() < commas.size() && digits.starts_with('-')) return std::nullopt;
  return parse_number<double>(digits);
}

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw Error(ErrorKind::kInput, file + ": " + what);
}

/// For a shell and for the Python string inside: names with other characters are not put into a
/// command.
std::string name_or(const std::string& file, const char* placeholder) {
  const bool plain = !file.empty() && file.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_-./+=,@") == std::string::npos;
  return plain ? file : placeholder;
}

/// Hugging Face's trainer_state.json: one object, on a line or on many.
bool is_trainer_state(std::string_view text) {
  const auto first = text.substr(0, text.find('\n'));
  return text.find("\"log_history\"") != text.npos &&
         (first.find('}') == first.npos || trimmed(text.substr(first.size())).empty());
}

void read_trainer_state(std::string_view text, const std::string& file, const OnLogRow& on_row) {
  const Json state = parse_strict_json(with_quoted_constants(text), {.where = file});
  const Json history = state.is_object() ? state.value("log_history", Json()) : Json();
  if (!history.is_array()) refuse(file, "`log_history` must be a list");
  std::int64_t entry = 0;
  for (const Json& object : history) {
    ++entry;
    if (!object.is_object())
      refuse(file, "entry " + std::to_string(entry) + " of `log_history` must be an object");
    emit_object(entry, object, on_row);
  }
}

/// Of Hugging Face's checkpoints: files beside the log that are none.
bool is_beside_trainer_state(const std::filesystem::path& file) {
  constexpr std::array<std::string_view, 7> kNames = {
      "config.json",        "generation_config.json", "model.safetensors.index.json",
      "tokenizer.json",     "tokenizer_config.json",  "special_tokens_map.json",
      "chat_template.jinja"};
  constexpr std::array<std::string_view, 4> kEndings = {".safetensors", ".bin", ".pt", ".pth"};
  return std::ranges::find(kNames, file.filename().string()) != kNames.end() ||
         std::ranges::find(kEndings, file.extension().string()) != kEndings.end();
}

/// Windows' editors begin UTF-8 with one.
std::string_view without_bom(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return text;
}

void read_text_log(std::string_view text, const std::string& file, LogFormat format,
                   const OnLogRow& on_row) {
  text = without_bom(text);
  if (format == LogFormat::kCsv) return read_csv(text, file, on_row);
  if (format == LogFormat::kColumns) return read_columns(text, file, on_row);
  if (format == LogFormat::kTorchtitan) return read_torchtitan(text, on_row);
  if (format == LogFormat::kOlmo) return read_olmo(text, on_row);
  if (format == LogFormat::kMegatron) return read_megatron(text, on_row);
  if (is_trainer_state(text)) return read_trainer_state(text, file, on_row);
  read_jsonl(text, file, on_row);
}

/// Whether a line has `name=1`, `name: 1` or `loss 1` before a comma or its end, as what a console
/// prints, and not the header of a CSV.
bool tells_a_number(std::string_view line) {
  while (!line.empty()) {
    const auto comma = std::min(line.find(','), line.size());
    const auto field = trimmed(line.substr(0, comma));
    const auto number = field.find_last_of("=: ") + 1;  // 0 where there is none
    const auto name = trimmed(field.substr(0, number));
    const bool has_name = name.ends_with('=') || name.ends_with(':') || name.ends_with("loss");
    if (has_name && parse_log_number(field.substr(number))) return true;
    line.remove_prefix(std::min(comma + 1, line.size()));
  }
  return false;
}

}  // namespace

LogFormat parse_log_format(std::string_view name) {
  for (const auto& [known, format] : kFormats)
    if (known == name) return format;
  throw Error(ErrorKind::kUsage,
              "--format must be " + log_format_names() + ", got '" + std::string(name) + "'");
}

std::string log_format_names() {
  std::string names = "auto";
  for (const auto& known : kFormats)
    names += (known == kFormats.back() ? " or " : ", ") + std::string(known.first);
  return names;
}

std::string_view to_string(LogFormat format) {
  for (const auto& [name, known] : kFormats)
    if (known == format) return name;
  return "";
}

std::optional<LogFormat> detect_binary_log(std::string_view bytes, const std::string& file) {
  if (is_wandb_record(bytes)) return LogFormat::kWandb;
  if (is_event_file(bytes, file)) return LogFormat::kTensorboard;
  return std::nullopt;
}

LogFormat detect_log_format(std::string_view text, const std::string& file) {
  text = without_bom(text);
  const auto is_number = [](std::string_view word) { return parse_log_number(word).has_value(); };
  std::optional<bool> may_be_csv;  // told by the first line; a console log may begin with anything
  bool is_python = false;
  for (Lines lines(text); lines.next();) {
    const auto words = split_words(lines.line());
    if (words.empty() || words[0].starts_with('#')) continue;
    is_python = is_python || lines.line().find("{'loss': ") != std::string_view::npos;
    if (!may_be_csv) {
      if (words[0].starts_with('{') && !is_python) return LogFormat::kJsonl;
      if (words.size() >= 2 && std::all_of(words.begin(), words.end(), is_number))
        return LogFormat::kColumns;
      may_be_csv =
          lines.line().find(',') != std::string_view::npos && !tells_a_number(lines.line());
    }
    if (const auto console = console_of(lines.line())) return *console;
  }
  if (is_python)
    refuse(file,
           "is what Hugging Face's trainer prints, which tells no steps: import the "
           "trainer_state.json in one of its checkpoints");
  if (may_be_csv.value_or(false)) return LogFormat::kCsv;
  throw Error(ErrorKind::kInput,
              file +
                  ": is none of the known logs (CSV with a header, JSON lines, columns of numbers, "
                  "the console of OLMo, torchtitan, Megatron or NeMo, TensorBoard's event file, "
                  "W&B's record): --format says which it is meant to be; of what another console "
                  "prints, make two columns, step and loss (docs/import.md)");
}

bool for_each_log_row(std::string_view text, const std::string& file, LogFormat format,
                      const OnLogRow& on_row) {
  if (format == LogFormat::kTensorboard) return read_event_file(text, file, on_row);
  if (format == LogFormat::kWandb) return read_wandb_record(text, file, on_row);
  read_text_log(text, file, format, on_row);
  return true;
}

std::optional<double> parse_log_number(std::string_view text) {
  text = trimmed(text);
  // `2,345` may be 2.345 to whoever wrote it; `1,234,567` and `1,234.5` can be read in one way
  // only.
  const bool grouped = std::count(text.begin(), text.end(), ',') > 1 || text.find('.') != text.npos;
  return number_without(grouped ? without_thousands(text) : std::string(text));
}

std::optional<double> parse_log_count(std::string_view text) {
  constexpr std::int64_t kExact = std::int64_t{1} << 53;  // every integer up to it is a double
  const std::string digits = without_thousands(trimmed(text));
  std::int64_t count = 0;
  const auto* end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, count);
  const bool whole = parsed.ptr == end && !digits.empty();
  if (whole && (parsed.ec != std::errc() || count > kExact)) return std::nullopt;
  return number_without(digits);
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string shown(text.substr(0, kLongest));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return "'" + shown + (text.size() > kLongest ? "…'" : "'");
}

void fail_at_line(const std::string& file, std::int64_t line, const std::string& what) {
  throw Error(ErrorKind::kInput, file + ":" + std::to_string(line) + ": " + what);
}

Json parse_log_json(std::string_view text, const std::string& file, std::int64_t line) {
  Json object = parse_log_value(text, file + ":" + std::to_string(line));
  if (!object.is_object()) fail_at_line(file, line, "is not a JSON object");
  return object;
}

Json parse_log_value(std::string_view text, const std::string& where) {
  const bool bare = text.find("NaN") != text.npos || text.find("Infinity") != text.npos;
  return parse_strict_json(bare ? with_quoted_constants(text) : text, {.where = where});
}

void refuse_summary(std::string_view text, const std::string& file) {
  if (text.starts_with('{') && text.find("\"n-shot\":") != text.npos &&
      text.find("\"results\":") != text.npos)
    refuse(file,
           "is lm-eval's summary, which has no instances: give --instances its samples_*.jsonl "
           "(it writes them with --log_samples)");
}

void refuse_foreign_log(std::string_view bytes, const std::string& file) {
  using namespace std::string_view_literals;
  refuse_summary(bytes, file);
  const auto begins = [&](std::string_view magic) { return bytes.starts_with(magic); };
  if (is_beside_trainer_state(file))
    refuse(file,
           "is no log: that of a Hugging Face checkpoint is its trainer_state.json, in the same "
           "folder or in checkpoint-N below it");
  if (begins("PAR1")) {
    const std::string name = name_or(file, "history.parquet");
    refuse(file,
           "is Parquet, which is not read here. Make a CSV of it, with every digit, and import "
           "that:\n  python3 -m pip install pandas pyarrow\n  python3 -c \"import pandas; "
           "pandas.read_parquet('" +
               name + "').to_csv('" + std::filesystem::path(name).stem().string() +
               ".csv', index=False)\"");
  }
  if (begins("SQLite format 3\0"sv))
    refuse(file, "is a database and not a log: the reports read databases of ours as they are");
  if (begins("\x1f\x8b") || begins("\x28\xb5\x2f\xfd") || begins("PK\x03\x04") || begins("BZh"))
    refuse(file, "is compressed: unpack it first");
  if (begins("\xff\xfe"sv) || begins("\xfe\xff"sv))
    refuse(file, "is UTF-16 text: save it as UTF-8, e.g. with iconv -f UTF-16 -t UTF-8 FILE > NEW");
  if (bytes.substr(0, 4096).find('\0') != bytes.npos)
    refuse(file, "is no text (it has zero bytes), so no log that is known");
}

}  // namespace olmo::import

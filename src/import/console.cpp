#include "import/console.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/text/text.h"
#include "import/text.h"

namespace olmo::import {
namespace {

constexpr std::string_view kStepKey = "step:";
constexpr std::string_view kOlmoStep = "[step=";
constexpr std::string_view kOlmoEvaluation = "eval/";
/// As torchtitan calls it for TensorBoard and W&B.
constexpr std::string_view kTorchtitanValidation = "validation_metrics/global_avg_loss";
constexpr std::string_view kIteration = "iteration";
constexpr std::string_view kValidation = "validation loss at iteration ";

/// Where the numbers of a torchtitan line begin; npos if it has none.
std::size_t find_torchtitan_step(std::string_view line) {
  const auto at = line.find(kStepKey);
  if (at == line.npos || (at > 0 && line[at - 1] != ' ')) return line.npos;
  return line.find(": ", at + kStepKey.size()) == line.npos ? line.npos : at;
}

/// The step of a line `[step=10/739328,epoch=0]`; every rank prints it, the first one with numbers.
std::optional<std::string_view> olmo_step(std::string_view line) {
  const auto at = line.find(kOlmoStep);
  if (at == line.npos) return std::nullopt;
  const auto step = line.substr(at + kOlmoStep.size());
  return step.substr(0, step.find_first_of("/,]"));
}

struct OlmoNumber {
  std::string_view before;  ///< what a launcher put before the line: its rank, node or time
  std::string_view name;
  std::string value;
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Of `train/CrossEntropyLoss=11.20`.
std::optional<OlmoNumber> olmo_number_in(std::string_view told) {
  const auto equals = told.find('=');
  const auto name = told.substr(0, equals);
  if (equals == told.npos || name.find('/') == told.npos || name.ends_with(' '))
    return std::nullopt;
  const auto value = split_words(told.substr(equals + 1));
  return OlmoNumber{"", name, value.empty() ? "" : without_thousands(value[0])};
}

/// Of a line `    train/CrossEntropyLoss=11.20`. A text that was copied has often lost the
/// indentation.
std::optional<OlmoNumber> olmo_number(std::string_view line) {
  const auto told = trimmed(line);
  const auto group = told.substr(0, told.find('/'));
  auto number = olmo_number_in(told);
  if (number && std::ranges::all_of(group, is_letter) && parse_log_number(number->value))
    return number;
  const auto indent = line.find("    ");
  if (indent == line.npos) return std::nullopt;
  number = olmo_number_in(trimmed(line.substr(indent)));
  if (number) number->before = line.substr(0, indent);
  return number;
}

/// Makes rows of the lines of one rank, between which those of others may stand.
class OlmoRows {
 public:
  explicit OlmoRows(const OnLogRow& on_row) : on_row_(on_row) {}

  void add_step(std::string_view line, std::string_view step, std::int64_t line_number) {
    waiting_.push_back({std::string(line), std::string(step), line_number});
  }

  void add(const OlmoNumber& number, std::int64_t line) {
    const bool evaluates = number.name.starts_with(kOlmoEvaluation);
    go_to(place_of(number.before), number);
    if (evaluates && (!evaluates_ || row_.cells().empty())) begin(line, true);
    if (evaluates == evaluates_ && !row_.cells().empty() && !row_.has(number.name))
      row_.add(std::string(number.name), number.value);
  }

  void end_evaluation() {
    if (evaluates_) end_row();
  }

  void end() {
    for (const auto& place : waiting_) begin_at(place);
    end_row();
  }

 private:
  struct Place {
    std::string line, step;
    std::int64_t line_number = 0;
  };

  /// Of the steps that wait for numbers the newest in whose line the same stands `before`. Where it
  /// stands in none, as a time does, the newest. waiting_.size(): the number is of the present
  /// step.
  [[nodiscard]] std::size_t place_of(std::string_view before) const {
    for (auto i = waiting_.size(); i > 0; --i)
      if (waiting_[i - 1].line.starts_with(before)) return i - 1;
    const bool is_present = waiting_.empty() || present_.line.starts_with(before);
    return is_present ? waiting_.size() : waiting_.size() - 1;
  }

  void go_to(std::size_t place, const OlmoNumber& number) {
    if (place == waiting_.size()) return;
    const bool other_rank = waiting_[place].step == present_.step && !row_.has(number.name);
    if (!other_rank) {
      for (std::size_t i = 0; i < place; ++i)
        if (waiting_[i].line.starts_with(number.before)) begin_at(waiting_[i]);
      begin_at(waiting_[place]);
    }
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }

  void begin_at(const Place& place) {
    present_ = place;
    begin(place.line_number, false);
  }

  void begin(std::int64_t line_number, bool evaluates) {
    end_row();
    row_.add("step", present_.step);
    line_number_ = line_number;
    evaluates_ = evaluates;
  }

  void end_row() {
    if (!row_.cells().empty()) on_row_(line_number_, row_.cells());
    row_.clear();
  }

  const OnLogRow& on_row_;
  RowCells row_;
  std::int64_t line_number_ = 0;
  bool evaluates_ = false;
  Place present_;
  std::vector<Place> waiting_;
};

/// Of a line ` iteration 7/ 100 | consumed samples: 448 | … | lm loss: 1.09E+01 | grad norm: 2.1 |`
/// what follows the word; nothing for other lines (Megatron-LM's training_log(); NeMo's lines have
/// the same form).
std::optional<std::string_view> megatron_step(std::string_view line) {
  const auto at = line.find(kIteration);
  if (at == line.npos || line.find('|', at) == line.npos) return std::nullopt;
  const auto rest = line.substr(at + kIteration.size());
  const auto slash = rest.find('/');
  const auto number = trimmed(rest.substr(0, slash));
  if (slash == rest.npos || number.empty() || number.find_first_not_of("0123456789") != number.npos)
    return std::nullopt;
  return rest;
}

/// The value of ` lm loss: 1.09E+01 `; of ` elapsed time per iteration (ms): 900.1/880.5 ` that of
/// the step, before the mean.
std::optional<std::pair<std::string_view, std::string_view>> megatron_number(
    std::string_view part) {
  const auto colon = part.rfind(':');
  if (colon == part.npos) return std::nullopt;
  const auto value = trimmed(part.substr(colon + 1));
  return std::pair(trimmed(part.substr(0, colon)), value.substr(0, value.find('/')));
}

/// Calls `use` for each stretch between the bars of a line of Megatron's.
template <typename Use>
void for_each_part(std::string_view line, const Use& use) {
  for (auto bar = line.find('|'); bar != line.npos;) {
    line.remove_prefix(bar + 1);
    bar = line.find('|');
    use(line.substr(0, bar));
  }
}

/// Megatron's line of an evaluation has the names that it gives the numbers for TensorBoard. After
/// the last step it tells of whole sets: `… iteration 100 on test set | lm loss value: …`.
void add_megatron_evaluation(std::string_view after, RowCells& row) {
  const auto place = trimmed(after.substr(0, after.find('|')));
  const auto step = place.substr(0, place.find(' '));
  const auto set = trimmed(place.substr(step.size()));
  row.add(std::string(kIteration), std::string(step));
  for_each_part(after, [&](std::string_view part) {
    const auto number = megatron_number(part);
    constexpr std::string_view kValue = " value";
    if (!number || !number->first.ends_with(kValue)) return;
    const std::string name(number->first.substr(0, number->first.size() - kValue.size()));
    row.add(set.empty() ? name + " validation" : "validation/" + std::string(set) + "/" + name,
            std::string(number->second));
  });
}

}  // namespace

std::optional<LogFormat> console_of(std::string_view coloured) {
  const std::string line = without_ansi(coloured);
  if (olmo_step(line)) return LogFormat::kOlmo;
  if (find_torchtitan_step(line) != std::string::npos) return LogFormat::kTorchtitan;
  if (megatron_step(line)) return LogFormat::kMegatron;
  return std::nullopt;
}

/// A line `validate step: …` tells the loss of an evaluation.
void read_torchtitan(std::string_view text, const OnLogRow& on_row) {
  for (Lines lines(text); lines.next();) {
    const std::string line = without_ansi(lines.line());
    const std::string_view view = line;
    const auto begin = find_torchtitan_step(view);
    if (begin == view.npos) continue;
    const bool validates = trimmed(view.substr(0, begin)).ends_with("validate");
    std::vector<LogCell> cells;
    const auto words = split_words(view.substr(begin));
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      if (!words[i].ends_with(':')) continue;
      auto name = words[i].substr(0, words[i].size() - 1);
      if (validates && name == "loss") name = kTorchtitanValidation;
      if (validates && name != kTorchtitanValidation && name != "step") continue;
      cells.push_back({name, without_thousands(words[i + 1])});
    }
    on_row(lines.number(), cells);
  }
}

/// An evaluation is printed after the step that it follows, under its evaluator's name: a row of
/// that step without a loss.
void read_olmo(std::string_view text, const OnLogRow& on_row) {
  OlmoRows rows(on_row);
  for (Lines lines(text); lines.next();) {
    const std::string line = without_ansi(lines.line());
    if (const auto step = olmo_step(line)) {
      rows.add_step(line, *step, lines.number());
    } else if (const auto number = olmo_number(line)) {
      rows.add(*number, lines.number());
    } else {
      rows.end_evaluation();
    }
  }
  rows.end();
}

void read_megatron(std::string_view text, const OnLogRow& on_row) {
  RowCells row;
  for (Lines lines(text); lines.next();) {
    const std::string line = without_ansi(lines.line());
    const std::string_view view = line;
    row.clear();
    if (const auto at = view.find(kValidation); at != view.npos) {
      add_megatron_evaluation(view.substr(at + kValidation.size()), row);
    } else if (const auto step = megatron_step(line)) {
      row.add(std::string(kIteration), std::string(trimmed(step->substr(0, step->find('/')))));
      for_each_part(*step, [&](std::string_view part) {
        if (const auto number = megatron_number(part))
          row.add(std::string(number->first), std::string(number->second));
      });
    }
    if (!row.cells().empty()) on_row(lines.number(), row.cells());
  }
}

}  // namespace olmo::import

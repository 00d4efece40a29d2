#include "import/tensorboard.h"

#include <bit>
#include <filesystem>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/files/event_file_format.h"
#include "core/files/little_endian.h"
#include "core/files/protobuf.h"
#include "core/text/text.h"
#include "import/text.h"

namespace olmo::import {
namespace {

namespace event = event_file::event;
namespace value = event_file::value;
namespace tensor = event_file::tensor;

constexpr std::size_t kRecordHead = event_file::kLengthBytes + event_file::kChecksumBytes;

/// A length with the checksum of its bytes.
bool begins_with_record(std::string_view bytes) {
  return bytes.size() >= kRecordHead &&
         little_endian(bytes.substr(event_file::kLengthBytes, event_file::kChecksumBytes)) ==
             event_file::checksum(bytes.substr(0, event_file::kLengthBytes));
}

/// The records of a file.
class EventRecords {
 public:
  EventRecords(std::string_view bytes, const std::string& file) : rest_(bytes), file_(file) {}

  bool next() {
    if (rest_.size() < kRecordHead) return false;
    ++number_;
    if (!begins_with_record(rest_)) refuse("length");
    const std::uint64_t size = little_endian(rest_.substr(0, event_file::kLengthBytes));
    const auto after = rest_.substr(kRecordHead);
    if (after.size() < event_file::kChecksumBytes ||
        size > after.size() - event_file::kChecksumBytes)
      return false;
    data_ = after.substr(0, size);
    if (little_endian(after.substr(size, event_file::kChecksumBytes)) !=
        event_file::checksum(data_))
      refuse("data");
    rest_ = after.substr(size + event_file::kChecksumBytes);
    return true;
  }
  [[nodiscard]] std::string_view data() const { return data_; }
  [[nodiscard]] std::int64_t number() const { return number_; }  ///< from 1
  [[nodiscard]] bool at_end() const { return rest_.empty(); }

 private:
  [[noreturn]] void refuse(const char* what) const {
    fail_at_line(file_, number_,
                 std::string("is damaged, or no record of an event file: its ") + what +
                     " has another checksum");
  }

  std::string_view rest_, data_;
  const std::string& file_;
  std::int64_t number_ = 0;
};

/// The number of a tensor that holds one, as newer writers have it in place of a simple value.
std::optional<double> number_of_tensor(std::string_view message) {
  std::int64_t type = 0;
  std::string_view content;
  std::optional<double> number;
  for (ProtobufFields fields(message); fields.next();) {
    if (const auto told = fields.integer(tensor::kType)) type = *told;
    if (const auto told = fields.single(tensor::kFloats)) number = *told;
    if (const auto told = fields.real(tensor::kDoubles)) number = *told;
    for (const auto field : {tensor::kContent, tensor::kFloats, tensor::kDoubles})
      if (const auto told = fields.text(field)) content = *told;  // repeated fields come packed
  }
  if (type != tensor::kFloat && type != tensor::kDouble) return std::nullopt;
  if (number) return number;
  const std::uint64_t bits = little_endian(content.substr(0, 8));
  if (type == tensor::kFloat && content.size() == 4)
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  if (type == tensor::kDouble && content.size() == 8) return std::bit_cast<double>(bits);
  return std::nullopt;
}

struct Event {
  std::int64_t step = 0;
  double wall_time = 0;
  std::vector<std::pair<std::string_view, double>> numbers;  ///< by tag
};

void add_number(std::string_view message, Event& event) {
  std::string_view tag;
  std::optional<double> number;
  for (ProtobufFields fields(message); fields.next();) {
    if (const auto told = fields.text(value::kTag)) tag = *told;
    if (const auto told = fields.single(value::kSimpleValue)) number = *told;
    if (const auto told = fields.text(value::kTensor)) number = number_of_tensor(*told);
  }
  if (number) event.numbers.emplace_back(tag, *number);
}

Event parse_event(std::string_view message) {
  Event made;
  for (ProtobufFields fields(message); fields.next();) {
    if (const auto told = fields.integer(event::kStep)) made.step = *told;
    if (const auto told = fields.real(event::kWallTime)) made.wall_time = *told;
    const auto summary = fields.text(event::kSummary);
    if (!summary) continue;
    for (ProtobufFields values(*summary); values.next();)
      if (const auto one = values.text(event_file::kValueOfSummary)) add_number(*one, made);
  }
  return made;
}

/// Puts the numbers of a step together. Most writers give each an event of its own, and Megatron's
/// puts others between them, whose steps are counts of samples. A tag whose steps go back, or that
/// comes again, begins anew: what follows is of another attempt at the same steps. The names of
/// tags lie in the file's bytes, which must outlive this.
class StepRows {
 public:
  void add(std::int64_t record, const Event& event) {
    for (const auto& [name, number] : event.numbers) {
      Tag& tag = tags_[name];
      if (tag.attempt == attempt_ && event.step <= tag.step) ++attempt_;
      tag = {.attempt = attempt_, .step = event.step};
      Row begun{.record = record, .wall_time = event.wall_time, .numbers = {}};
      auto& row = rows_.try_emplace({attempt_, event.step}, std::move(begun)).first->second;
      row.numbers.emplace_back(name, number);
    }
  }
  void visit(const OnLogRow& on_row) const {
    RowCells cells;
    for (const auto& [key, row] : rows_) {
      cells.clear();
      cells.add("step", std::to_string(key.second));
      cells.add("wall_time", number_text(row.wall_time));
      for (const auto& [tag, number] : row.numbers)
        cells.add(std::string(tag), number_text(number));
      on_row(row.record, cells.cells());
    }
  }

 private:
  struct Tag {  ///< when it came last
    std::int64_t attempt = -1, step = 0;
  };
  struct Row {
    std::int64_t record;  ///< the first
    double wall_time;
    std::vector<std::pair<std::string_view, double>> numbers;  ///< by tag
  };

  std::int64_t attempt_ = 0;
  std::unordered_map<std::string_view, Tag> tags_;
  std::map<std::pair<std::int64_t, std::int64_t>, Row> rows_;  ///< by attempt and step
};

}  // namespace

bool is_event_file(std::string_view bytes, const std::string& file) {
  if (begins_with_record(bytes)) return true;
  const bool is_named_so =
      std::filesystem::path(file).filename().string().find("tfevents") != std::string::npos;
  return is_named_so && (bytes.empty() || bytes.substr(0, 64).find('\0') != bytes.npos);
}

bool read_event_file(std::string_view bytes, const std::string& file, const OnLogRow& on_row) {
  EventRecords records(bytes, file);
  StepRows rows;
  while (records.next()) {
    rows.add(records.number(),
             in_record(file, records.number(), [&] { return parse_event(records.data()); }));
  }
  rows.visit(on_row);
  return records.at_end();
}

}  // namespace olmo::import

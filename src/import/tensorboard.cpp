#include "import/tensorboard.h"

#include <bit>
#include <filesystem>

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

/// Puts the numbers of a step together, which most writers put into an event each.
class StepRow {
 public:
  explicit StepRow(const OnLogRow& on_row) : on_row_(on_row) {}

  void add(std::int64_t record, const Event& event) {
    for (const auto& [tag, number] : event.numbers) {
      if (row_.cells().empty() || event.step != step_ || row_.has(tag)) begin(record, event);
      row_.add(std::string(tag), number_text(number));
    }
  }
  void end() {
    if (!row_.cells().empty()) on_row_(record_, row_.cells());
    row_.clear();
  }

 private:
  void begin(std::int64_t record, const Event& event) {
    end();
    record_ = record;
    step_ = event.step;
    row_.add("step", std::to_string(event.step));
    row_.add("wall_time", number_text(event.wall_time));
  }

  const OnLogRow& on_row_;
  std::int64_t record_ = 0, step_ = 0;
  RowCells row_;
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
  StepRow row(on_row);
  while (records.next()) {
    row.add(records.number(),
            in_record(file, records.number(), [&] { return parse_event(records.data()); }));
  }
  row.end();
  return records.at_end();
}

}  // namespace olmo::import

// TensorBoard's event files. Settings are hyperparameters of its HParams page, and a text.
#include <algorithm>
#include <cmath>

#include "core/files/event_file_format.h"
#include "core/files/output_file.h"
#include "core/files/protobuf.h"
#include "core/text/number.h"
#include "core/text/text.h"
#include "exports/tools.h"

namespace olmo::exports {
namespace {

using Message = ProtobufMessage;

using namespace event_file;

namespace metadata {
enum : std::uint32_t { kPlugin = 1, kDataClass = 4 };
enum : std::uint32_t { kPluginName = 1, kPluginContent = 2 };
constexpr std::int64_t kClassTensor = 2;
}  // namespace metadata
namespace hparams {
enum : std::uint32_t { kStart = 3, kEnd = 4 };                     // of HParamsPluginData
enum : std::uint32_t { kValues = 1, kGroup = 4, kStartTime = 5 };  // of SessionStartInfo
enum : std::uint32_t { kStatus = 1, kEndTime = 2 };                // of SessionEndInfo
enum : std::uint32_t { kKey = 1, kValue = 2 };                     // of an entry of the map
enum : std::uint32_t { kNumber = 2, kText = 3, kBool = 4 };        // of google.protobuf.Value
}  // namespace hparams

class EventFile {
 public:
  explicit EventFile(const std::filesystem::path& path) : file_(path) {}

  void add(double wall_time, std::int64_t step, const Message& summary) {
    Message message;
    message.real(event::kWallTime, wall_time)
        .integer(event::kStep, step)
        .message(event::kSummary, summary);
    file_.append(record_of(message.bytes()));
  }
  void add_version(double wall_time) {
    Message message;
    message.real(event::kWallTime, wall_time).text(event::kFileVersion, "brain.Event:2");
    file_.append(record_of(message.bytes()));
  }
  void publish() { file_.publish(); }

 private:
  OutputFile file_;
};

Message plugin(const char* name, const std::string& content, bool is_tensor) {
  Message plugin_data, message;
  plugin_data.text(metadata::kPluginName, name);
  if (!content.empty()) plugin_data.text(metadata::kPluginContent, content);
  message.message(metadata::kPlugin, plugin_data);
  if (is_tensor) message.integer(metadata::kDataClass, metadata::kClassTensor);
  return message;
}

Message summary_of(const Message& of_value) { return Message().message(kValueOfSummary, of_value); }

Message text_summary(const std::string& tag, const std::string& text) {
  Message dim, shape, strings, of_value;
  dim.integer(kSizeOfDim, 1);
  shape.message(kDimOfShape, dim);
  strings.integer(tensor::kType, tensor::kString)
      .message(tensor::kShape, shape)
      .text(tensor::kStringValue, text);
  of_value.text(value::kTag, tag)
      .message(value::kTensor, strings)
      .message(value::kMetadata, plugin("text", "", true));
  return summary_of(of_value);
}

/// One setting: a number, a truth value or a text.
Message hparam_value(const std::string& text) {
  Message message;
  if (text == "true" || text == "false")
    return message.integer(hparams::kBool, text == "true" ? 1 : 0);
  if (const auto number = parse_number<double>(text))
    return message.real(hparams::kNumber, *number);
  return message.text(hparams::kText, text);
}

Message session_start(const RunFacts& facts) {
  Message info, data, of_value;
  for (const auto& setting : facts.settings) {
    Message entry;
    entry.text(hparams::kKey, setting.name).message(hparams::kValue, hparam_value(setting.text));
    info.message(hparams::kValues, entry);
  }
  info.text(hparams::kGroup, facts.name + " " + facts.run_id)
      .real(hparams::kStartTime, facts.begin);
  data.message(hparams::kStart, info);
  of_value.text(value::kTag, "_hparams_/session_start_info")
      .message(value::kMetadata, plugin("hparams", data.bytes(), false));
  return summary_of(of_value);
}

Message session_end(const RunFacts& facts) {
  constexpr std::int64_t kSuccess = 1, kFailure = 2, kRunning = 3;
  Message info, data, of_value;
  info.integer(hparams::kStatus, facts.status == "finished"  ? kSuccess
                                 : facts.status == "running" ? kRunning
                                                             : kFailure)
      .real(hparams::kEndTime, facts.end);
  data.message(hparams::kEnd, info);
  of_value.text(value::kTag, "_hparams_/session_end_info")
      .message(value::kMetadata, plugin("hparams", data.bytes(), false));
  return summary_of(of_value);
}

/// Lines of a Markdown table, which TensorBoard's text page shows; a cell cannot end it.
std::string table_of(const std::vector<NamedText>& rows) {
  std::string text = "| name | value |\n|---|---|\n";
  const auto cell = [](std::string words) {
    for (char& c : words)
      if (c == '|' || c == '\n' || c == '\r') c = ' ';
    return words;
  };
  for (const auto& row : rows) text += "| " + cell(row.name) + " | " + cell(row.text) + " |\n";
  return text;
}

}  // namespace

Exported write_tensorboard(const Source& source, const std::filesystem::path& folder) {
  const RunFacts& facts = source.facts;
  Exported exported;
  exported.path = folder / (file_name_of(facts.name) + "-" + file_name_of(facts.run_id));
  OutputFolder output(exported.path, OutputFolder::Existing::kReplaced);
  EventFile file(output.path() /
                 formatted("events.out.tfevents.%010.0f.olmo-harness", std::floor(facts.begin)));
  file.add_version(facts.begin);
  file.add(facts.begin, 0, session_start(facts));
  file.add(facts.begin, 0, text_summary("config", table_of(facts.settings)));
  file.add(facts.begin, 0, text_summary("machine", table_of(facts.machine)));
  if (!facts.tags.empty()) file.add(facts.begin, 0, text_summary("tags", joined(facts.tags)));
  source.points([&](const Point& point) {
    Message summary;
    for (const auto& number : point.numbers) {
      Message of_value;
      of_value.text(value::kTag, number.name)
          .single(value::kSimpleValue, static_cast<float>(number.value));
      summary.message(kValueOfSummary, of_value);
    }
    file.add(point.unix_seconds, point.step, summary);
    ++exported.steps;
    exported.numbers += std::ssize(point.numbers);
  });
  file.add(std::max(facts.end, facts.begin), 0, session_end(facts));
  file.publish();
  output.publish();
  return exported;
}

}  // namespace olmo::exports

// W&B's record of an offline run, as `wandb sync` reads it.
#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <map>

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "core/files/output_file.h"
#include "core/files/protobuf.h"
#include "core/files/recorded_json.h"
#include "core/files/wandb_format.h"
#include "core/text/text.h"
#include "exports/tools.h"

namespace olmo::exports {
namespace {

using Message = ProtobufMessage;

using namespace wandb_format;

/// Cuts entries at the ends of blocks.
class RecordLog {
 public:
  explicit RecordLog(const std::filesystem::path& path) : file_(path) { put(file_head()); }
  void add(std::uint32_t kind, const Message& message) {
    Message whole;
    whole.integer(record::kNumber, ++number_).message(kind, message);
    append(whole.bytes());
  }
  void publish() { file_.publish(); }

 private:
  void append(std::string_view data) {
    std::size_t room = kBlock - at_ % kBlock;
    if (room < kPieceHead) {
      put(std::string(room, '\0'));
      room = kBlock;
    }
    if (data.size() + kPieceHead <= room) return put(piece_of(kFull, data));
    put(piece_of(kFirst, data.substr(0, room - kPieceHead)));
    data.remove_prefix(room - kPieceHead);
    for (; data.size() > kBlock - kPieceHead; data.remove_prefix(kBlock - kPieceHead))
      put(piece_of(kMiddle, data.substr(0, kBlock - kPieceHead)));
    put(piece_of(kLast, data));
  }
  void put(std::string_view bytes) {
    file_.append(bytes);
    at_ += bytes.size();
  }

  OutputFile file_;
  std::size_t at_ = 0;
  std::int64_t number_ = 0;
};

Message item_of(const std::string& key, const std::string& json) {
  return Message().text(item::kKey, key).text(item::kJson, json);
}

/// As Python writes numbers that JSON lacks, which W&B reads.
std::string json_number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return number_text(value);
}

std::string time_text(double unix_seconds, const char* format) {
  const auto seconds = static_cast<std::time_t>(std::floor(unix_seconds));
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), format, &parts)};
}

/// W&B allows letters, digits, dashes and underscores, at most 64 of them.
std::string id_of(const RunFacts& facts) {
  std::string id = file_name_of(facts.run_id).substr(0, 64);
  std::ranges::replace(id, '.', '_');
  return id;
}

Message timestamp(double unix_seconds) {
  return Message().integer(1, static_cast<std::int64_t>(unix_seconds));
}

Message run_record(const RunFacts& facts, const std::string& project) {
  Message config, message;
  const Json json = recorded_json(facts.config);
  if (json.is_object())
    for (const auto& [key, value] : json.items())
      config.message(item::kInUpdate, item_of(key, json_text(value)));
  Json machine = Json::object();
  for (const auto& fact : facts.machine) machine[fact.name] = fact.text;
  config.message(item::kInUpdate, item_of(kOwnMachine, json_text(machine)));
  message.text(run::kId, id_of(facts))
      .text(run::kProject, project)
      .message(run::kConfig, config)
      .text(run::kName, facts.name);
  for (const auto& tag : facts.tags) message.text(run::kTags, tag);
  for (const auto& fact : facts.machine)
    if (fact.name == "environment.host") message.text(run::kHost, fact.text);
  return message.message(run::kStartTime, timestamp(facts.begin));
}

Message history_record(const Point& point, double begin) {
  Message message;
  const auto add = [&](const std::string& key, double value) {
    message.message(item::kInHistory, item_of(key, json_number_text(value)));
  };
  for (const auto& number : point.numbers) add(number.name, number.value);
  add("_step", static_cast<double>(point.step));
  add("_runtime", point.unix_seconds - begin);
  add("_timestamp", point.unix_seconds);
  return message.message(item::kStepOfHistory, Message().integer(item::kNumberOfStep, point.step));
}

}  // namespace

Exported write_wandb(const Source& source, const std::filesystem::path& folder,
                     const std::string& project) {
  const RunFacts& facts = source.facts;
  const std::string id = id_of(facts);
  Exported exported;
  exported.path = folder / ("offline-run-" + time_text(facts.begin, "%Y%m%d_%H%M%S") + "-" + id);
  OutputFolder output(exported.path, OutputFolder::Existing::kReplaced);
  make_folders(output.path() / "files");
  RecordLog log(output.path() / ("run-" + id + ".wandb"));
  const Message version = Message().text(1, "olmo-harness").text(2, "0.12.0");
  log.add(record::kHeader, Message().message(1, version));
  log.add(record::kRun, run_record(facts, project));
  std::map<std::string, double> last;
  source.points([&](const Point& point) {
    log.add(record::kHistory, history_record(point, facts.begin));
    for (const auto& number : point.numbers) last[number.name] = number.value;
    ++exported.steps;
    exported.numbers += std::ssize(point.numbers);
  });
  Message summary;
  for (const auto& [name, value] : last)
    summary.message(item::kInUpdate, item_of(name, json_number_text(value)));
  log.add(record::kSummary, summary);
  log.add(record::kExit, Message().integer(kExitCode, facts.status == "finished" ? 0 : 1));
  log.add(record::kFooter, Message());
  log.publish();
  output.publish();
  return exported;
}

}  // namespace olmo::exports

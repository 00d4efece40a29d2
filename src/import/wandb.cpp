#include "import/wandb.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/json.h"
#include "core/files/little_endian.h"
#include "core/files/protobuf.h"
#include "core/files/wandb_format.h"
#include "core/text/text.h"
#include "import/text.h"

namespace olmo::import {
namespace {

namespace record = wandb_format::record;
namespace item = wandb_format::item;

/// The entries of LevelDB's log, put together from their pieces.
class WandbEntries {
 public:
  WandbEntries(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {
    if (bytes.size() >= wandb_format::kFileHead) at_ = wandb_format::kFileHead;
  }

  bool next() {
    entry_.clear();
    for (bool begun = false; next_piece(); begun = true) {
      const bool begins = part_ == wandb_format::kFull || part_ == wandb_format::kFirst;
      if (begins == begun) refuse("a piece of a record stands where another belongs");
      entry_ += piece_;
      if (part_ == wandb_format::kFull || part_ == wandb_format::kLast) {
        ++number_;
        return true;
      }
    }
    return false;
  }
  [[nodiscard]] std::string_view entry() const { return entry_; }
  [[nodiscard]] std::int64_t number() const { return number_; }  ///< from 1
  [[nodiscard]] bool is_cut() const { return is_cut_; }          ///< the file, at its end

 private:
  bool next_piece() {
    constexpr std::size_t kHead = wandb_format::kPieceHead;
    if (const auto room = wandb_format::kBlock - at_ % wandb_format::kBlock; room < kHead)
      at_ += room;  // what no piece fits into
    if (at_ >= bytes_.size()) {
      is_cut_ = is_cut_ || part_ == wandb_format::kFirst || part_ == wandb_format::kMiddle;
      return false;
    }
    const auto rest = bytes_.substr(at_);
    const std::size_t size = rest.size() < kHead ? 0 : little_endian(rest.substr(4, 2));
    if (rest.size() < kHead || rest.size() - kHead < size) {
      is_cut_ = true;
      return false;
    }
    part_ = static_cast<std::uint8_t>(rest[6]);
    piece_ = rest.substr(kHead, size);
    if (part_ < wandb_format::kFull || part_ > wandb_format::kLast ||
        little_endian(rest.substr(0, 4)) != wandb_format::checksum(part_, piece_))
      refuse("the record is damaged: a piece has another checksum");
    at_ += kHead + size;
    return true;
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::kInput, file_ + ": byte " + std::to_string(at_) + ": " + what);
  }

  std::string_view bytes_, piece_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::uint8_t part_ = 0;
  std::string entry_;
  std::int64_t number_ = 0;
  bool is_cut_ = false;
};

/// A key, of parts where it lies deeper, and its value as JSON text; one that is no JSON as a text.
struct Item {
  std::vector<std::string> path;
  std::string json, text;

  [[nodiscard]] std::string key() const {
    std::string joined;
    for (const auto& part : path) joined += (joined.empty() ? "" : "/") + part;
    return joined;
  }
};

Item parse_item(std::string_view message) {
  Item made;
  for (ProtobufFields fields(message); fields.next();) {
    if (const auto key = fields.text(item::kKey); key && !key->empty())
      made.path = {std::string(*key)};
    if (const auto part = fields.text(item::kNestedKey)) made.path.emplace_back(*part);
    if (const auto json = fields.text(item::kJson)) made.json = *json;
    if (const auto text = fields.text(item::kText)) made.text = *text;
    if (const auto whole = fields.integer(item::kInteger)) made.text = std::to_string(*whole);
    if (const auto number = fields.real(item::kNumber)) made.text = number_text(*number);
  }
  return made;
}

/// Nothing for lists, objects (W&B's media) and null.
std::optional<std::string> cell_of(const Item& told) {
  const auto json = trimmed(told.json);
  if (json.empty()) return told.text;
  if (json.starts_with('[') || json.starts_with('{') || json == "null") return std::nullopt;
  if (!json.starts_with('"')) return std::string(json);  // NaN and Infinity, too
  return parse_log_value(json, "`" + told.key() + "`").get<std::string>();
}

class HistoryRow {
 public:
  explicit HistoryRow(std::string_view message) {
    std::optional<std::int64_t> step;
    for (ProtobufFields fields(message); fields.next();) {
      if (const auto one = fields.text(item::kInHistory)) add(parse_item(*one));
      if (const auto told = fields.text(item::kStepOfHistory)) step = step_of(*told);
    }
    if (step && !row_.has("_step")) row_.add("_step", std::to_string(*step));
  }
  [[nodiscard]] const std::vector<LogCell>& cells() const { return row_.cells(); }

 private:
  static std::int64_t step_of(std::string_view message) {
    std::int64_t step = 0;
    for (ProtobufFields fields(message); fields.next();)
      step = fields.integer(item::kNumberOfStep).value_or(step);
    return step;
  }
  void add(const Item& told) {
    if (auto cell = cell_of(told)) row_.add(told.key(), std::move(*cell));
  }

  RowCells row_;
};

/// Keys of W&B's own are left out.
void update_config(std::string_view message, Json& config) {
  for (ProtobufFields fields(message); fields.next();) {
    const auto update = fields.text(item::kInUpdate);
    if (!update) continue;
    const Item told = parse_item(*update);
    if (told.path.empty() || told.path.front() == "_wandb" || told.json.empty()) continue;
    Json* place = &config;
    for (const auto& part : told.path) {
      if (!place->is_object()) *place = Json::object();
      place = &(*place)[part];
    }
    *place = parse_log_value(told.json, "`" + told.key() + "`");
  }
}

struct WandbFacts {
  std::string name;
  std::vector<std::string> tags;
  std::optional<std::int64_t> exit_code;
  Json config = Json::object(), machine = Json::object();

  void add(std::string_view message) {
    for (ProtobufFields fields(message); fields.next();) {
      if (const auto update = fields.text(record::kConfig)) update_config(*update, config);
      if (const auto environment = fields.text(record::kEnvironment)) add_environment(*environment);
      if (const auto run = fields.text(record::kRun)) add_run(*run);
      if (const auto end = fields.text(record::kExit)) add_end(*end);
    }
  }

 private:
  void add_run(std::string_view message) {
    namespace run = wandb_format::run;
    tags.clear();  // a later record of the run tells all of them again
    for (ProtobufFields fields(message); fields.next();) {
      if (const auto update = fields.text(run::kConfig)) update_config(*update, config);
      if (const auto told = fields.text(run::kName)) name = *told;
      if (const auto tag = fields.text(run::kTags)) tags.emplace_back(*tag);
      add_text(fields, run::kHost, "host");
    }
  }
  void add_end(std::string_view message) {
    exit_code = 0;  // which is not written
    for (ProtobufFields fields(message); fields.next();)
      if (const auto code = fields.integer(wandb_format::kExitCode)) exit_code = *code;
  }
  void add_environment(std::string_view message) {
    namespace environment = wandb_format::environment;
    for (ProtobufFields fields(message); fields.next();) {
      add_text(fields, environment::kHost, "host");
      add_text(fields, environment::kOs, "os");
      add_text(fields, environment::kGpu, "gpu");
      add_text(fields, environment::kPython, "python");
      if (const auto count = fields.integer(environment::kGpuCount); count && *count > 0)
        machine["gpus_of_a_node"] = *count;
    }
  }
  void add_text(const ProtobufFields& fields, std::uint32_t field, const char* key) {
    if (const auto text = fields.text(field); text && !text->empty()) machine[key] = *text;
  }
};

}  // namespace

bool is_wandb_record(std::string_view bytes) { return bytes.starts_with(wandb_format::kMagic); }

bool read_wandb_record(std::string_view bytes, const std::string& file, const OnLogRow& on_row) {
  WandbEntries entries(bytes, file);
  while (entries.next()) {
    const HistoryRow row = in_record(file, entries.number(), [&] {
      std::string_view history;
      for (ProtobufFields fields(entries.entry()); fields.next();)
        history = fields.text(record::kHistory).value_or(history);
      return HistoryRow(history);
    });
    if (!row.cells().empty()) on_row(entries.number(), row.cells());
  }
  return !entries.is_cut();
}

WandbRun read_wandb_run(std::string_view bytes, const std::string& file) {
  WandbFacts facts;
  WandbEntries entries(bytes, file);
  while (entries.next()) in_record(file, entries.number(), [&] { facts.add(entries.entry()); });
  const auto own = facts.config.find(wandb_format::kOwnMachine);
  const bool is_export = own != facts.config.end();
  if (is_export) {
    facts.machine[wandb_format::kOwnMachine] = std::move(*own);
    facts.config.erase(own);
  }
  return {.name = facts.name,
          .config = json_text(facts.config),
          .machine = json_text(facts.machine),
          .tags = facts.tags,
          .exit_code = facts.exit_code,
          .is_export = is_export};
}

}  // namespace olmo::import

#include "import/wandb.h"

#include "binary_log.h"

#include "core/files/input_file.h"
#include "core/files/protobuf.h"
#include "core/files/wandb_format.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::test;
using Message = ProtobufMessage;
namespace format = wandb_format;
constexpr auto kWandbRecord = import::LogFormat::kWandb;

namespace {

std::string golden_record() { return read_file(golden_log("run-golden.wandb")); }

std::string head_of_file() { return std::string(":W&B\xe1\xbe\0", 7); }

Message item_of(const char* key, const char* json) {
  return Message().text(format::item::kKey, key).text(format::item::kJson, json);
}

std::string history(const std::vector<Message>& items, std::int64_t step) {
  Message history;
  for (const auto& each : items) history.message(format::item::kInHistory, each);
  history.message(format::item::kStepOfHistory,
                  Message().integer(format::item::kNumberOfStep, step));
  return Message().message(format::record::kHistory, history).bytes();
}

}  // namespace

TEST_CASE("W&B's record has a row for each call of wandb.log", "[import]") {
  std::vector<std::map<std::string, std::string>> rows;
  const std::string bytes = golden_record();
  CHECK(import::read_wandb_record(bytes, "log", [&](auto, const auto& cells) {
    auto& row = rows.emplace_back();
    for (const auto& cell : cells) row[std::string(cell.name)] = cell.text;
  }));
  REQUIRE(rows.size() == 5);
  CHECK(rows[1]["train/CrossEntropyLoss"] == "10.714285714285714");
  CHECK(rows[1]["optim/total_grad_norm"] == "NaN");
  CHECK(rows[1]["throughput/total_tokens"] == "1000000000002");
  CHECK(rows[1]["eval/downstream/piqa_len_norm"] == "0.52");
  CHECK(rows[1]["note"] == "text");
  CHECK(rows[1]["_step"] == "2");
  CHECK(rows[3]["long"].size() == 40000);
}

TEST_CASE("W&B's record tells config, name, machine and tags of its run", "[import]") {
  const auto run = import::read_wandb_run(golden_record(), "log");
  CHECK(run.name == "a run");
  CHECK(run.config ==
        R"({"max_duration":5,"optimizer":{"betas":[0.9,0.95],"name":"adamw"},"seed":6198})");
  CHECK(run.machine == R"({"gpu":"NVIDIA A100","gpus_of_a_node":8,"host":"node1","os":"Linux",)"
                       R"("python":"CPython 3.11.7"})");
  CHECK(run.tags == std::vector<std::string>{"repeat", "side:lumi"});
  CHECK(run.exit_code == 0);
}

TEST_CASE("W&B's record tells how its run ended, if it did", "[import]") {
  const auto end = [](const Message& exit) {
    const std::string entry = Message().message(format::record::kExit, exit).bytes();
    return import::read_wandb_run(head_of_file() + format::piece_of(format::kFull, entry), "log")
        .exit_code;
  };
  CHECK(end(Message().integer(format::kExitCode, 255)) == 255);
  CHECK(end(Message()) == 0);
  CHECK_FALSE(import::read_wandb_run(head_of_file(), "log").exit_code);
}

TEST_CASE("a record of W&B that was cut has the rows of its whole entries", "[import]") {
  const std::string bytes = golden_record();
  const LogRows all(bytes, kWandbRecord);
  std::size_t before = 0;
  for (std::size_t cut = 7; cut < bytes.size(); cut += cut % 7 == 0 ? 13 : 50) {
    INFO(cut);
    const LogRows read(std::string_view(bytes).substr(0, cut), kWandbRecord);
    REQUIRE(read.rows.size() >= before);
    before = read.rows.size();
    CHECK(std::equal(read.rows.begin(), read.rows.end(), all.rows.begin()));
  }
  CHECK_FALSE(LogRows(std::string_view(bytes).substr(0, bytes.size() - 1), kWandbRecord).whole);
  CHECK_FALSE(LogRows(std::string_view(bytes).substr(0, format::kBlock), kWandbRecord).whole);
}

TEST_CASE("a record of W&B with an altered byte is refused, or ends there", "[import]") {
  const std::string bytes = golden_record();
  for (std::size_t at = format::kFileHead; at < bytes.size(); at += at < 2000 ? 1 : 97) {
    INFO(at);
    std::string altered = bytes;
    altered[at] = static_cast<char>(altered[at] ^ 0x10);
    const bool refused = is_refused(altered, kWandbRecord);
    CHECK((refused || !LogRows(altered, kWandbRecord).whole));  // a length may lead beyond the end
  }
}

TEST_CASE("values of W&B's history have the types that it gives them", "[import]") {
  const Message whole = Message().text(format::item::kKey, "i").integer(format::item::kInteger, -4);
  const Message number = Message().text(format::item::kKey, "n").real(format::item::kNumber, 0.5);
  const Message text = Message().text(format::item::kKey, "t").text(format::item::kText, "word");
  const std::string entry =
      history({item_of("a", "1.5"), item_of("b", "-Infinity"), item_of("c", "\"x \\\"y\\\"\""),
               item_of("d", "[1, 2]"), item_of("e", R"({"_type": "histogram"})"),
               item_of("f", "null"), whole, number, text},
              7);
  const LogRows read(head_of_file() + format::piece_of(format::kFull, entry), kWandbRecord);
  CHECK(read.rows ==
        std::vector<std::string>{"a=1.5 b=-Infinity c=x \"y\" i=-4 n=0.5 t=word _step=7"});
}

TEST_CASE("an entry whose first piece is empty at the end of a block is read", "[import]") {
  const std::string filler(format::kBlock - format::kFileHead - 2 * format::kPieceHead, '\0');
  const std::string padding = Message().text(1000, filler.substr(5)).bytes();
  const std::string entry = history({item_of("a", "1")}, 1);
  const std::string start = head_of_file() + format::piece_of(format::kFull, padding);
  REQUIRE(start.size() == format::kBlock - format::kPieceHead);
  const LogRows read(
      start + format::piece_of(format::kFirst, "") + format::piece_of(format::kLast, entry),
      kWandbRecord);
  CHECK(read.whole);
  CHECK(read.rows == std::vector<std::string>{"a=1 _step=1"});
}

TEST_CASE("pieces of W&B's record that do not belong together are refused", "[import]") {
  const std::string entry = history({item_of("a", "1")}, 1);
  CHECK(is_refused(head_of_file() + format::piece_of(format::kLast, entry), kWandbRecord));
  CHECK(is_refused(head_of_file() + format::piece_of(format::kFirst, entry) +
                       format::piece_of(format::kFull, entry),
                   kWandbRecord));
  CHECK(is_refused(head_of_file() + format::piece_of(format::kFull, "\x0b"), kWandbRecord));
  CHECK(is_refused(
      head_of_file() + format::piece_of(format::kFull, history({item_of("a", "\"x")}, 1)),
      kWandbRecord));
}

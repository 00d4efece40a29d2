#include "import/tensorboard.h"

#include <cmath>

#include "binary_log.h"

#include "core/files/event_file_format.h"
#include "core/files/input_file.h"
#include "core/files/protobuf.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::test;
using Message = ProtobufMessage;
constexpr auto kEvents = import::LogFormat::kTensorboard;

namespace {

std::string golden_events() { return read_file(golden_log("events.out.tfevents.golden")); }

std::string event_of(std::int64_t step, const Message& value) {
  return event_file::record_of(Message()
                                   .real(event_file::event::kWallTime, 1.5)
                                   .integer(event_file::event::kStep, step)
                                   .message(event_file::event::kSummary,
                                            Message().message(event_file::kValueOfSummary, value))
                                   .bytes());
}

Message scalar(const char* tag, float number) {
  return Message()
      .text(event_file::value::kTag, tag)
      .single(event_file::value::kSimpleValue, number);
}

Message tensor_value(const Message& tensor) {
  return Message().text(event_file::value::kTag, "x").message(event_file::value::kTensor, tensor);
}

}  // namespace

TEST_CASE("an event file of PyTorch's SummaryWriter has a row for each step", "[import]") {
  const LogRows read(golden_events(), kEvents);
  CHECK(read.whole);
  REQUIRE(read.rows.size() == 5);
  // Floats, but for what was written in double precision, as the double of the same value.
  CHECK(read.rows[0] ==
        "step=1 wall_time=1700000001 loss_metrics/global_avg_loss=10.857142448425293 grad_norm=1 "
        "throughput(tps)=1001 n_tokens_seen=4500001");
  CHECK(read.rows[2].ends_with(" validation_metrics/loss=9.5"));
}

TEST_CASE("an event file that was cut has the rows of its whole records", "[import]") {
  const std::string bytes = golden_events();
  const LogRows all(bytes, kEvents);
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    INFO(cut);
    const LogRows read(std::string_view(bytes).substr(0, cut), kEvents);
    REQUIRE(read.rows.size() <= all.rows.size());
    for (std::size_t i = 0; i + 1 < read.rows.size(); ++i) CHECK(read.rows[i] == all.rows[i]);
    if (!read.rows.empty()) CHECK(all.rows[read.rows.size() - 1].starts_with(read.rows.back()));
  }
  CHECK_FALSE(LogRows(std::string_view(bytes).substr(0, bytes.size() - 1), kEvents).whole);
}

TEST_CASE("an event file with any byte altered is refused, or ends there", "[import]") {
  const std::string bytes = golden_events();
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    INFO(at);
    std::string altered = bytes;
    altered[at] = static_cast<char>(altered[at] ^ 0x10);
    CHECK(is_refused(altered, kEvents));
  }
}

TEST_CASE("a number of an event may be a tensor of one float or double", "[import]") {
  namespace tensor = event_file::tensor;
  const auto row = [](const Message& tensor) {
    const LogRows read(event_of(3, tensor_value(tensor)), kEvents);
    return read.rows.empty() ? "" : read.rows.front();
  };
  const auto typed = [](std::int64_t type) { return Message().integer(tensor::kType, type); };
  const std::string half("\0\0\0\x3f", 4), third = [] {
    std::string bytes;
    append_little_endian(bytes, std::bit_cast<std::uint64_t>(1.0 / 3), 8);
    return bytes;
  }();
  CHECK(row(typed(tensor::kFloat).text(tensor::kFloats, half)) == "step=3 wall_time=1.5 x=0.5");
  CHECK(row(typed(tensor::kFloat).single(tensor::kFloats, 0.5F)) == "step=3 wall_time=1.5 x=0.5");
  CHECK(row(typed(tensor::kFloat).text(tensor::kContent, half)) == "step=3 wall_time=1.5 x=0.5");
  CHECK(row(typed(tensor::kDouble).text(tensor::kDoubles, third)) ==
        "step=3 wall_time=1.5 x=0.3333333333333333");
  CHECK(row(typed(tensor::kString).text(tensor::kStringValue, "text")).empty());
  CHECK(row(typed(tensor::kFloat).text(tensor::kContent, "")).empty());
  CHECK(row(typed(tensor::kFloat).text(tensor::kContent, half + half)).empty());
}

TEST_CASE("an event file is known by its first bytes, or by its name if it is no text",
          "[import]") {
  const std::string bytes = golden_events();
  CHECK(import::is_event_file(bytes, "log"));
  CHECK_FALSE(import::is_event_file("step,loss\n1,2\n", "run-tfevents.csv"));
  CHECK(import::is_event_file("x" + bytes, "events.out.tfevents.1.node"));
  CHECK_FALSE(import::is_event_file("x" + bytes, "log"));
  CHECK(import::is_event_file("", "events.out.tfevents.1.node"));
}

TEST_CASE("a tag that comes again begins a row of its own", "[import]") {
  const LogRows read(event_of(1, scalar("loss", 2)) + event_of(1, scalar("lr", 1)) +
                         event_of(1, scalar("loss", 3)) + event_of(2, scalar("loss", 4)),
                     kEvents);
  CHECK(read.rows == std::vector<std::string>{"step=1 wall_time=1.5 loss=2 lr=1",
                                              "step=1 wall_time=1.5 loss=3",
                                              "step=2 wall_time=1.5 loss=4"});
}

TEST_CASE("numbers of a step come together across those of other steps", "[import]") {
  // As Megatron writes them: each again over the samples, here 2 a step.
  std::string events;
  for (const std::int64_t step : {1, 2, 3}) {
    const auto number = static_cast<float>(step);
    events += event_of(step, scalar("lr", number)) + event_of(2 * step, scalar("lr vs s", number)) +
              event_of(step, scalar("loss", number)) +
              event_of(2 * step, scalar("loss vs s", number));
  }
  CHECK(LogRows(events, kEvents).rows ==
        std::vector<std::string>{"step=1 wall_time=1.5 lr=1 loss=1",
                                 "step=2 wall_time=1.5 lr vs s=1 loss vs s=1 lr=2 loss=2",
                                 "step=3 wall_time=1.5 lr=3 loss=3",
                                 "step=4 wall_time=1.5 lr vs s=2 loss vs s=2",
                                 "step=6 wall_time=1.5 lr vs s=3 loss vs s=3"});
}

TEST_CASE("steps of an event file that go back begin rows of their own", "[import]") {
  std::string events;
  for (const std::int64_t step : {5, 6, 7, 6, 7})
    events += event_of(step, scalar("loss", 1)) + event_of(step, scalar("lr", 2));
  std::string steps;
  for (const auto& row : LogRows(events, kEvents).rows) {
    CHECK(row.ends_with(" loss=1 lr=2"));
    steps += row.substr(0, 7);
  }
  CHECK(steps == "step=5 step=6 step=7 step=6 step=7 ");
}

TEST_CASE("a record that is no event is named by its number", "[import]") {
  std::string said;
  try {
    const LogRows read(event_of(1, scalar("loss", 2)) + event_file::record_of("\x0b"), kEvents);
  } catch (const Error& error) {
    said = error.what();
  }
  CHECK(said == "log:2: is no message of protocol buffers");
}

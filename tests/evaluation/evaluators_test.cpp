#include "evaluation/evaluators.h"

#include "core/error.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::evaluation {
namespace {

/// The sentence with which a config's list of evaluators is refused; empty if it is not.
std::string refusal(const std::string& list) {
  const test::TemporaryDirectory folder;
  config::TrainConfig config;
  config.evaluators.text = list;
  try {
    const Evaluators made(config, std::nullopt, folder.path());
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kUsage);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a value of an evaluator that cannot be used is named with its key", "[evaluation]") {
  CHECK(refusal(R"([{"label": 5}])") == "evaluators.0: `label` must be text, got 5");
  const auto with = [](const std::string& keys) {
    return refusal(R"([{"label": "x", "data": {"paths": ["none.npy"]}, )" + keys + "}]");
  };
  CHECK(with(R"("type": null)").empty());
  CHECK(with(R"("type": ["lm"])") == "evaluators: x: `type` must be text, got [\"lm\"]");
  CHECK(with(R"("subset_num_batches": 1.5)") ==
        "evaluators: x: `subset_num_batches` must be an integer from -1, got 1.5");
  CHECK(with(R"("subset_num_batches": 18446744073709551615)") ==
        "evaluators: x: `subset_num_batches` must be an integer from -1, got 18446744073709551615");
  CHECK(with(R"("device_eval_batch_size": 0)") ==
        "evaluators: x: `device_eval_batch_size` must be an integer from 1, got 0");
}

TEST_CASE("the data of an evaluator that cannot be used are named with their key", "[evaluation]") {
  const auto data = [](const std::string& value) {
    return refusal(R"([{"label": "x", "data": )" + value + "}]");
  };
  for (const char* value : {"[]", "5", R"("a.npy")"})
    CHECK(data(value) == "evaluators: x: data: must be a map, got " + std::string(value));
  CHECK(data(R"({"paths": ["none.npy"], "memmap_dtype": 16})") ==
        "evaluators: x: data: `memmap_dtype` must be text, got 16");
  CHECK(data(R"({"paths": ["none.npy"], "memmap_dtype": "int16"})") ==
        "evaluators: x: data: `memmap_dtype` must be uint16 or uint32, got \"int16\"");
  for (const char* value : {"null", "{}", R"({"datasets": {"a": []}})"})
    CHECK_THAT(data(value), Catch::Contains("evaluators: x: data: needs token files"));
  for (const char* value : {R"({"paths": "a.npy"})", R"({"datasets": {"a": "b"}})"})
    CHECK_THAT(data(value), Catch::Contains("evaluators: x: data: `paths` must be a list"));
}

}  // namespace olmo::evaluation

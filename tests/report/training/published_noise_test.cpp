#include "report/training/published_noise.h"

#include "core/error.h"
#include "core/files/output_file.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace olmo;
using namespace olmo::report;

namespace {

PublishedNoise read(const std::string& text) {
  const test::TemporaryDirectory folder;
  write_file_atomically(folder / "noise.json", text);
  return read_noise(folder / "noise.json");
}

const char* const kFile = R"({"source": "Example 2025, table 3", "deviations": [
  {"metric": "loss", "parameters": 1e9, "tokens": 2e10, "deviation": 0.003, "runs": 5},
  {"metric": "loss", "parameters": 7e9, "tokens": 2e11, "deviation": 0.001},
  {"metric": "macro", "parameters": 1e9, "tokens": 2e10, "deviation": 0.4}]})";

}  // namespace

TEST_CASE("the published deviation of the nearest size is taken, and none of another size",
          "[report]") {
  const auto noise = read(kFile);
  CHECK(noise.source == "Example 2025, table 3");
  const auto deviation = [&](const char* metric, double parameters, double tokens) {
    const auto* found = deviation_for(noise, metric, parameters, tokens);
    return found ? found->deviation : 0;
  };
  CHECK(deviation("loss", 1.2e9, 3e10) == 0.003);
  CHECK(deviation("loss", 6e9, 1e11) == 0.001);
  CHECK(deviation("macro", 1.2e9, 3e10) == 0.4);
  CHECK(deviation("loss", 1.2e9, 1e12) == 0);
  CHECK(deviation("loss", 1e7, 2e10) == 0);
  CHECK(deviation("loss", 0, 2e10) == 0);
  CHECK(deviation("bpb", 1e9, 2e10) == 0);
}

TEST_CASE("with a published deviation one pair has the interval of two single runs", "[report]") {
  const auto noise = read(kFile);
  const Test pair{.estimate = 0.001, .interval90 = {0.0009, 0.0011}, .equal_bits = true};
  const Test test = with_published_noise(pair, noise.deviations[0], noise.source);
  CHECK(test.noise == "Example 2025, table 3");
  CHECK(test.estimate == 0.001);
  CHECK(test.interval90.high - test.estimate == Approx(2.1318 * 1.41421 * 0.003).epsilon(1e-3));
  CHECK(*test.degrees_of_freedom == 4);
  CHECK(*test.p > 0.5);
  CHECK_FALSE(test.equal_bits);
  const Test known = with_published_noise(pair, noise.deviations[1], noise.source);
  CHECK(known.interval90.high - known.estimate == Approx(1.6449 * 1.41421 * 0.001).epsilon(1e-3));
}

TEST_CASE("a published deviation takes neither a stretch's own noise nor hidden decimals away",
          "[report]") {
  const auto noise = read(kFile);
  Test pair{
      .endpoint = Endpoint::kLoss, .estimate = 0.001, .standard_error = 0.004, .hidden = 0.05};
  const Test test = with_published_noise(pair, noise.deviations[1], noise.source);
  CHECK(*test.standard_error == Approx(std::hypot(0.004, std::sqrt(2.0) * 0.001)));
  CHECK(test.interval90.high - test.estimate ==
        Approx(0.05 + 1.6449 * *test.standard_error).epsilon(1e-3));
  CHECK(*test.p == 1);
  pair.endpoint = Endpoint::kMacro;  // the deviation is of the same instances
  CHECK(*with_published_noise(pair, noise.deviations[1], noise.source).standard_error ==
        Approx(std::sqrt(2.0) * 0.001));
}

TEST_CASE("an unknown key of published noise is named with its file", "[report]") {
  const auto message = [](const char* text) {
    try {
      read(text);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto misspelt = message(R"({"source": "x", "deviations": [{"metric": "loss",
      "parameters": 1, "tokens": 1, "deviation": 1, "run": 5}]})");
  CHECK(misspelt.find(".json: unknown key `run` of one of `deviations`; expected ") !=
        std::string::npos);
  CHECK(misspelt.find("runs") != std::string::npos);
  CHECK(message(R"({"source": "x", "sauce": 1, "deviations": [{"metric": "loss",
      "parameters": 1, "tokens": 1, "deviation": 1}]})")
            .find("unknown key `sauce` of the file") != std::string::npos);
}

TEST_CASE("a file of published noise that is not of the format is refused", "[report]") {
  for (const char* text :
       {"", "[]", R"({"deviations": []})", R"({"source": "", "deviations": [{}]})",
        R"({"source": "x", "deviations": []})", R"({"source": "x", "deviations": [{}]})",
        R"({"source": "x", "deviations": [{"metric": "loss", "parameters": 1, "tokens": 1}]})",
        R"({"source": "x", "deviations": [{"metric": "loss", "parameters": 1, "tokens": 1,
            "deviation": -1}]})",
        R"({"source": "x", "deviations": [{"metric": "loss", "parameters": 1, "tokens": 1,
            "deviation": 1, "runs": 1}]})"})
    CHECK_THROWS_AS(read(text), Error);
  CHECK_THROWS_WITH(read("nonsense"), Catch::Matchers::Contains(":1: is not valid JSON"));
}

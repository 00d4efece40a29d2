#include "evaluation/evaluators.h"

#include <fstream>

#include "core/error.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::evaluation {
namespace {

Evaluators made_of(const std::string& list, const std::filesystem::path& folder) {
  config::TrainConfig config;
  config.evaluators.text = list;
  return {config, std::nullopt, folder};
}

}  // namespace

TEST_CASE("a list of evaluators that is wrong is refused as its config is", "[evaluation]") {
  const test::TemporaryDirectory folder;
  CHECK_THROWS_MATCHES(
      made_of(R"([{"label": "x"}])", folder.path()), Error,
      Catch::Matchers::Message("config: `evaluators.0.data` names no token files in "
                               "`paths` or `datasets`, which `type: lm` evaluates; a task has "
                               "`type: downstream`"));
}

TEST_CASE("an evaluator whose data are not here is left out, and its label told", "[evaluation]") {
  const test::TemporaryDirectory folder;
  const auto made = made_of(R"([{"label": "held", "data": {"paths": ["none.npy"]}},
                                {"label": "piqa", "type": "downstream"}])",
                            folder.path());
  CHECK(made.empty());
  REQUIRE(made.notes().size() == 2);
  CHECK_THAT(made.notes()[0], Catch::Contains("held"));
  CHECK_THAT(made.notes()[1], Catch::StartsWith("evaluator piqa is left out: "));
}

TEST_CASE("a task that nobody knows is refused, also where its tokenizer is not here",
          "[evaluation]") {
  const test::TemporaryDirectory folder;
  CHECK_THROWS_WITH(made_of(R"([{"label": "piqq", "type": "downstream"}])", folder.path()),
                    Catch::Contains("piqa"));
}

TEST_CASE("token files of an evaluator are uint16 if it says nothing, as in OLMo", "[evaluation]") {
  const test::TemporaryDirectory folder;
  const auto file = folder / "tokens.npy";
  std::ofstream(file, std::ios::binary) << std::string(std::size_t{4} * 2048, 0);
  const auto texts = [&](const std::string& dtype) {
    return made_of(
               R"([{"label": "held", "data": {"paths": [")" + file.string() + "\"]" + dtype + "}}]",
               folder.path())
        .memory()
        .rows;
  };
  CHECK(texts("") == texts(R"(, "memmap_dtype": "uint16")"));
  CHECK(texts("") == 2 * texts(R"(, "memmap_dtype": "uint32")"));
}

}  // namespace olmo::evaluation

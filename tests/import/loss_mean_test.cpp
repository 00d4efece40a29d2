#include "import/loss_mean.h"

#include "text_log.h"

#include "support/catch.h"

using namespace olmo;
using namespace olmo::import;
using namespace olmo::test;

namespace {

std::optional<LossMean> mean_of(const std::string& header, const std::string& config = "{}",
                                const StepLogOptions& options = {}) {
  std::string row = "1";
  for (const char c : header)
    if (c == ',') row += ",1";
  return loss_mean_of(Log(header + "\n" + row + "\n", "log.csv").read(options), config);
}

}  // namespace

TEST_CASE("trainers whose names tell that they divide by labels are known by them", "[import]") {
  CHECK(mean_of("step,train/CE loss") == LossMean::kLabels);
  CHECK(mean_of("step,my run - train/CE loss") == LossMean::kLabels);
  CHECK(mean_of("step,lm loss") == LossMean::kLabels);
  CHECK(mean_of("step,loss,learning_rate,epoch") == LossMean::kLabels);
  CHECK(mean_of("step,train/loss,train/learning_rate,train/epoch") == LossMean::kLabels);
  CHECK(loss_mean_of(Log("step:  1  loss: 12.2  grad_norm: 1.3\nstep:  2  loss: 12.1  grad_norm: "
                         "1.3\n")
                         .read(),
                     "{}") == LossMean::kLabels);
}

TEST_CASE("OLMo's name is told apart by the keys of the config that came with another mean",
          "[import]") {
  const std::string header = "step,train/CrossEntropyLoss";
  CHECK(mean_of(header, R"({"distributed_strategy": null, "python_profiling": false})") ==
        LossMean::kTokens);
  CHECK(mean_of(header, R"({"python_profiling": false})") == LossMean::kLabels);
  CHECK_FALSE(mean_of(header, R"({"model": {"d_model": 64}})"));
}

TEST_CASE("a log with both means, as exports of ours, has this program's loss", "[import]") {
  CHECK(mean_of("step,train/CrossEntropyLoss,train/CrossEntropyLossPerLabel") == LossMean::kTokens);
}

TEST_CASE("a loss whose name anyone may have taken is a mean over nobody knows what", "[import]") {
  CHECK_FALSE(mean_of("step,loss"));
  CHECK_FALSE(mean_of("step,ce_loss"));
  CHECK_FALSE(mean_of("step,mine", "{}", {.columns = {{"loss", "mine"}}}));
}

TEST_CASE("trainers that log the mean since the row before are known by their names", "[import]") {
  const auto span_of = [](const std::string& header, const std::string& row) {
    return loss_span_of(Log(header + "\n" + row + "\n", "log.csv").read());
  };
  CHECK(span_of("step,loss,learning_rate,epoch", "1,2,3,4") == LossSpan::kInterval);
  CHECK(span_of("step,train/loss,train/learning_rate,train/epoch", "1,2,3,4") ==
        LossSpan::kInterval);
  CHECK(loss_span_of(Log(" iteration 10/ 100 | lm loss: 1.09E+01 | grad norm: 2.1 |\n").read()) ==
        LossSpan::kInterval);
  CHECK(span_of("step,train/CE loss", "1,2") == LossSpan::kStep);
  CHECK(span_of("step,lm loss", "1,2") == LossSpan::kStep);
  CHECK_FALSE(span_of("step,train/loss", "1,2"));
  CHECK_FALSE(span_of("step,loss", "1,2"));
}

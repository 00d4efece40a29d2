#include "import/console.h"

#include "text_log.h"

#include "support/catch.h"

using namespace olmo::import;
using namespace olmo::test;

TEST_CASE("torchtitan's console is read through its colours", "[import]") {
  const Log log(
      "+ torchrun train.py, with arguments\n"
      "[rank0]:[titan] 2026-01-01 - root - INFO - Training starts at step 1\n"
      "[rank0]:[titan] 2026-01-01 - root - INFO - \x1b[31mstep:  1  \x1b[32mloss: 12.2713  "
      "\x1b[38;5;214mgrad_norm:  1.3  \x1b[33mmemory:  0.77GiB(0.97%)  \x1b[34mtps: 1,234  "
      "\x1b[36mtflops: 0.08  \x1b[35mmfu: 0.03%\x1b[39m\n"
      "[rank0]:[titan] 2026-01-01 - root - INFO - validate step:  1  loss: 99.0  "
      "memory:  0.50GiB(0.63%)  tps: 999\n"
      "[rank0]:[titan] 2026-01-01 - root - INFO - step: 10  loss:  nan  grad_norm:  1.2\n");
  const auto read = log.read();
  CHECK(read.format == LogFormat::kTorchtitan);
  CHECK(steps(read) == std::vector<std::int64_t>{1, 10});
  CHECK(read.steps[0].loss == 12.2713);
  CHECK(read.steps[0].grad_norm == 1.3);
  CHECK(read.steps[0].tokens_per_second_per_device == 1234);
  CHECK_FALSE(read.steps[0].tokens_per_second);
  CHECK_FALSE(read.steps[1].loss);
  REQUIRE(read.metric_names == std::vector<std::string>{"validation_metrics/global_avg_loss"});
  CHECK((read.metrics.at(0).position == 1 && read.metrics.at(0).value == 99));
}

TEST_CASE("OLMo's console is read block by block", "[import]") {
  const Log log(
      "2026-01-01\thost:0\tolmo.train:967\tINFO\tPre-train system metrics\n"
      "    System/Peak GPU Memory (MB)=3,000\n"
      "2026-01-01\thost:0\tolmo.train:967\tINFO\t[step=9/739328,epoch=0]\n"
      "2026-01-01\thost:0\tolmo.train:967\tINFO\t[step=10/739328,epoch=0]\n"
      "    optim/total_grad_norm=1.234\n"
      "    train/CrossEntropyLoss=11.20\n"
      "    throughput/total_tokens=41,943,040\n"
      "    throughput/device/tokens_per_second=9,001   train.py:967\n"
      "2026-01-01\thost:0\tolmo.train:967\tINFO\t[eval_step=1/2]\n"
      "    train/CrossEntropyLoss=99\n");
  const auto read = log.read();
  CHECK(read.format == LogFormat::kOlmo);
  REQUIRE(read.steps.size() == 1);
  CHECK(read.steps[0].step == 10);
  CHECK(read.steps[0].loss == 11.20);
  CHECK(read.steps[0].grad_norm == 1.234);
  CHECK(read.steps[0].tokens == 41943040);
  CHECK(read.steps[0].tokens_per_second_per_device == 9001);
  CHECK_FALSE(read.steps[0].tokens_per_second);
  CHECK(read.skipped == 1);
}

TEST_CASE("OLMo's console is read from a text that has lost its indentation", "[import]") {
  const Log log(
      "olmo.train:816\tINFO\t[step=817846/1430511]\n"
      "train/CrossEntropyLoss=2.351\n"
      "throughput/total_tokens=1,715,147,374,592      train.py:816\n"
      "olmo.train:816\tINFO\t[step=817847/1430511]\n"
      "  train/CrossEntropyLoss=2.341\n"
      "saved to /checkpoints/lr=4\n"
      "runs/lr=high\n");
  const auto read = log.read();
  CHECK(losses(read) == std::vector<double>{2.351, 2.341});
  CHECK(read.steps.at(0).tokens == 1715147374592);
  CHECK(read.metric_names.empty());
}

TEST_CASE("ranks and nodes may stand before each line of OLMo's console", "[import]") {
  // srun --label, torchrun --tee 3, and the script that starts OLMo on LUMI.
  for (const std::string first : {"0: ", "[default0]:", "nid005042:0 out: "}) {
    INFO(first);
    const Log log(first + "2026-01-01\thost:0\tINFO\t[step=10/20,epoch=0]\n" + first +
                  "    optim/total_grad_norm=1.234\n"
                  "1: 2026-01-01\thost:1\tINFO\t[step=10/20,epoch=0]\n"
                  "2: 2026-01-01\thost:2\tINFO\t[step=9/20,epoch=0]\n"  // late
                  "1: 2026-01-01\thost:1\tINFO\tsomething else    that is = not a number\n" +
                  first + "    train/CrossEntropyLoss=11.20\n" + first +
                  "2026-01-01\thost:0\tINFO\tpiqa\n" + first +
                  "    eval/downstream/piqa_acc=0.5100\n" + first +
                  "2026-01-01\thost:0\tINFO\t[step=11/20,epoch=0]\n" + first +
                  "    train/CrossEntropyLoss=10.20\n");
    const auto read = log.read();
    CHECK(losses(read) == std::vector<double>{11.20, 10.20});
    CHECK(read.steps.at(0).grad_norm == 1.234);
    CHECK(read.metrics.at(0).value == 0.51);
  }
}

TEST_CASE("a step that OLMo trained again after a crash is told again", "[import]") {
  const Log log(
      "INFO\t[step=10/20,epoch=0]\n"
      "    train/CrossEntropyLoss=11.20\n"
      "INFO\t[step=10/20,epoch=0]\n"
      "    train/CrossEntropyLoss=11.25\n");
  CHECK(losses(log.read()) == std::vector<double>{11.25});
}

TEST_CASE("evaluations in OLMo's console are metrics of the step before them", "[import]") {
  const Log log(
      "INFO\tpiqa\n"
      "    eval/downstream/piqa_acc=0.4900\n"
      "INFO\t[step=10/20,epoch=0]\n"
      "    train/CrossEntropyLoss=11.20\n"
      "INFO\tRunning evaluation for 'piqa'...\n"
      "INFO\t[eval_step=1/1]\n"
      "INFO\tpiqa\n"
      "    eval/downstream/piqa_acc=0.5100\n"
      "INFO\tc4-validation\n"
      "    eval/c4-validation/CrossEntropyLoss=10.51\n"
      "    eval/c4-validation/Perplexity=36,680\n"
      "INFO\t[step=20/20,epoch=0]\n"
      "    train/CrossEntropyLoss=10.20\n"
      "INFO\tpiqa\n"
      "    eval/downstream/piqa_acc=0.5300\n");
  const auto read = log.read();
  CHECK(losses(read) == std::vector<double>{11.20, 10.20});
  CHECK(read.metric_names == std::vector<std::string>{"eval/downstream/piqa_acc",
                                                      "eval/c4-validation/CrossEntropyLoss",
                                                      "eval/c4-validation/Perplexity"});
  REQUIRE(read.metrics.size() == 4);
  CHECK((read.metrics[0].position == 10 && read.metrics[0].value == 0.51));
  CHECK((read.metrics[2].position == 10 && read.metrics[2].value == 36680));
  CHECK((read.metrics[3].position == 20 && read.metrics[3].value == 0.53));
  CHECK(read.skipped == 4);
  CHECK(read.unplaced == 1);  // before the first step
}

TEST_CASE("Megatron's console is read, whatever stands before its lines", "[import]") {
  const Log log(
      "using world size: 8, data-parallel size: 8\n"
      "  lr .............................................. 0.0003\n"
      "training ...\n"
      "7: [2026-01-01 10:00:00] iteration        1/    4000 | consumed samples:           64 | "
      "elapsed time per iteration (ms): 4000.5 | throughput per GPU (TFLOP/s/GPU): 40.4 | learning "
      "rate: 1.500000E-06 | global batch size:    64 | lm loss: 1.192634E+01 | loss scale: 1.0 | "
      "grad norm: 5.960 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
      " iteration        2/    4000 | consumed samples: 128 | consumed tokens: 262144 | elapsed "
      "time per iteration (ms): 900.0/2450.2 | learning rate: 3.0E-06 | lm loss: nan | grad norm: "
      "2.5 | number of nan iterations: 1 |\n"
      "saving checkpoint at iteration       2 to /somewhere\n");
  const auto read = log.read();
  CHECK(read.format == LogFormat::kMegatron);
  CHECK(steps(read) == std::vector<std::int64_t>{1, 2});
  CHECK(read.steps[0].loss == 11.92634);
  CHECK_FALSE(read.steps[1].loss);
  CHECK(read.steps[0].lr == 1.5e-6);
  CHECK(read.steps[0].grad_norm == 5.96);
  CHECK(read.steps[0].seconds == 4000.5 * 1e-3);
  CHECK(read.steps[1].seconds == 900.0 * 1e-3);
  CHECK((!read.steps[0].tokens && read.steps[1].tokens == 262144));
}

TEST_CASE("NeMo's console has the form of Megatron's, and a step of its own", "[import]") {
  const Log log(
      "Training epoch 1, iteration 0/249 | lr: 1.961e-06 | global_batch_size: 8 | global_step: 250 "
      "| reduced_train_loss: 1.315 | train_step_timing in s: 7.126\n"
      "Training epoch 1, iteration 1/249 | lr: 3.922e-06 | global_batch_size: 8 | global_step: 251 "
      "| reduced_train_loss: 1.25 | train_step_timing in s: 0.5\n");
  const auto read = log.read();
  CHECK(steps(read) == std::vector<std::int64_t>{250, 251});
  CHECK(losses(read) == std::vector<double>{1.315, 1.25});
  CHECK((read.steps[1].lr == 3.922e-06 && read.steps[1].seconds == 0.5));
}

TEST_CASE("evaluations in Megatron's console are metrics of their step", "[import]") {
  const Log log(
      " iteration 10/ 20 | consumed samples: 640 | lm loss: 2.5E+00 |\n"
      "(min, max) time across ranks (ms):\n"
      "----------------------------------------------------------------\n"
      " validation loss at iteration 10 | lm loss value: 2.400000E+00 | lm loss PPL: 1.102318E+01 "
      "| \n"
      " validation loss at iteration 20 on test set | lm loss value: 2.3E+00 | lm loss PPL: "
      "9.9E+00 "
      "|\n");
  const auto read = log.read();
  CHECK(losses(read) == std::vector<double>{2.5});
  CHECK(read.metric_names ==
        std::vector<std::string>{"lm loss validation", "validation/on test set/lm loss"});
  REQUIRE(read.metrics.size() == 2);
  CHECK((read.metrics[0].position == 10 && read.metrics[0].value == 2.4));
  CHECK((read.metrics[1].position == 20 && read.metrics[1].value == 2.3));
}

TEST_CASE("a line that speaks of iterations is no step of Megatron's", "[import]") {
  for (const char* line :
       {"validation loss at iteration 10 | lm loss value: 2.4 |", "iteration 3 of 4 | loss: 1",
        "number of nan iterations: 0 | 1/2 |", "iteration x/10 | lm loss: 1 |",
        "iteration 3/10 without bars", "saving checkpoint at iteration 5 to a/b"})
    CHECK_FALSE(console_of(line));
  CHECK(console_of("\x1b[32m iteration 3/ 10 |\x1b[0m lm loss: 1 |") == LogFormat::kMegatron);
}

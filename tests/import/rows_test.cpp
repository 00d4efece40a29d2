// What the logs of other trainers really hold: metrics of evaluations, throughput of a device,
// tokens without steps, rows of pandas, files of several jobs, and files that are no text.
#include <fstream>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "import/columns.h"
#include "import/log.h"
#include "import/steps.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace olmo;
using namespace olmo::import;
using namespace olmo::store;
using olmo::test::TemporaryDirectory;

namespace {

class Logs {
 public:
  [[nodiscard]] StepLog read(const std::string& text, const StepLogOptions& options = {},
                             const std::string& name = "other.log") const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return read_step_log(folder_ / name, options);
  }
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const {
    return folder_ / name;
  }

 private:
  TemporaryDirectory folder_;
};

/// "name@position=value …" in the order of the log.
std::string metrics_of(const StepLog& log) {
  std::string text;
  for (const auto& metric : log.metrics)
    text += (text.empty() ? "" : " ") + log.metric_names[metric.name] + "@" +
            std::to_string(metric.position) + "=" + nlohmann::json(metric.value).dump();
  return text;
}

/// "step:loss …"
std::string curve_of(const StepLog& log) {
  std::string text;
  for (const auto& row : log.steps)
    text += (text.empty() ? "" : " ") + std::to_string(row.position) + ":" +
            (row.loss ? nlohmann::json(*row.loss).dump() : "-");
  return text;
}

/// Which of these columns is taken as `target`.
std::string taken(const char* target, std::vector<std::string> columns) {
  columns.insert(columns.end(), {"step", "some loss"});
  ColumnMap wanted;
  if (std::string_view(target) != "loss") wanted["loss"] = "some loss";
  const ColumnMap found = find_columns(columns, wanted, "log");
  const auto column = found.find(target);
  return column == found.end() ? "" : column->second;
}

}  // namespace

TEST_CASE("the numbers of a step have the names that each trainer gives them", "[import]") {
  // Composer, as MosaicML's llm-foundry logs
  CHECK(taken("loss", {"loss/train/total", "metrics/eval/LanguageCrossEntropy"}) ==
        "loss/train/total");
  CHECK(taken("loss", {"loss/train/total", "metrics/train/LanguageCrossEntropy"}) ==
        "metrics/train/LanguageCrossEntropy");
  CHECK(taken("grad_norm", {"l2_norm/grad/global", "l2_norm/moment/global"}) ==
        "l2_norm/grad/global");
  CHECK(taken("lr", {"lr-DecoupledAdamW/group0"}) == "lr-DecoupledAdamW/group0");
  CHECK(taken("tokens_per_second",
              {"throughput/tokens_per_sec", "throughput/device/tokens_per_sec"}) ==
        "throughput/tokens_per_sec");
  CHECK(taken("tokens_per_second_per_device", {"throughput/device/tokens_per_sec"}) ==
        "throughput/device/tokens_per_sec");
  CHECK(taken("tokens", {"time/token"}).empty());
  // NeMo and Lightning
  CHECK(taken("loss", {"reduced_train_loss", "val_loss"}) == "reduced_train_loss");
  CHECK(taken("seconds", {"train_step_timing in s"}) == "train_step_timing in s");
  CHECK(taken("loss", {"train_loss_epoch", "train_loss_step"}) == "train_loss_step");
  CHECK(taken("lr", {"lr-AdamW"}) == "lr-AdamW");
  // Megatron, and DeepSpeed's
  CHECK(taken("loss", {"lm loss vs samples", "lm loss", "lm loss validation"}) == "lm loss");
  CHECK(taken("loss", {"lm-loss-training/lm loss vs samples", "lm-loss-training/lm loss"}) ==
        "lm-loss-training/lm loss");
  CHECK(taken("grad_norm", {"grad-norm/grad-norm vs samples", "grad-norm/grad-norm"}) ==
        "grad-norm/grad-norm");
  CHECK(taken("lr", {"learning-rate/learning-rate"}) == "learning-rate/learning-rate");
  CHECK(taken("seconds", {"iteration-time/iteration-time"}) == "iteration-time/iteration-time");
}

TEST_CASE("evaluations' columns are metrics by the names of many trainers", "[import]") {
  for (const char* name :
       {"eval/downstream/arc_easy_acc", "eval/arc_easy_len_norm", "my run - eval/piqa_acc",
        "eval/perplexity/c4_en-validation/CrossEntropyLoss", "validation_metrics/loss", "eval_loss",
        "val/loss", "val_loss", "valid_loss", "lm loss validation", "arc_easy_acc", "hellaswag_bpb",
        "eval.piqa.acc", "throughput/device/batches_per_second", "mmlu_stem_ce_loss", "Eval/Loss"})
    CHECK(is_metric_name(name));
  for (const char* name : {"train/CrossEntropyLoss", "train/loss", "loss", "optim/total_grad_norm",
                           "System/gpu.0.temp", "_runtime", "epoch", "retrieval/x", "evaluate",
                           "eval/piqa_acc__MIN", "lossval"})
    CHECK_FALSE(is_metric_name(name));
  CHECK(matches_any("run - optim/clip", {"optim/*"}));
  CHECK_FALSE(matches_any("optimal", {"optim/*"}));
}

TEST_CASE("W&B's eval columns are kept at their steps, those of other runs are not", "[import]") {
  const Logs logs;
  const auto read = logs.read(
      "Step,a - train/loss,a - eval/arc_easy_acc,b - eval/arc_easy_acc,a - optim/x,eval/empty\n"
      "10,3.5,,0.9,1,\n"
      "10,,0.25,0.9,1,\n"
      "20,3.25,,0.9,2,\n"
      "20,,0.5,0.9,nan,\n",
      {.keep = {"optim/*"}}, "w.csv");
  CHECK(curve_of(read) == "10:3.5 20:3.25");
  CHECK(metrics_of(read) ==
        "eval/arc_easy_acc@10=0.25 optim/x@10=1.0 eval/arc_easy_acc@20=0.5 optim/x@20=2.0");
  CHECK(read.ignored == std::vector<std::string>{"b - eval/arc_easy_acc", "eval/empty"});
  CHECK(read.skipped == 2);
}

TEST_CASE("throughput of a device is the run's only if the devices are counted", "[import]") {
  const Logs logs;
  const std::string text =
      "{\"step\": 1, \"loss\": 3, \"throughput/device/tokens_per_second\": 1000.5}\n";
  const auto alone = logs.read(text);
  CHECK(alone.steps[0].tokens_per_second_per_device == 1000.5);
  CHECK_FALSE(alone.steps[0].tokens_per_second);
  CHECK(logs.read(text, {.devices = 64}).steps[0].tokens_per_second == 64032);
  const auto both = logs.read("step,loss,tokens_per_second,tps\n1,3,5000,1000\n", {.devices = 4});
  CHECK(both.steps[0].tokens_per_second == 5000);  // what the log says itself
}

TEST_CASE("the time of a step is a throughput where its tokens are given", "[import]") {
  const Logs logs;
  const std::string text = "step,loss,step_time\n1,3,0.5\n2,2,0\n3,1,\n";
  const auto read = logs.read(text, {.tokens_per_step = 1000});
  CHECK(read.steps[0].tokens_per_second == 2000);
  CHECK((!read.steps[1].tokens_per_second && !read.steps[2].tokens_per_second));
  CHECK_FALSE(logs.read(text).steps[0].tokens_per_second);
}

TEST_CASE("what rows without a loss tell of a step is that step's", "[import]") {
  // As Lightning's CSVLogger has it: a row for each call, the learning rate's before the loss's.
  const auto read = Logs().read(
      "step,lr-AdamW,train_loss_step,grad_norm\n0,0.5,,\n0,,4,\n0,,,7\n1,0.25,,\n1,,3,\n2,,2,\n");
  REQUIRE(curve_of(read) == "0:4.0 1:3.0 2:2.0");
  CHECK((read.steps[0].lr == 0.5 && read.steps[0].grad_norm == 7.0));
  CHECK((read.steps[1].lr == 0.25 && !read.steps[1].grad_norm));
  CHECK_FALSE(read.steps[2].lr);
}

TEST_CASE("a restart supersedes what rows without a loss told, too", "[import]") {
  const auto read = Logs().read(
      "step,lr,loss,grad_norm\n1,9,,\n1,,4,\n2,9,,\n2,,3,\n2,,,8\n"
      "1,0.5,,\n1,,3.5,\n2,0.5,,\n2,,2.5,\n");
  REQUIRE(curve_of(read) == "1:3.5 2:2.5");
  CHECK((read.steps[0].lr == 0.5 && read.steps[1].lr == 0.5));
  CHECK_FALSE(read.steps[1].grad_norm);
}

TEST_CASE("nested objects of JSON lines are columns by their paths, media are none", "[import]") {
  const Logs logs;
  const auto read =
      logs.read(R"({"step": 1, "train": {"loss": 3}, "eval": {"arc_easy": {"acc": 0.25, "plot": )"
                R"({"_type": "table-file", "size": 9}}}, "list": [1]})"
                "\n");
  CHECK(read.columns.at("loss") == "train/loss");
  CHECK(metrics_of(read) == "eval/arc_easy/acc@1=0.25");
  CHECK(read.ignored.empty());
}

TEST_CASE("TensorBoard's export of a scalar is read once it is named the loss", "[import]") {
  const Logs logs;
  const std::string text = "Wall time,Step,Value\n1700000000.5,1,3\n1700000001.5,2,2\n";
  CHECK_THROWS_WITH(logs.read(text, {}, "run-x-tag-loss.csv"),
                    Catch::EndsWith("it has 'Wall time', 'Step', 'Value': name one with --map "
                                    "loss=COLUMN"));
  const auto read = logs.read(text, {.columns = {{"loss", "Value"}}}, "run-x-tag-loss.csv");
  CHECK(curve_of(read) == "1:3.0 2:2.0");
  CHECK(read.begin_time == 1700000000.5);
}

TEST_CASE("the mean loss that ends Hugging Face's log is not its curve", "[import]") {
  const auto log = Logs().read(
      R"({"loss": 5.0, "grad_norm": 1.5, "learning_rate": 0.001, "epoch": 0.5, "step": 10})"
      "\n"
      R"({"loss": 4.5, "grad_norm": 1.25, "learning_rate": 0.0005, "epoch": 1.0, "step": 20})"
      "\n"
      R"({"train_runtime": 9.5, "train_loss": 4.75, "epoch": 1.0, "step": 20})");
  CHECK(curve_of(log) == "10:5.0 20:4.5");
}

TEST_CASE("a trainer's own step goes before W&B's count of log calls", "[import]") {
  const Logs logs;
  CHECK(curve_of(logs.read("_step,step,loss\n0,10,3\n1,20,2\n")) == "10:3.0 20:2.0");
  CHECK(curve_of(logs.read("_step,train/global_step,step,loss\n0,100,10,3\n")) == "100:3.0");
  CHECK(logs.read("_step,loss\n5,3\n").columns.at("step") == "_step");
}

TEST_CASE("a log may tell tokens and no steps", "[import]") {
  const Logs logs;
  const std::string text = "num_tokens_seen,loss,eval/x\n128,3,\n256,2,0.5\n";
  const auto read = logs.read(text);
  CHECK_FALSE(read.steps_known);
  CHECK(curve_of(read) == "128:3.0 256:2.0");
  CHECK_FALSE(read.steps[0].step);
  CHECK(read.steps[1].tokens == 256);
  CHECK(metrics_of(read) == "eval/x@256=0.5");
  const auto derived = logs.read("tokens,loss\n128,3\n256,2\n", {.tokens_per_step = 64});
  CHECK(derived.steps_known);
  CHECK(curve_of(derived) == "2:3.0 4:2.0");
  CHECK_THROWS_WITH(logs.read("tokens,loss\n100,3\n", {.tokens_per_step = 64}),
                    Catch::EndsWith("other.log:2: has 100 tokens, which is no multiple of the 64 "
                                    "that a step has by --tokens-per-step"));
  CHECK_THROWS_WITH(logs.read("tokens,loss\n1,3\n,2\n"),
                    Catch::EndsWith("other.log:3: has a loss, but no tokens"));
}

TEST_CASE("units are converted by the factor that --map gives", "[import]") {
  const Logs logs;
  const auto read = logs.read("step,Tokens (B),ms,loss\n1,0.0041943,250,3\n",
                              {.columns = {{"tokens", "Tokens (B)*1e9"}, {"seconds", "ms*0.001"}}});
  CHECK(read.steps[0].tokens == 4194300);
  CHECK(read.steps[0].seconds == 0.25);
  CHECK(logs.read("step,a*2,loss\n1,5,3\n", {.columns = {{"lr", "a*2"}}}).steps[0].lr == 5);
}

TEST_CASE("steps and tokens are counted from where --map says", "[import]") {
  const Logs logs;
  const std::string text = "step,loss,T\n0,3,0\n1,2,2\n";
  const auto read = logs.read(text, {.columns = {{"step", "step+1"}, {"tokens", "T*1e+1-0"}}});
  CHECK(curve_of(read) == "1:3.0 2:2.0");
  CHECK((read.steps[1].tokens == 20 && read.columns.at("tokens") == "T"));
  CHECK(logs.read(text, {.columns = {{"tokens", "T*1e+1"}}}).steps[1].tokens == 20);
  CHECK(logs.read(text, {.columns = {{"tokens", "T+5"}}}).steps[1].tokens == 7);
  CHECK(curve_of(logs.read("step+1,loss\n1,3\n", {.columns = {{"step", "step+1"}}})) == "1:3.0");
  CHECK_THROWS_AS(logs.read(text, {.columns = {{"step", "step-1"}}}), Error);  // below 0
  CHECK_THROWS_AS(logs.read(text, {.columns = {{"loss", "loss+1"}}}), Error);  // no count
  CHECK_THROWS_AS(logs.read(text, {.columns = {{"step", "step+-1"}}}), Error);
}

TEST_CASE("what pandas and cut-up exports leave in a log is no row of a step", "[import]") {
  const Logs logs;
  const auto read = logs.read(
      "\xEF\xBB\xBFstep,loss,lr,eval/x\r\n"
      "1,3,0.1,NaN\n"
      "NaN,NaN,NaN,NaN\r\n"
      "1,NaN,NaN,0.5\n"
      "step,loss,lr,eval/x\n"
      "2,NaN,0.1,NaN\r\n"
      "4,2,0.1,NaN\n");
  CHECK(curve_of(read) == "1:3.0 2:- 4:2.0");  // step 2 has a learning rate: its loss was NaN
  CHECK(metrics_of(read) == "eval/x@1=0.5");
  CHECK(read.headers == 1);
  CHECK(read.skipped == 2);
  const auto json =
      logs.read("\xEF\xBB\xBF{\"step\": 1, \"loss\": 3}\r\n\r\n{\"step\": 2, \"loss\": 2}");
  CHECK(json.format == LogFormat::kJsonl);
  CHECK(curve_of(json) == "1:3.0 2:2.0");
}

TEST_CASE("the files of a run's jobs are one curve, a later one in place of what it repeats",
          "[import]") {
  const Logs logs;
  const auto job = [&](const std::string& name, const std::string& rows,
                       const std::string& header = "step,loss,eval/x\n") {
    return logs.read(header + rows, {}, name);
  };
  std::vector<StepLog> files = {job("b.csv", "3,30,0.3\n4,40,0.4\n"),
                                job("a.csv", "1,1,0.1\n2,2,\n3,3,0.5\n")};
  CHECK(join_step_logs(files, false) == FileOrder::kSteps);
  CHECK(curve_of(files[0]) == "1:1.0 2:2.0");
  CHECK(metrics_of(files[0]) == "eval/x@1=0.1");
  CHECK(curve_of(files[1]) == "3:30.0 4:40.0");
  REQUIRE(files[1].restarts.size() == 1);
  CHECK(files[1].restarts[0].message == "begins at step 3: 1 row of " + (logs / "a.csv").string() +
                                            ", from step 3 to step 3, is superseded");

  // A run that went back and did not come as far again: only times or the user tell.
  const auto nested = [&] {
    return std::vector<StepLog>{job("long.csv", "1,1,\n5,5,\n"),
                                job("short.csv", "2,20,\n3,30,\n")};
  };
  files = nested();
  CHECK_THROWS_WITH(join_step_logs(files, false), Catch::Contains("with --as-given"));
  files = nested();
  CHECK(join_step_logs(files, true) == FileOrder::kGiven);
  CHECK(curve_of(files[0]) == "1:1.0");
  const std::string timed = "_timestamp,step,loss\n";
  files = {job("s.csv", "200,2,20\n201,3,30\n", timed), job("l.csv", "100,1,1\n101,5,5\n", timed)};
  CHECK(join_step_logs(files, false) == FileOrder::kTime);
  CHECK(curve_of(files[0]) == "1:1.0");
  CHECK(curve_of(files[1]) == "2:20.0 3:30.0");

  RecordDatabase records(logs / "run.db", OpenMode::kCreate);
  (void)write_step_logs(
      records, files,
      {.name = "jobs", .config = "{}", .seed = 0, .tags = {}, .command_line = "import"});
  std::string kinds;
  records.query("SELECT attempt || kind FROM events", {},
                [&](const auto&, const auto& row) { kinds += std::get<std::string>(row[0]); });
  CHECK(kinds == "2resume");
  std::string attempts;
  records.query("SELECT attempt, start_step FROM attempts ORDER BY attempt", {},
                [&](const auto&, const auto& row) {
                  attempts += std::to_string(std::get<std::int64_t>(row[0])) + ":" +
                              std::to_string(std::get<std::int64_t>(row[1])) + " ";
                });
  CHECK(attempts == "1:0 2:1 ");
}

TEST_CASE("files that are not of one run are refused", "[import]") {
  const Logs logs;
  const auto refused = [](std::vector<StepLog> files) {
    try {
      join_step_logs(files, false);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kUsage);
      return std::string(error.what());
    }
    return std::string();
  };
  const auto a = logs.read("step,loss\n1,1\n", {}, "a");
  CHECK_THAT(refused({a, a}), Catch::EndsWith("is given twice"));
  CHECK_THAT(refused({a, logs.read("step,train/loss\n2,1\n", {}, "b")}),
             Catch::Contains("its loss is 'train/loss', that of"));
  CHECK_THAT(refused({a, logs.read("tokens,loss\n2,1\n", {}, "c")}),
             Catch::Contains("c: tells tokens and no step, and others of the files tell steps"));
  CHECK_THAT(refused({a, logs.read("step,loss\n1,2\n", {}, "d")}),
             Catch::Contains("the steps do not tell which of the two was later"));
}

TEST_CASE("files that are no text are refused with the way to convert them", "[import]") {
  const auto refused = [](const std::string& bytes, const std::string& file) {
    try {
      refuse_foreign_log(bytes, file);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kInput);
      return std::string(error.what());
    }
    return std::string();
  };
  // This very command was run with pandas 3.1.1 and pyarrow 26.0.1; the CSV holds every digit.
  CHECK_THAT(refused("PAR1....PAR1", "w/0000.parquet"),
             Catch::EndsWith("python3 -c \"import pandas; pandas.read_parquet('w/0000.parquet')"
                             ".to_csv('0000.csv', index=False)\""));
  CHECK_THAT(refused("PAR1", "a';import os.parquet"), Catch::Contains("'history.parquet'"));
  CHECK_THAT(refused(std::string("SQLite format 3\0", 16), "run.db"),
             Catch::Contains("is a database"));
  CHECK_THAT(refused("\x1f\x8b\x08", "log.gz"), Catch::EndsWith("unpack it first"));
  CHECK_THAT(refused(std::string("\xff\xfe"
                                 "s\0t\0",
                                 6),
                     "log.csv"),
             Catch::Contains("UTF-16"));
  CHECK_THAT(refused(std::string("a\0b", 3), "log"), Catch::Contains("zero bytes"));
  CHECK(refused("step,loss\n1,2\n", "log.csv").empty());
}

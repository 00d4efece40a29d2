#include "core/files/input_file.h"
#include "exports/export_fixture.h"
#include "exports/tools.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::exports;
using namespace olmo::test;
namespace fs = std::filesystem;

namespace {

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

}  // namespace

TEST_CASE("MLflow's files hold a line a number, and parameters and tags as texts", "[exports]") {
  const TemporaryDirectory folder;
  const auto written = write_mlflow(a_source(), folder.path(), "project");
  CHECK(read_file(written.path / "metrics/train/CrossEntropyLoss") ==
        "1767323046000 2.5 1\n1767323047000 nan 2\n");
  CHECK(read_file(written.path / "params/model.d_model") == "64");
  CHECK(read_file(written.path / "tags/mlflow.runName") == "tiny");
  CHECK(read_file(written.path / "meta.yaml").find("status: 3\n") != std::string::npos);
  CHECK(read_file(written.path.parent_path() / "meta.yaml").find("name: 'project'\n") !=
        std::string::npos);
}

TEST_CASE("MLflow is told how a run ended", "[exports]") {
  const TemporaryDirectory folder;
  const auto status_of = [&](const std::string& status) {
    auto source = a_source();
    source.facts.status = status;
    const auto meta =
        read_file(write_mlflow(source, folder / status, "project").path / "meta.yaml");
    return meta.substr(meta.find("status: ") + 8, 1);
  };
  CHECK(status_of("running") == "1");
  CHECK(status_of("stopped") == "5");
  CHECK(status_of(kKilled) == "5");
  CHECK(status_of("diverged") == "4");
}

TEST_CASE("a parameter of MLflow is cut between characters", "[exports]") {
  const TemporaryDirectory folder;
  auto source = a_source();
  source.facts.settings.push_back({"data.paths", "x" + repeated("é", 4000)});
  const auto written = write_mlflow(source, folder.path(), "project");
  CHECK(read_file(written.path / "params/data.paths") == "x" + repeated("é", 2999));
}

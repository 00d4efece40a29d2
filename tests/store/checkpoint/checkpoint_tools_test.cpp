// The file as other programs see it.
#include <cstdlib>

#include <ATen/ATen.h>

#include "store/checkpoint_fixture.h"
#include "support/catch.h"
#include "support/process.h"

namespace olmo::store::test {
using olmo::test::Finished;
using olmo::test::run;

TEST_CASE("h5dump shows names, attributes and values", "[store]") {
  if (run("h5dump --version 2>&1").code != 0) {
    WARN("h5dump (Debian package hdf5-tools) is not installed");
    return;
  }
  const TempFolder folder;
  auto contents = example();
  contents.model.push_back({"pi", at::full({2}, 3.25, at::kFloat)});
  const auto file = (save_checkpoint(folder.path(), contents).path / "checkpoint.h5").string();
  const Finished attributes = run("h5dump -A " + file);
  CHECK(attributes.code == 0);
  for (const char* expected :
       {"DATASET \"transformer.blocks.0.att_proj.weight\"", "GROUP \"exp_avg_sq\"",
        "H5T_IEEE_F32LE", "ATTRIBUTE \"sha256\"", "ATTRIBUTE \"complete\"",
        "\"olmo-harness-checkpoint\"", "ATTRIBUTE \"start_index\""}) {
    INFO(expected);
    CHECK(attributes.output.find(expected) != std::string::npos);
  }
  CHECK(run("h5dump -d /model/pi " + file).output.find("3.25, 3.25") != std::string::npos);
  CHECK(run("h5dump -d /config " + file).output.find("run_name") != std::string::npos);
}

// Needs a Python with h5py: OLMO_PYTHON=… olmo_tests "[.h5py]"
TEST_CASE("h5py reads every dataset, digest and document", "[.h5py]") {
  const char* python = std::getenv("OLMO_PYTHON");
  const TempFolder folder;
  auto contents = example();
  contents.model.push_back({"empty", at::empty({0, 4}, at::kFloat)});
  contents.model.push_back({"large", patterned({3000, 70}, 5)});
  for (int i = 0; i < 300; ++i)
    contents.model.push_back({"many." + std::to_string(i), patterned({i, 3}, 6)});
  const auto path = save_checkpoint(folder.path(), contents).path;
  const Finished finished =
      run(std::string(python == nullptr ? "python3" : python) +
          " " OLMO_SOURCE_DIR "/tests/goldens/check_h5py.py " + path.string() + " 2>&1");
  INFO(finished.output);
  CHECK(finished.code == 0);
}

}  // namespace olmo::store::test

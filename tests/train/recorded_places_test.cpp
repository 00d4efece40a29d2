#include "train/recorded_places.h"

#include <fstream>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::train {

TEST_CASE("a file that is not found from the current folder is taken from where the run read it",
          "[train]") {
  data::DataConfig config;
  config.paths = {"a.npy", "../b/a.npy", "/gone/c.npy"};
  config.datasets = {{"d", {"part/d.npy"}}};
  config.label_mask_paths = {"absent.npy"};
  use_recorded_places(config, std::vector<store::InputRecord>{{"tokens", "/at/c/a.npy", 0, ""},
                                                              {"tokens", "/at/c/../b/a.npy", 0, ""},
                                                              {"tokens", "/gone/c.npy", 0, ""},
                                                              {"tokens", "/at/c/part/d.npy", 0, ""},
                                                              {"weights", "/at/c/w", 0, ""}});
  CHECK(config.paths == std::vector<std::string>{"a.npy", "/at/c/../b/a.npy", "/gone/c.npy"});
  CHECK(config.datasets.at("d") == std::vector<std::string>{"/at/c/part/d.npy"});
  CHECK(config.label_mask_paths == std::vector<std::string>{"absent.npy"});
}

}  // namespace olmo::train

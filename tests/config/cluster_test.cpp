#include "config/cluster.h"

#include <fstream>

#include "core/error.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace olmo::config {
namespace {

using Catch::Matchers::Contains;

Cluster cluster_named(const std::string& name) {
  return read_cluster(OLMO_SOURCE_DIR "/configs/clusters/" + name + ".json");
}

void check_refused(const std::string& text, const std::string& says) {
  const test::TemporaryDirectory folder;
  const auto path = (folder / "c.json").string();
  std::ofstream(path) << text;
  try {
    read_cluster(path);
    FAIL("read: " << text);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kUsage);
    CHECK_THAT(error.what(), Contains(path) && Contains(says));
  }
}

}  // namespace

TEST_CASE("every cluster file can be read and leaves out what nobody states", "[config]") {
  for (const char* name : {"lumi-mi250x", "mosaicml-a100", "h100-sxm", "h200-sxm", "laptop"})
    CHECK_FALSE(cluster_named(name).name.empty());
  CHECK(cluster_named("lumi-mi250x").peak_flops.value() == 191.5e12);
  CHECK(cluster_named("h200-sxm").peak_flops.value() == 989e12);
  CHECK_FALSE(cluster_named("h100-sxm").pue);
  CHECK_FALSE(cluster_named("laptop").peak_flops);
  CHECK(cluster_named("lumi-mi250x").network_bytes_per_second.value() == 12.5e9);
  CHECK(cluster_named("mosaicml-a100").memory_bytes.value() == 42949672960.0);
}

TEST_CASE("a cluster file with a mistake is refused by file and key", "[config]") {
  check_refused(R"({"name": "x", "peek_flops": 1})",
                "`peek_flops` is unknown; did you mean `peak_flops`?");
  check_refused(R"({"name": "x", "pue": 1.1})", "`pue` needs `pue_source`");
  check_refused(R"({"name": "x", "pue": 0.9, "pue_source": "s"})",
                "`pue` must be a number, at least 1");
  check_refused(R"({"name": "x", "pue": "1.1", "pue_source": "s"})", "`pue` must be a number");
  check_refused(R"({"name": "x", "pue_source": "s"})", "`pue_source` is the source of nothing");
  check_refused(R"({"name": "x", "kg_per_kwh": -1, "kg_per_kwh_source": "s"})", "`kg_per_kwh`");
  check_refused(R"({"name": "x", "price_per_device_hour": 2, "price_per_device_hour_source": "s"})",
                "needs `currency`");
  check_refused(R"({"name": "x", "efficiency": 1.5, "efficiency_source": "s"})",
                "`efficiency` must be above 0 and at most 1");
  check_refused(R"({"name": "x", "devices_per_node": 1e18, "devices_per_node_source": "s"})",
                "`devices_per_node` must be at most 65536, is 1e+18");
  check_refused(R"({"name": "x", "devices_per_node": 7.5, "devices_per_node_source": "s"})",
                "`devices_per_node` must be a whole number");
  check_refused(R"({"name": "x", "memory_bytes": 1e300, "memory_bytes_source": "s"})",
                "`memory_bytes` must be at most 1e+18");
  check_refused(R"({"name": 3})", "`name` must be text");
  check_refused(R"({"device": "x"})", "`name` is missing");
  check_refused("[1]", "is not a JSON object");
  check_refused("{\n\"name\": ", ":2: is not valid JSON");
}

TEST_CASE("a cluster file that is not there is refused as a config is", "[config]") {
  const test::TemporaryDirectory folder;
  for (const auto& path : {folder.path(), folder / "absent.json"}) {
    try {
      read_cluster(path);
      FAIL("read: " << path);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kUsage);
      CHECK_THAT(error.what(), Contains(path.string()));
    }
  }
}

}  // namespace olmo::config

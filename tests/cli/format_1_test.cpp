// A record with a hash chain of format 1, as an older olmo-harness wrote it, and what this one does
// with it: tests/data/store/format_1.sql.
#include <nlohmann/json.hpp>

#include "cli/training.h"
#include "core/files/input_file.h"
#include "store/database/schema.h"
#include "store/database/sqlite.h"
#include "store/runs/run_folder.h"
#include "support/catch.h"

namespace olmo::test {
namespace {

/// The run's folder, with the old record alone, beside its tokens.
struct OldRun : Scene {
  OldRun() {
    fs::create_directory(*this / "old");
    store::Database db(database(), store::OpenMode::kCreate);
    constexpr int kVersion = 4;
    for (int i = 0; i < kVersion; ++i) db.execute(store::kMigrations[i]);
    db.execute("PRAGMA application_id = " + std::to_string(store::kApplicationId) +
               "; PRAGMA user_version = " + std::to_string(kVersion));
    db.execute(read_file(OLMO_TEST_DATA "/store/format_1.sql"));
  }
  [[nodiscard]] fs::path database() const { return *this / "old" / "run.db"; }
  [[nodiscard]] Ended run(const Words& words) const { return harness(*this / "out", words); }
  [[nodiscard]] Ended audit() const {
    return run({"audit", database().string(), "--data", (*this / "").string()});
  }
};

}  // namespace

TEST_CASE("an audit computes a record of format 1 again, in all but its hashes", "[cli]") {
  const OldRun scene;
  const auto ended = scene.audit();
  INFO(ended.out << ended.err);
  CHECK(ended.code == 0);
  CHECK(ended.out.find("AUDIT PASSED: every bit agrees") != std::string::npos);
  CHECK(ended.out.find("have format 1, which is not computed any more") != std::string::npos);
}

TEST_CASE("a record of an older schema is shown without the columns that were added since",
          "[cli]") {
  const OldRun scene;
  const auto ended = scene.run({"runs", "show", scene.database().string()});
  INFO(ended.out << ended.err);
  CHECK(ended.code == 0);
  CHECK(ended.out.find("world_size") != std::string::npos);
  CHECK(ended.out.find("tokens.npy") != std::string::npos);
}

TEST_CASE("an altered loss of format 1 is found by its chain", "[cli]") {
  const OldRun scene;
  store::Database(scene.database(), store::OpenMode::kReadWrite)
      .execute("UPDATE steps SET z_loss = z_loss * 1.0000000001 WHERE step = 2");
  const auto ended = scene.audit();
  INFO(ended.out << ended.err);
  CHECK(ended.code == 5);
  CHECK(ended.out.find("step 2: z_loss was recorded as") != std::string::npos);
  CHECK(ended.out.find("step 2: chain_hash") != std::string::npos);
}

TEST_CASE("a run of format 1 is not gone on with, and the way on is named", "[cli]") {
  const OldRun scene;
  store::write_identity(scene / "old", "20261122T050903-b1107c2b", scene.database());
  const auto ended = scene.train("old", {"--resume", "latest"});
  INFO(ended.err);
  CHECK(ended.code == 2);
  CHECK(ended.says("its hash chain has format 1"));
  CHECK(ended.says("or choose another --run-dir for a run of its own"));
}

TEST_CASE("of a run of each format the losses are compared, and the batches are unknown", "[cli]") {
  const OldRun scene;
  REQUIRE(scene
              .train("new", {"stop_at=3", "hash_interval=2", "softmax_auxiliary_loss=true",
                             "auxiliary_loss_multiplier=1e-5", "trace_interval=0"})
              .code == 0);
  const auto ended = scene.run(
      {"report", "parity", scene.database().string(), (scene / "new").string(), "--json"});
  INFO(ended.out << ended.err);
  const auto report = Json::parse(ended.out);
  CHECK(report.at("damage").empty());
  const auto& identity = report.at("identity");
  CHECK(identity.at("chains_comparable") == false);
  CHECK(identity.at("equal_batches").is_null());
  CHECK(identity.at("common_steps") == 3);
  CHECK(identity.at("first_different").is_null());
  CHECK(identity.at("last_state").at("different") == 0);
}

TEST_CASE("data inspect does not compare a batch hash of format 1", "[cli]") {
  const OldRun scene;
  const auto ended = scene.run({"data", "inspect", scene.database().string(), "--step", "2",
                                "data.paths=[" + (scene / "tokens.npy").string() + "]"});
  INFO(ended.out << ended.err);
  CHECK(ended.code == 0);
  CHECK(ended.out.find("has format 1, which is not computed any more") != std::string::npos);
}

}  // namespace olmo::test

// The full reference values, where OLMO_GOLDEN_DIR names their folder (hidden: olmo_tests
// "[.golden]").
#include <cstdlib>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "core/compute/random.h"
#include "core/files/json.h"
#include "data/batch.h"
#include "data/document_lengths.h"
#include "data/periodic_runs.h"
#include "support/catch.h"

using namespace olmo::data;
using olmo::Json;

namespace {

std::string golden_dir() {
  const char* value = std::getenv("OLMO_GOLDEN_DIR");
  return value == nullptr ? "" : value;
}

/// `row` holds "n", "first", "last" and "sha256_u32le" of an index array.
void check_listed(const Json& row, const std::vector<std::uint32_t>& order) {
  CHECK(order.size() == row.at("n").get<std::size_t>());
  CHECK(olmo::sha256(std::as_bytes(std::span(order))).hex() ==
        row.at("sha256_u32le").get<std::string>());
}

}  // namespace

TEST_CASE("orders of the reference", "[.golden]") {
  if (golden_dir().empty()) return;
  for (const Json& row :
       olmo::read_json_file(golden_dir() + "/data_order/iterable_dataset.json").at("cases")) {
    const Json& args = row.at("args");
    if (row.at("total_size") != args.at("n")) continue;  // cut or padded for several ranks
    INFO(args.dump());
    const OrderConfig config{
        .instances = args.at("n"), .seed = args.at("seed"), .shuffle = args.value("shuffle", true)};
    check_listed(row.at("global"), build_order(config, args.at("epoch")));
  }
}

TEST_CASE("NumPy's primitives of the reference", "[.golden]") {
  if (golden_dir().empty()) return;
  const Json golden = olmo::read_json_file(golden_dir() + "/data_order/numpy_primitives.json");
  for (const Json& row : golden.at("seedsequence")) {
    std::vector<std::uint32_t> words(8);
    olmo::SeedSequence(row.at("seed").get<std::uint64_t>())
        .generate(std::span<std::uint32_t>(words));
    CHECK(Json(words) == row.at("generate_state_8_uint32"));
  }
  for (const Json& row : golden.at("shuffle")) {
    INFO(row.dump().substr(0, 100));
    const auto n = row.at("n").get<std::uint64_t>();
    check_listed(row, build_order({.instances = n, .seed = row.at("seed")}, 0));
  }
}

TEST_CASE("repetition filter and chunks of the reference", "[.golden]") {
  if (golden_dir().empty()) return;
  const Json filter = olmo::read_json_file(golden_dir() + "/data_order/repetition_filter.json");
  for (const Json& row : filter.at("find_periodic_sequences")) {
    INFO(row.dump());
    olmo::test::check_runs(row.at("arr").get<std::vector<std::int64_t>>(),
                           row.at("start_end_period_times"), row.at("min_period"),
                           row.at("max_period"));
  }
  const Json chunks = olmo::read_json_file(golden_dir() + "/memmap/chunks.json");
  DataConfig config;
  for (const Json& file : chunks.at("files"))
    config.paths.push_back(golden_dir() + "/memmap/" + file.at("name").get<std::string>());
  const Dataset dataset(config, chunks.at("chunk_size"));
  REQUIRE(dataset.size() == chunks.at("len").get<std::uint64_t>());
  for (const Json& item : chunks.at("items")) {
    std::vector<std::int64_t> ids(chunks.at("chunk_size").get<std::size_t>());
    dataset.read(item.at("index"), ids);
    CHECK(Json(ids) == item.at("input_ids"));
    const auto name = std::filesystem::path(dataset.label(dataset.place(item.at("index")).file))
                          .filename()
                          .string();
    CHECK(name == item.at("file").get<std::string>());
  }
}

TEST_CASE("documents of the reference", "[.golden]") {
  if (golden_dir().empty()) return;
  for (const Json& row : olmo::read_json_file(golden_dir() + "/data_order/document_lengths.json")) {
    INFO(row.dump());
    CHECK(Json(olmo::test::document_lengths(row.at("input_ids"), row.at("eos"))) ==
          row.at("doc_lens"));
  }
}

TEST_CASE("instances and masks of the reference trajectories", "[.golden]") {
  if (golden_dir().empty()) return;
  for (const auto& entry : std::filesystem::directory_iterator(golden_dir() + "/train")) {
    if (!entry.is_directory()) continue;
    const Json run = olmo::read_json_file(entry.path() / "trajectory.json");
    INFO(entry.path().string());
    BatchConfig config;
    const std::string tokens = !run.at("instance_filter").is_null() ? "tokens_filter.npy"
                               : run.at("model_config").at("vocab_size") > 500
                                   ? "tokens_full_dolma_v1_5.npy"
                                   : "tokens_small.npy";
    config.data.paths = {golden_dir() + "/train/" + tokens};
    config.data.drop_last = run.at("drop_last");
    if (!run.at("data_seed").is_null()) config.seed = run.at("data_seed");
    config.data.shuffle = run.at("shuffle");
    config.sequence_length = run.at("seq_len");
    config.global_batch_size = run.at("global_batch");
    config.vocab_size = run.at("model_config").at("vocab_size");
    if (const Json& filter = run.at("instance_filter"); !filter.is_null()) {
      config.data.instance_filter =
          InstanceFilterConfig{.repetition_max_period = filter.at("repetition_max_period"),
                               .repetition_min_period = filter.at("repetition_min_period"),
                               .repetition_max_count = filter.at("repetition_max_count")};
    }
    BatchSource source(config);
    CHECK(source.dataset().size() == run.at("n_instances").get<std::uint64_t>());
    CHECK(source.steps_per_epoch() == run.at("batches_per_epoch").get<std::uint64_t>());
    for (const Json& step : run.at("steps")) {
      const Batch batch = source.batch(step.at("step"));
      CHECK(Json(batch.indices) == step.at("index"));
      CHECK(batch.epoch == step.at("epoch").get<std::uint64_t>());
      const auto masked = std::count(batch.instance_mask.begin(), batch.instance_mask.end(), 0);
      if (step.contains("masked_instances") && !step.at("masked_instances").is_null())
        CHECK(masked == step.at("masked_instances").get<long>());
    }
  }
}

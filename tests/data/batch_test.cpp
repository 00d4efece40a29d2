#include "data/batch.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "core/hash.h"
#include "data/document_lengths.h"
#include "data/periodic_runs.h"
#include "data/scratch.h"
#include "support/catch.h"

using namespace olmo::data;
using olmo::ErrorKind;
using olmo::Json;
using olmo::test::ScratchFolder;
using olmo::test::thrown_by;

namespace {

Json rows_of(const at::Tensor& matrix) {
  Json rows = Json::array();
  for (std::int64_t r = 0; r < matrix.size(0); ++r) {
    const at::Tensor row = matrix[r].to(at::kLong).contiguous();
    rows.push_back(std::vector<std::int64_t>(row.data_ptr<std::int64_t>(),
                                             row.data_ptr<std::int64_t>() + row.numel()));
  }
  return rows;
}

/// Ten instances of four tokens, all ids different, in two files of which the first has a tail.
BatchConfig small_config(const ScratchFolder& folder) {
  std::vector<std::uint16_t> first(26);
  std::vector<std::uint16_t> second(16);
  for (std::size_t i = 0; i < first.size(); ++i) first[i] = static_cast<std::uint16_t>(i);
  for (std::size_t i = 0; i < second.size(); ++i) second[i] = static_cast<std::uint16_t>(100 + i);
  BatchConfig config;
  config.data.paths = {folder.write_ids("a.npy", first), folder.write_ids("b.npy", second)};
  config.seed = 11;
  config.sequence_length = 4;
  config.global_batch_size = 3;
  return config;
}

}  // namespace

TEST_CASE("batches, labels and masks equal OLMo's data set, collator and label function",
          "[data]") {
  const Json golden =
      olmo::read_json_file(std::string(OLMO_TEST_DATA) + "/data/data_order.json").at("batches");
  const ScratchFolder folder;
  BatchConfig config;
  // GCC 12 warns wrongly about literal + to_string, so the names are built in two steps.
  const auto numbered = [](std::string name, std::size_t number) {
    return name += std::to_string(number);
  };
  auto& paths = config.data.paths;
  auto& masks = config.data.label_mask_paths;
  for (const Json& ids : golden.at("files")) {
    paths.push_back(
        folder.write_ids(numbered("t", paths.size()), ids.get<std::vector<std::uint16_t>>()));
  }
  for (const Json& mask : golden.at("masks")) {
    masks.push_back(
        folder.write_ids(numbered("m", masks.size()), mask.get<std::vector<std::uint8_t>>()));
  }
  config.data.drop_last = true;
  config.data.instance_filter =
      InstanceFilterConfig{.repetition_max_count = golden.at("repetition_max_count")};
  config.data.seed = golden.at("seed").get<std::uint64_t>();
  config.sequence_length = golden.at("sequence_length");
  config.global_batch_size = golden.at("global_batch_size");
  BatchSource source(config);
  CHECK(source.dataset().size() == golden.at("instances").get<std::uint64_t>());
  REQUIRE(source.steps_per_epoch() == golden.at("steps").size());
  for (std::uint64_t step = 1; step <= source.steps_per_epoch(); ++step) {
    const Json& expected = golden.at("steps")[step - 1];
    const Batch batch = source.batch(step);
    CHECK(Json(batch.indices) == expected.at("indices"));
    CHECK(rows_of(batch.input_ids_BL) == expected.at("input_ids"));
    CHECK(Json(batch.instance_mask) == expected.at("instance_mask"));
    CHECK(rows_of(batch.labels_BL.slice(1, 0, config.sequence_length - 1)) ==
          expected.at("labels"));
    CHECK((batch.labels_BL.select(1, config.sequence_length - 1) == kIgnoredLabel)
              .all()
              .item<bool>());
  }
}

TEST_CASE("a step's batch does not depend on what was asked before", "[data]") {
  const ScratchFolder folder;
  const BatchConfig config = small_config(folder);
  BatchSource straight(config);
  std::vector<olmo::Digest> digests;
  for (std::uint64_t step = 1; step <= 8; ++step) digests.push_back(straight.batch(step).digest);
  for (const std::uint64_t step : {8U, 2U, 5U, 1U})
    CHECK(BatchSource(config).batch(step).digest == digests[step - 1]);
}

TEST_CASE("an epoch shows no instance twice and the next one has another order", "[data]") {
  const ScratchFolder folder;
  BatchSource source(small_config(folder));
  REQUIRE(source.steps_per_epoch() == 3);
  std::vector<std::vector<std::uint32_t>> epochs(2);
  for (std::uint64_t step = 1; step <= 6; ++step) {
    const auto indices = source.indices(step);
    auto& epoch = epochs.at(source.epoch_of(step));
    epoch.insert(epoch.end(), indices.begin(), indices.end());
  }
  for (const auto& epoch : epochs) CHECK(std::set(epoch.begin(), epoch.end()).size() == 9);
  CHECK(epochs[0] != epochs[1]);
}

TEST_CASE("instances are cut file by file and tails are dropped", "[data]") {
  const ScratchFolder folder;
  const Dataset dataset(small_config(folder).data, 4);
  CHECK(dataset.size() == 10);
  CHECK((dataset.place(5).file == 0 && dataset.place(5).first_token == 20));
  CHECK((dataset.place(6).file == 1 && dataset.place(6).first_token == 0));
  std::vector<std::int64_t> ids(4);
  dataset.read(6, ids);
  CHECK(ids == std::vector<std::int64_t>{100, 101, 102, 103});
}

TEST_CASE("files of `datasets` follow their sorted labels", "[data]") {
  const ScratchFolder folder;
  DataConfig config;
  config.datasets["zebra"] = {folder.write_ids("z.npy", std::vector<std::uint16_t>{1, 2})};
  config.datasets["Ant"] = {folder.write_ids("a.npy", std::vector<std::uint16_t>{3, 4})};
  const Dataset dataset(config, 2);
  CHECK((dataset.label(0) == "Ant" && dataset.label(1) == "zebra"));
}

TEST_CASE("batches of another size go on where those before them ended", "[data]") {
  const ScratchFolder folder;
  BatchConfig config = small_config(folder);
  const BatchSource before(config);
  config.global_batch_size = 4;
  BatchSource after(config);
  after.begin_at(before.position_after(2));
  const auto order = build_order({.instances = 10, .seed = 11}, 0);
  CHECK(after.indices(3) == std::vector<std::uint32_t>(order.begin() + 6, order.end()));
  CHECK(after.epoch_of(4) == 1);
  const auto thrown = thrown_by([&] { after.batch(2); });
  REQUIRE(thrown);
  CHECK(thrown->kind == ErrorKind::kUsage);
}

TEST_CASE("the digest tells apart batches with the same tokens and other labels", "[data]") {
  const ScratchFolder folder;
  BatchSource source(small_config(folder));
  Batch batch = source.batch(1);
  CHECK(row_digest(batch, 1) == batch.row_digests[1]);
  batch.labels_BL[1][0] = kIgnoredLabel;
  CHECK(row_digest(batch, 1) != batch.row_digests[1]);
}

TEST_CASE("the digest of a batch is over those of its rows, with the bytes that the header defines",
          "[data]") {
  Batch batch;
  batch.indices = {7, 2};
  batch.input_ids_BL =
      at::tensor(std::vector<std::int64_t>{10, 20, 30, 40, 50, 70000}).reshape({2, 3});
  batch.labels_BL = at::tensor(std::vector<std::int64_t>{20, 30, kIgnoredLabel, kIgnoredLabel,
                                                         70000, kIgnoredLabel})
                        .reshape({2, 3});
  const std::vector<olmo::Digest> rows = {row_digest(batch, 0), row_digest(batch, 1)};
  // Computed with Python's hashlib from the definition.
  CHECK(rows[0].hex() == "956466c34fc09858188e67a3849388953290b57ba5fbe5bca558eba6a88ce497");
  CHECK(rows[1].hex() == "47cd824b23adfc729b72cb953283746d5157818e211505cfd3196540dd56933a");
  CHECK(batch_digest(rows, 3).hex() ==
        "70f06f6d6ab6cbd7281fcd0a8bca9ba04a50d2d27b7d98ddb3c8079e3917a66a");
}

TEST_CASE("the rows that the ranks of any number make are those of the whole batch, bit for bit",
          "[data]") {
  const ScratchFolder folder;
  BatchConfig config = small_config(folder);
  config.global_batch_size = 7;
  config.data.label_mask_paths = {folder.write("m0", std::string(25, '\1') + '\0'),
                                  folder.write("m1", std::string(7, '\1') + std::string(9, '\0'))};
  // Instances of one id over and over, which the filter masks, are not in small_config's files.
  config.data.instance_filter = InstanceFilterConfig{};
  config.data.paths[0] = folder.write_ids("ones.npy", std::vector<std::uint16_t>(26, 1));
  config.data.instance_filter->repetition_max_count = 3;
  config.data.instance_filter->repetition_max_period = 1;
  const Batch whole = BatchSource(config).batch(1);
  REQUIRE(std::count(whole.instance_mask.begin(), whole.instance_mask.end(), 0) > 0);
  for (const std::int64_t micro : {1, 2, 3, 7}) {
    for (std::int64_t world = 1; world <= 5; ++world) {
      INFO("micro-batch " << micro << ", " << world << " ranks");
      std::vector<olmo::Digest> digests(7);
      std::vector<int> seen(7);
      for (std::int64_t rank = 0; rank < world; ++rank) {
        const auto rows = rows_of_rank(7, micro, rank, world);
        const Batch part = BatchSource(config).batch(1, rows);
        CHECK((part.rows == rows && part.epoch == whole.epoch && part.step == whole.step));
        for (std::size_t i = 0; i < rows.size(); ++i) {
          const auto row = static_cast<std::size_t>(rows[i]), at = i;
          ++seen.at(row);
          digests[row] = part.row_digests[at];
          CHECK(part.indices[at] == whole.indices[row]);
          CHECK(part.instance_mask[at] == whole.instance_mask[row]);
          CHECK(
              part.input_ids_BL[static_cast<std::int64_t>(at)].equal(whole.input_ids_BL[rows[i]]));
          CHECK(part.labels_BL[static_cast<std::int64_t>(at)].equal(whole.labels_BL[rows[i]]));
        }
      }
      CHECK(seen == std::vector<int>(7, 1));
      CHECK(batch_digest(digests, config.sequence_length) == whole.digest);
    }
  }
}

TEST_CASE("documents begin where OLMo's do", "[data]") {
  const Json golden =
      olmo::read_json_file(std::string(OLMO_TEST_DATA) + "/data/data_order.json").at("documents");
  CHECK(golden.size() > 20);
  for (const Json& row : golden) {
    INFO(row.dump());
    CHECK(Json(olmo::test::document_lengths(row.at("ids"), 7)) == row.at("lengths"));
  }
}

TEST_CASE("a batch tells its documents where attention keeps to them, and so does its digest",
          "[data]") {
  const ScratchFolder folder;
  BatchConfig config = small_config(folder);
  config.data.shuffle = false;
  config.global_batch_size = 10;  // ids 0..23 and 100..115
  const auto plain = BatchSource(config).batch(1);
  CHECK_FALSE(plain.document_starts_BL.defined());
  const auto ended_by = [&](std::int64_t id) {
    config.document_end = id;
    return BatchSource(config).batch(1);
  };
  const auto split = ended_by(5);  // the second token of the second instance
  CHECK(rows_of(split.document_starts_BL)[0] == Json{0, 0, 0, 0});
  CHECK(rows_of(split.document_starts_BL)[1] == Json{0, 0, 2, 2});
  CHECK(split.row_digests[0] == plain.row_digests[0]);
  CHECK(split.row_digests[1] != plain.row_digests[1]);
  CHECK(split.row_digests[1] != ended_by(6).row_digests[1]);
  CHECK(ended_by(7).digest == plain.digest);  // the last token of an instance
}

TEST_CASE("micro-batches are dealt to the ranks round-robin, and a rank may get none", "[data]") {
  using Rows = std::vector<std::int64_t>;
  CHECK(rows_of_rank(7, 2, 0, 3) == Rows{0, 1, 6});
  CHECK(rows_of_rank(7, 2, 1, 3) == Rows{2, 3});
  CHECK(rows_of_rank(7, 2, 2, 3) == Rows{4, 5});
  CHECK(rows_of_rank(2, 2, 1, 2).empty());
  const ScratchFolder folder;
  const Batch none = BatchSource(small_config(folder)).batch(2, {});
  CHECK((none.input_ids_BL.size(0) == 0 && none.indices.empty() && none.epoch == 0));
}

TEST_CASE("a rank does not read the rows of others", "[data]") {
  const ScratchFolder folder;
  BatchConfig config = small_config(folder);
  config.vocab_size = 115;  // instance 9 has a larger id
  config.data.shuffle = false;
  config.global_batch_size = 10;
  const std::vector<std::int64_t> sound = {0, 1, 8}, bad = {9};
  BatchSource source(config);
  CHECK_NOTHROW(source.batch(1, sound));
  CHECK(thrown_by([&] { source.batch(1, bad); }));
}

TEST_CASE("an order in a file that processes share gives the batches of one in memory", "[data]") {
  const ScratchFolder folder;
  const BatchConfig config = small_config(folder);
  const auto orders = folder / "train_data";
  BatchSource memory(config), maker(config), reader(config);
  maker.keep_orders_in(orders, BatchSource::OrderRole::kMaker, 0);
  reader.keep_orders_in(orders, BatchSource::OrderRole::kReader, 0);
  CHECK_FALSE(memory.needs_order_file(1));
  for (std::uint64_t step = 1; step <= 7; ++step) {  // three epochs
    INFO("step " << step);
    const bool first_of_epoch = step % 3 == 1;
    CHECK(maker.needs_order_file(step) == first_of_epoch);
    CHECK(reader.needs_order_file(step) == first_of_epoch);
    if (first_of_epoch) {
      CHECK_FALSE(reader.finds_order_file(step));
      CHECK(maker.make_order_file(step));
      CHECK(reader.finds_order_file(step));
      for (auto* source : {&maker, &reader}) source->order_file_is_shared(step);
    }
    CHECK(maker.batch(step).digest == memory.batch(step).digest);
    CHECK(reader.batch(step).digest == memory.batch(step).digest);
  }
  CHECK_FALSE(std::filesystem::exists(order_path(orders, 1)));  // gone with its epoch
}

TEST_CASE("a small order stays in memory though there is a folder for files", "[data]") {
  const ScratchFolder folder;
  BatchSource source(small_config(folder));
  source.keep_orders_in(folder / "train_data", BatchSource::OrderRole::kMaker);
  CHECK_FALSE(source.needs_order_file(1));
  source.batch(1);
  CHECK_FALSE(std::filesystem::exists(folder / "train_data"));
}

TEST_CASE("the next epoch's order is made before the epoch ends, if the run goes on", "[data]") {
  const ScratchFolder folder;
  BatchConfig config = small_config(folder);
  const auto made_after = [&](std::uint64_t step, std::uint64_t last_step) {
    const auto orders = folder / ("until" + std::to_string(last_step) + std::to_string(step));
    BatchSource source(config);
    source.keep_orders_in(orders, BatchSource::OrderRole::kMaker, 0);
    source.batch(step);
    source.look_ahead(step, last_step);
    // Waits for the thread: the file was there before only if the thread had made it.
    return !source.make_order_file(4).has_value();
  };
  CHECK(made_after(3, 4));
  CHECK_FALSE(made_after(2, 9));  // not yet
  CHECK_FALSE(made_after(3, 3));  // the run ends with the epoch
}

TEST_CASE("too few instances for one batch are an input error", "[data]") {
  const ScratchFolder folder;
  BatchConfig config = small_config(folder);
  config.global_batch_size = 11;
  const auto error = thrown_by([&] { BatchSource source(config); });
  REQUIRE(error);
  CHECK((error->kind == ErrorKind::kInput &&
         error->says("10 instances of 4 tokens, too few for one batch of 11")));
}

TEST_CASE(
    "an id beyond the vocabulary is named with file, token and instance when its batch is read",
    "[data]") {
  const ScratchFolder folder;
  BatchConfig config = small_config(folder);
  config.vocab_size = 115;
  config.data.shuffle = false;
  BatchSource source(config);
  CHECK_NOTHROW(source.batch(3));
  config.global_batch_size = 10;
  BatchSource all(config);
  const auto error = thrown_by([&] { all.batch(1); });
  REQUIRE(error);
  CHECK(
      (error->kind == ErrorKind::kInput && error->says("b.npy: token 15 (instance 9) has id 115")));
}

TEST_CASE("a label mask of another length than its token file is refused", "[data]") {
  const ScratchFolder folder;
  BatchConfig config = small_config(folder);
  config.data.label_mask_paths = {folder.write("m0", std::string(26, '\1')),
                                  folder.write("m1", std::string(15, '\1'))};
  const auto error = thrown_by([&] { BatchSource source(config); });
  REQUIRE(error);
  CHECK((error->kind == ErrorKind::kInput && error->says("m1: ") && error->says("expected 16")));
}

TEST_CASE("contradictions of a data config are usage errors", "[data]") {
  const ScratchFolder folder;
  const auto refused = [](const BatchConfig& config) {
    const auto error = thrown_by([&] { BatchSource source(config); });
    return error && error->kind == ErrorKind::kUsage;
  };
  BatchConfig both = small_config(folder);
  both.data.datasets["x"] = both.data.paths;
  CHECK(refused(both));
  BatchConfig none = small_config(folder);
  none.data.paths.clear();
  CHECK(refused(none));
}

using namespace olmo::data;
using olmo::Json;
using Ids = std::vector<std::int64_t>;
using olmo::test::check_runs;

TEST_CASE("an instance is masked by the runs that OLMo finds", "[data]") {
  const Json golden =
      olmo::read_json_file(std::string(OLMO_TEST_DATA) + "/data/data_order.json").at("filter");
  for (const Json& row : golden) {
    INFO(row.dump());
    check_runs(row.at("ids").get<Ids>(), row.at("runs"), 1, 13);
  }
}

TEST_CASE("an instance is masked from repetition_max_count repeats on", "[data]") {
  Ids ids(100, 1);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(1000 + i);
  std::fill(ids.begin() + 20, ids.begin() + 52, 7);  // 32 times
  const InstanceFilterConfig config;
  CHECK_FALSE(keep_instance(ids, config));
  ids[51] = 8;  // 31 times
  CHECK(keep_instance(ids, config));
}

TEST_CASE("periods outside the configured range are not looked at", "[data]") {
  const Ids ids(64, 7);
  CHECK_FALSE(keep_instance(
      ids, {.repetition_max_period = 1, .repetition_min_period = 1, .repetition_max_count = 32}));
  CHECK(keep_instance(
      ids, {.repetition_max_period = 13, .repetition_min_period = 3, .repetition_max_count = 32}));
}

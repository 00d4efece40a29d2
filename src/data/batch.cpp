#include "data/batch.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string>

#include "core/compute/named_tensors.h"
#include "core/compute/parallel.h"
#include "core/error.h"

namespace olmo::data {
namespace {

void check(const BatchConfig& config) {
  if (config.global_batch_size <= 0) {
    throw Error(ErrorKind::kUsage, "data: global batch size must be positive, got " +
                                       std::to_string(config.global_batch_size));
  }
}

template <class T = std::int64_t>
std::span<T> row_of(const at::Tensor& matrix, std::int64_t row) {
  const auto length = static_cast<std::size_t>(matrix.size(1));
  return mutable_host_span<T>(matrix).subspan(static_cast<std::size_t>(row) * length, length);
}

/// The ids as a matrix of `period` columns, padded at the end with -1 (a whole row of it if the ids
/// fill their rows), each row compared with the one above; the row above the first is the last, as
/// numpy.roll wraps.
class Rows {
 public:
  Rows(std::span<const std::int64_t> ids, std::int64_t period)
      : ids_(ids), period_(period), count_(static_cast<std::int64_t>(ids.size()) / period + 1) {}

  [[nodiscard]] std::int64_t count() const { return count_; }

  [[nodiscard]] bool equals_above(std::int64_t row, std::int64_t column) const {
    return value(row, column) == value(row == 0 ? count_ - 1 : row - 1, column);
  }

  [[nodiscard]] bool all_equal_above(std::int64_t row) const {
    return equal_from_left(row) == period_;
  }

  /// Number of leading columns that equal the row above.
  [[nodiscard]] std::int64_t equal_from_left(std::int64_t row) const {
    std::int64_t column = 0;
    while (column < period_ && equals_above(row, column)) ++column;
    return column;
  }

  /// Number of trailing columns that equal the row above.
  [[nodiscard]] std::int64_t equal_from_right(std::int64_t row) const {
    std::int64_t length = 0;
    while (length < period_ && equals_above(row, period_ - 1 - length)) ++length;
    return length;
  }

 private:
  [[nodiscard]] std::int64_t value(std::int64_t row, std::int64_t column) const {
    const auto i = static_cast<std::size_t>(row * period_ + column);
    return i < ids_.size() ? ids_[i] : -1;
  }

  std::span<const std::int64_t> ids_;
  std::int64_t period_;
  std::int64_t count_;
};

/// How often the run repeats around rows [first, last], all equal to the row above them. There is a
/// row before (the first row is compared with the padded last one, and never equals it) and a row
/// after (the last row, for the same reason, never belongs to a run).
std::int64_t repeats(const Rows& rows, std::int64_t first, std::int64_t last, std::int64_t period) {
  OLMO_CHECK(first > 0 && last + 1 < rows.count());
  const std::int64_t start = (first - 1) * period - rows.equal_from_right(first - 1);
  const std::int64_t end = (last + 1) * period + rows.equal_from_left(last + 1);
  return (end - start) / period;
}

/// The file that another process has made. Throws Error(kFailure) if it does not appear.
OrderFile wait_for_order_file(const std::filesystem::path& folder, const OrderConfig& config,
                              std::uint64_t epoch) {
  using namespace std::chrono_literals;
  constexpr auto kPatience = 2min;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    if (auto file = open_order_file(folder, config, epoch)) return std::move(*file);
    if (std::chrono::steady_clock::now() > end) break;
    std::this_thread::sleep_for(100ms);
  }
  throw Error(ErrorKind::kFailure,
              order_path(folder, epoch).string() +
                  ": the order of the data, which another rank has made, does not appear here: "
                  "give a run folder that all ranks of a node see");
}

}  // namespace

Digest row_digest(const Batch& batch, std::int64_t row) {
  const auto ids = row_of(batch.input_ids_BL, row), labels = row_of(batch.labels_BL, row);
  Sha256 hash;
  hash.update("olmo-batch-row-2")
      .update_u64(ids.size())
      .update_u64(batch.indices[static_cast<std::size_t>(row)]);
  std::vector<std::uint32_t> small_ids(ids.size());
  std::transform(ids.begin(), ids.end(), small_ids.begin(),
                 [](std::int64_t id) { return static_cast<std::uint32_t>(id); });
  std::vector<std::uint8_t> marks(labels.size());
  std::transform(labels.begin(), labels.end(), marks.begin(),
                 [](std::int64_t label) { return label == kIgnoredLabel ? 0 : 1; });
  if (batch.document_starts_BL.defined()) {
    const auto starts = row_of<std::int32_t>(batch.document_starts_BL, row);
    for (std::size_t t = 1; t < marks.size(); ++t)
      if (starts[t] != starts[t - 1]) marks[t] |= 2;
  }
  return hash.update(small_ids.data(), small_ids.size() * sizeof(std::uint32_t))
      .update(marks.data(), marks.size())
      .finish();
}

Digest batch_digest(std::span<const Digest> rows, std::int64_t sequence_length) {
  Sha256 hash;
  hash.update("olmo-batch-2")
      .update_u64(rows.size())
      .update_u64(static_cast<std::uint64_t>(sequence_length));
  for (const Digest& row : rows) hash.update(row.bytes.data(), row.bytes.size());
  return hash.finish();
}

std::vector<std::int64_t> rows_of_rank(std::int64_t batch_size, std::int64_t micro_batch,
                                       std::int64_t rank, std::int64_t world_size) {
  OLMO_CHECK(micro_batch > 0 && rank >= 0 && rank < world_size);
  std::vector<std::int64_t> rows;
  for (std::int64_t begin = rank * micro_batch; begin < batch_size;
       begin += world_size * micro_batch) {
    for (std::int64_t row = begin; row < std::min(begin + micro_batch, batch_size); ++row)
      rows.push_back(row);
  }
  return rows;
}

BatchSource::BatchSource(const BatchConfig& config)
    : config_((check(config), config)),
      dataset_(config.data, config.sequence_length, config.vocab_size),
      order_config_{.instances = dataset_.size(),
                    .seed = config.data.seed.value_or(config.seed),
                    .shuffle = config.data.shuffle} {
  batches_ = {dataset_.size(), static_cast<std::uint64_t>(config_.global_batch_size)};
  if (steps_per_epoch() == 0) {
    throw Error(
        ErrorKind::kInput,
        "data: the token files give " + std::to_string(dataset_.size()) + " instances of " +
            std::to_string(config_.sequence_length) + " tokens, too few for one batch of " +
            std::to_string(config_.global_batch_size) +
            "; add data, or make `global_train_batch_size` or `max_sequence_length` smaller");
  }
}

DataPosition BatchSource::position_of(std::uint64_t step) const {
  if (step <= config_.begin.step) {
    throw Error(ErrorKind::kUsage, "data: the training began after step " +
                                       std::to_string(config_.begin.step) + " and has no step " +
                                       std::to_string(step));
  }
  return position_of_step(config_.begin, batches_, step);
}

void BatchSource::keep_orders_in(std::filesystem::path folder, OrderRole role,
                                 std::uint64_t in_memory) {
  if (dataset_.size() <= in_memory) return;
  order_folder_ = std::move(folder);
  order_role_ = role;
}

bool BatchSource::needs_order_file(std::uint64_t step) const {
  return order_folder_ && shared_epoch_ != epoch_of(step);
}

bool BatchSource::finds_order_file(std::uint64_t step) const {
  return open_order_file(*order_folder_, order_config_, epoch_of(step)).has_value();
}

std::optional<std::string> BatchSource::make_order_file(std::uint64_t step) {
  return make_order_of(epoch_of(step));
}

std::optional<std::string> BatchSource::make_order_of(std::uint64_t epoch) {
  OLMO_CHECK(order_folder_);
  order_role_ = OrderRole::kMaker;
  if (made_epoch_ == epoch) return std::nullopt;
  if (next_epoch_ != epoch) next_order_.request_stop();
  if (next_order_.joinable()) next_order_.join();
  next_epoch_.reset();
  // The step before was the last of its epoch, and every rank has read its rows.
  if (epoch > 0) remove_order_file(*order_folder_, epoch - 1);
  auto why = data::make_order_file(*order_folder_, order_config_, epoch, {}, pool_threads());
  made_epoch_ = epoch;
  return why;
}

void BatchSource::look_ahead(std::uint64_t step, std::uint64_t last_step) {
  if (!order_folder_ || order_role_ != OrderRole::kMaker || next_epoch_) return;
  const std::uint64_t left = batches_.from(position_of(step).instance) - 1;
  // A hundredth of an epoch this large takes minutes, an order one.
  if (left > steps_per_epoch() / 100 || step + left >= last_step) return;
  next_epoch_ = epoch_of(step) + 1;
  next_order_ = std::jthread([folder = *order_folder_, config = order_config_,
                              epoch = *next_epoch_](const std::stop_token& stop) {
    try {
      data::make_order_file(folder, config, epoch, stop);
    } catch (const std::exception&) {
      // What is wrong (a full disk) is thrown where the order is needed and is tried again.
    }
  });
}

void BatchSource::open_order(std::uint64_t epoch) {
  if (order_epoch_ == epoch) return;
  // Freed before the next one is made: of large data each takes gigabytes.
  order_epoch_.reset();
  order_ = std::vector<std::uint32_t>();
  order_file_.reset();
  if (!order_folder_) {
    order_ = build_order(order_config_, epoch);
  } else {
    if (order_role_ == OrderRole::kMaker && made_epoch_ != epoch) make_order_of(epoch);
    order_file_ = wait_for_order_file(*order_folder_, order_config_, epoch);
  }
  order_epoch_ = epoch;
}

void BatchSource::read_order(std::uint64_t epoch, std::uint64_t first,
                             std::span<std::uint32_t> out) {
  open_order(epoch);
  if (order_file_) return order_file_->read(first, out);
  const auto from = order_.begin() + static_cast<std::ptrdiff_t>(first);
  std::copy(from, from + std::ssize(out), out.begin());
}

std::vector<std::uint32_t> BatchSource::indices(std::uint64_t step) {
  std::vector<std::uint32_t> numbers(batches_.batch_size);
  const DataPosition position = position_of(step);
  read_order(position.epoch, position.instance, numbers);
  return numbers;
}

void BatchSource::fill_row(Batch& batch, std::int64_t row) const {
  const auto ids = row_of(batch.input_ids_BL, row);
  const auto labels = row_of(batch.labels_BL, row);
  const std::uint32_t instance = batch.indices[static_cast<std::size_t>(row)];
  dataset_.read(instance, ids);
  const auto& filter = config_.data.instance_filter;
  const bool keep = !filter || keep_instance(ids, *filter);
  batch.instance_mask[static_cast<std::size_t>(row)] = keep ? 1 : 0;
  const auto mask =
      dataset_.has_label_masks() ? dataset_.label_mask(instance) : std::vector<std::uint8_t>();
  for (std::size_t t = 1; t < ids.size(); ++t) {  // token 0 is nobody's label
    const bool label = keep && (mask.empty() || mask[t] != 0);
    labels[t - 1] = label ? ids[t] : kIgnoredLabel;
  }
  labels.back() = kIgnoredLabel;
  if (config_.document_end)
    find_document_starts(ids, *config_.document_end,
                         row_of<std::int32_t>(batch.document_starts_BL, row));
}

Batch BatchSource::batch(std::uint64_t step) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(config_.global_batch_size));
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  Batch whole = batch(step, rows);
  whole.digest = batch_digest(whole.row_digests, config_.sequence_length);
  return whole;
}

Batch BatchSource::batch(std::uint64_t step, std::span<const std::int64_t> rows) {
  const auto all = indices(step);
  Batch batch;
  batch.step = step;
  batch.epoch = epoch_of(step);
  batch.rows.assign(rows.begin(), rows.end());
  for (const std::int64_t row : rows) {
    OLMO_CHECK(row >= 0 && row < config_.global_batch_size);
    batch.indices.push_back(all[static_cast<std::size_t>(row)]);
    // Each lies somewhere else: asked for together, the disk or the network fetches them together.
    dataset_.prefetch(batch.indices.back());
  }
  const std::vector<std::int64_t> shape = {std::ssize(rows), config_.sequence_length};
  batch.input_ids_BL = new_tensor(shape, at::kLong);
  batch.labels_BL = new_tensor(shape, at::kLong);
  if (config_.document_end) batch.document_starts_BL = new_tensor(shape, at::kInt);
  batch.instance_mask.resize(rows.size());
  batch.row_digests.reserve(rows.size());
  for (std::int64_t row = 0; row < std::ssize(rows); ++row) {
    fill_row(batch, row);
    batch.row_digests.push_back(row_digest(batch, row));
  }
  return batch;
}

void find_document_starts(std::span<const std::int64_t> ids, std::int64_t eos_token_id,
                          std::span<std::int32_t> starts) {
  OLMO_CHECK(starts.size() == ids.size());
  std::int32_t start = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i > 0 && ids[i - 1] == eos_token_id) start = static_cast<std::int32_t>(i);
    starts[i] = start;
  }
}

bool keep_instance(std::span<const std::int64_t> ids, const InstanceFilterConfig& config) {
  OLMO_CHECK(config.repetition_min_period >= 1);
  const std::int64_t fewest = std::max<std::int64_t>(3, config.repetition_max_count);
  const std::int64_t longest = std::min(config.repetition_max_period, std::ssize(ids) / 3);
  for (std::int64_t period = config.repetition_min_period; period <= longest; ++period) {
    const Rows rows(ids, period);
    for (std::int64_t row = 0; row < rows.count(); ++row) {
      if (!rows.all_equal_above(row)) continue;
      const std::int64_t first = row;
      while (row + 1 < rows.count() && rows.all_equal_above(row + 1)) ++row;
      if (repeats(rows, first, row, period) >= fewest) return false;
    }
  }
  return true;
}

}  // namespace olmo::data

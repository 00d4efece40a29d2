#include "data/batch.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "core/named_tensors.h"
#include "data/instance_filter.h"

namespace olmo::data {
namespace {

void check(const BatchConfig& config) {
  if (config.global_batch_size <= 0) {
    throw Error(ErrorKind::kUsage, "data: global batch size must be positive, got " +
                                       std::to_string(config.global_batch_size));
  }
}

std::span<std::int64_t> row_of(const at::Tensor& matrix, std::int64_t row) {
  const auto length = static_cast<std::size_t>(matrix.size(1));
  return mutable_host_span<std::int64_t>(matrix).subspan(static_cast<std::size_t>(row) * length,
                                                         length);
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
  std::vector<std::uint8_t> counts(labels.size());
  std::transform(labels.begin(), labels.end(), counts.begin(),
                 [](std::int64_t label) { return label == kIgnoredLabel ? 0 : 1; });
  return hash.update(small_ids.data(), small_ids.size() * sizeof(std::uint32_t))
      .update(counts.data(), counts.size())
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

Digest batch_digest(const Batch& batch) {
  std::vector<Digest> rows;
  for (std::int64_t row = 0; row < batch.input_ids_BL.size(0); ++row)
    rows.push_back(row_digest(batch, row));
  return batch_digest(rows, batch.input_ids_BL.size(1));
}

BatchSource::BatchSource(const BatchConfig& config)
    : config_((check(config), config)),
      dataset_(config.data, config.sequence_length, config.vocab_size),
      order_config_{.instances = dataset_.size(),
                    .seed = config.data.seed.value_or(config.seed),
                    .shuffle = config.data.shuffle} {
  steps_per_epoch_ = dataset_.size() / static_cast<std::uint64_t>(config_.global_batch_size);
  if (steps_per_epoch_ == 0) {
    throw Error(
        ErrorKind::kInput,
        "data: the token files give " + std::to_string(dataset_.size()) + " instances of " +
            std::to_string(config_.sequence_length) + " tokens, too few for one batch of " +
            std::to_string(config_.global_batch_size) +
            "; add data, or make `global_train_batch_size` or `max_sequence_length` smaller");
  }
}

std::uint64_t BatchSource::epoch_of(std::uint64_t step) const {
  OLMO_CHECK(step >= 1);
  return config_.epoch + (step - 1) / steps_per_epoch_;
}

const std::vector<std::uint32_t>& BatchSource::order(std::uint64_t epoch) {
  if (cached_epoch_ != epoch) {
    cached_epoch_.reset();
    cached_order_ = build_order(order_config_, epoch);
    cached_epoch_ = epoch;
  }
  return cached_order_;
}

std::vector<std::uint32_t> BatchSource::indices(std::uint64_t step) {
  const auto& all = order(epoch_of(step));
  const auto rows = static_cast<std::size_t>(config_.global_batch_size);
  const auto first =
      all.begin() + static_cast<std::ptrdiff_t>(((step - 1) % steps_per_epoch_) * rows);
  return {first, first + static_cast<std::ptrdiff_t>(rows)};
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
}

Batch BatchSource::batch(std::uint64_t step) {
  Batch batch;
  batch.step = step;
  batch.epoch = epoch_of(step);
  batch.indices = indices(step);
  const std::vector<std::int64_t> shape = {config_.global_batch_size, config_.sequence_length};
  batch.input_ids_BL = new_tensor(shape, at::kLong);
  batch.labels_BL = new_tensor(shape, at::kLong);
  batch.instance_mask.resize(batch.indices.size());
  for (std::int64_t row = 0; row < config_.global_batch_size; ++row) fill_row(batch, row);
  batch.digest = batch_digest(batch);
  return batch;
}

}  // namespace olmo::data

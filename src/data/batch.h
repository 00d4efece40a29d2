// The batches of a training: their order, their contents, their digests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/compute/tensor.h"
#include "core/data_position.h"
#include "core/hash.h"
#include "data/dataset.h"
#include "data/order.h"

namespace olmo::data {

inline constexpr std::int64_t kIgnoredLabel = -100;

/// What one optimizer step sees, or some rows of it. A new Batch owns its tensors; B is the number
/// of its rows.
struct Batch {
  std::uint64_t step = 0;  ///< 1-based, over the whole run
  std::uint64_t epoch = 0;
  at::Tensor input_ids_BL;  ///< int64
  at::Tensor labels_BL;  ///< int64; position t holds the label of token t + 1, masked ones and the
                         ///< last column -100
  /// int32, where the document of each token begins in its row; undefined unless attention keeps to
  /// documents.
  at::Tensor document_starts_BL;
  std::vector<std::int64_t> rows;           ///< B row numbers in the step's whole batch
  std::vector<std::uint32_t> indices;       ///< B instance numbers, in the order of the rows
  std::vector<std::uint8_t> instance_mask;  ///< B; 0: the instance filter masked the whole row
  std::vector<Digest> row_digests;          ///< B, see row_digest
  /// Of the whole batch (batch_digest). Zeros in a Batch of some rows, whose owner can form it once
  /// the other ranks have told theirs.
  Digest digest;
};

/// The rows of a batch of `batch_size` that a rank of `world_size` computes, ascending. Micro-batch
/// m has the rows [m * micro_batch, min((m + 1) * micro_batch, batch_size)); a rank has the numbers
/// rank, world_size + rank, 2 * world_size + rank, …, and none where there are too few.
std::vector<std::int64_t> rows_of_rank(std::int64_t batch_size, std::int64_t micro_batch,
                                       std::int64_t rank, std::int64_t world_size);

// The digest of a batch is a tree, because a rank that holds some rows of a batch can hash only
// those; the ranks exchange 32 bytes a row. Numbers are little-endian:
//
//   row   = SHA-256("olmo-batch-row-2", L (u64), instance number (u64), L token ids (u32),
//                   L bytes: 1 where the label counts in the loss, else 0; and 2 more where, in the
//                   middle of the row, a document begins that attention keeps to)
//   batch = SHA-256("olmo-batch-2", B (u64), L (u64), the B digests of the rows, in order)
//
// Neither depends on the names of files or on how the ids are stored there. What the instance
// filter masks has no label that counts, so its mask needs no bytes of its own.

/// Of one row of `batch`.
Digest row_digest(const Batch& batch, std::int64_t row);
/// Of a batch whose rows have these digests.
Digest batch_digest(std::span<const Digest> rows, std::int64_t sequence_length);

/// Where the document of each token begins: a document ends with `eos_token_id`, and what follows
/// the last one is a document, too (OLMo's get_document_lengths, olmo/data/util.py).
void find_document_starts(std::span<const std::int64_t> ids, std::int64_t eos_token_id,
                          std::span<std::int32_t> starts);

/// False if some sequence of tokens repeats back to back `repetition_max_count` times or more, its
/// length (the period) being within [repetition_min_period, repetition_max_period]: OLMo keeps such
/// an instance in the batch and masks all its labels. Repeats are found as by OLMo's
/// `find_periodic_sequences` (olmo/data/util.py), its blind spots included: the ids are cut into
/// rows of `period`, and only a row that equals the whole row before it betrays a run; so a run
/// repeats at least 3 times. ids must not be negative.
bool keep_instance(std::span<const std::int64_t> ids, const InstanceFilterConfig& config);

/// `batch(step)` as a pure function of the config and of where the training begins: resuming needs
/// an integer, not a replay. The order of the epoch last asked for is kept: in memory (4 bytes an
/// instance), or, if it is large and keep_orders_in() was called, as a map of a file.
///
/// An epoch has floor(N / B) steps, the one in which the training begins as many as the rest of it
/// holds; a remainder smaller than B is not seen. (OLMo's loader would hand it out as a short batch
/// without drop_last, which its trainer then refuses.)
class BatchSource {
 public:
  /// Throws Error(kUsage) for a config that contradicts itself, Error(kInput) for bad files or too
  /// few instances for one batch.
  explicit BatchSource(const BatchConfig& config);

  [[nodiscard]] const Dataset& dataset() const noexcept { return dataset_; }
  [[nodiscard]] const BatchConfig& config() const noexcept { return config_; }
  [[nodiscard]] std::uint64_t steps_per_epoch() const noexcept { return batches_.from(0); }

  /// The training begins at another place than the config's: at that of a checkpoint.
  void begin_at(const DataPosition& begin) { config_.begin = begin; }
  /// Where a step begins, and where the training stands after it (core/data_position.h). `step`
  /// counts from 1. The first throws Error(kUsage) for a step that the training began after.
  [[nodiscard]] DataPosition position_of(std::uint64_t step) const;
  [[nodiscard]] DataPosition position_after(std::uint64_t step) const {
    return position_after_step(config_.begin, batches_, step);
  }
  [[nodiscard]] std::uint64_t epoch_of(std::uint64_t step) const { return position_of(step).epoch; }

  /// Instance numbers of a step.
  std::vector<std::uint32_t> indices(std::uint64_t step);
  Batch batch(std::uint64_t step);
  /// Some rows of it, by their numbers in [0, B), in the order asked for; no other row is read.
  Batch batch(std::uint64_t step, std::span<const std::int64_t> rows);

  /// Of the processes that see a folder of order files, one is the maker.
  enum class OrderRole { kMaker, kReader };
  /// Keeps orders of more than `in_memory` instances in files of `folder` (order.h), which the
  /// processes that see it share. A reader waits for the file for two minutes, which is what a
  /// network file system may take to show it, and then throws Error(kFailure); it must ask for a
  /// step only when the maker has returned from make_order_file.
  void keep_orders_in(std::filesystem::path folder, OrderRole role,
                      std::uint64_t in_memory = kInstancesInMemory);
  /// Whether the step's order is in a file that the processes have not shared yet. A training asks
  /// before each step; all ranks get the same answer, whatever batches each has looked at before.
  [[nodiscard]] bool needs_order_file(std::uint64_t step) const;
  /// Every process finds the step's file.
  void order_file_is_shared(std::uint64_t step) { shared_epoch_ = epoch_of(step); }
  /// Whether the step's file can be seen here. For the first rank of a node, which becomes a maker
  /// if its node does not see the folder of rank 0.
  [[nodiscard]] bool finds_order_file(std::uint64_t step) const;
  /// Makes the step's order file unless a sound one is there; this process is a maker from now on,
  /// and looks at each file once.
  /// Returns what to tell the user, if anything.
  std::optional<std::string> make_order_file(std::uint64_t step);
  /// Near the end of an epoch, a maker begins to make the next one's order in a thread of its own,
  /// unless the run ends before, with `last_step`.
  void look_ahead(std::uint64_t step, std::uint64_t last_step);

 private:
  std::optional<std::string> make_order_of(std::uint64_t epoch);
  void read_order(std::uint64_t epoch, std::uint64_t first, std::span<std::uint32_t> out);
  void open_order(std::uint64_t epoch);
  void fill_row(Batch& batch, std::int64_t row) const;

  BatchConfig config_;
  Dataset dataset_;
  OrderConfig order_config_;
  DataBatches batches_;
  std::optional<std::filesystem::path> order_folder_;  ///< if orders lie in files
  OrderRole order_role_ = OrderRole::kMaker;
  std::optional<std::uint64_t> made_epoch_;    ///< whose file this process has made or checked
  std::optional<std::uint64_t> shared_epoch_;  ///< whose file every process finds
  std::optional<std::uint64_t> order_epoch_;   ///< whose order one of the next two holds
  std::vector<std::uint32_t> order_;
  std::optional<OrderFile> order_file_;
  std::optional<std::uint64_t> next_epoch_;  ///< whose order the thread makes
  std::jthread next_order_;
};

}  // namespace olmo::data

#include "train/saver.h"

#include <thread>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "dist/agreement.h"
#include "dist/together.h"
#include "store/checkpoint/checkpoint_folder.h"
#include "train/divergence.h"
#include "train/train_state.h"

namespace olmo::train {
namespace {

std::string way_on(const Recorder& recorder) {
  const bool none = store::list_checkpoints(recorder.run_dir()).empty();
  return recorder.last_checkpoint() + (none ? ", so the training has to begin anew"
                                            : ", and --resume latest goes on from there");
}

}  // namespace

Saver::Saver(const Stepper& stepper, Recorder& recorder, dist::Communicator& ranks, bool resumed)
    : stepper_(stepper),
      config_(stepper.config()),
      recorder_(recorder),
      checkpoints_(ranks.split(0), recorder.run_dir(), stepper.parameter_parts()),
      writer_([this](const auto& snapshot,
                     const auto& options) { return checkpoints_.save(snapshot, options); },
              stepper.policy()),
      resumed_(resumed),
      saved_step_(resumed ? stepper.state().step : -1) {}

void Saver::save_first(const std::vector<store::StateHash>& weights) {
  require_finite_state(stepper_, recorder_);
  const auto hashed = [&] {
    store::CheckpointContents all = contents();
    for (const auto& weight : weights) all.model_digests.push_back(Digest::from_hex(weight.sha256));
    return all;
  };
  writer_.save_beside(hashed, options(false));
  saved_step_ = step();
  first_in_flight_ = true;
}

void Saver::finish_first() {
  if (std::exchange(first_in_flight_, false)) collect();
}

void Saver::save_if_due(bool has_ended) {
  const TrainState& state = stepper_.state();
  const bool periodic =
      state.is_multiple_of(config_.save_interval) && config_.save_num_checkpoints_to_keep != 0;
  const bool whole = state.is_multiple_of(config_.save_interval_unsharded) &&
                     config_.save_num_unsharded_checkpoints_to_keep != 0;
  if (periodic || whole) {
    save_in_background(false);
  } else if (state.is_multiple_of(config_.save_interval_ephemeral)) {
    save_in_background(true);
  } else if (has_ended) {
    collect();
  }
}

void Saver::save_last() {
  constexpr int kTries = 3;
  settle();
  if (saved_step_ == step()) return;
  require_finite_state(stepper_, recorder_);
  for (int tries = 1;; ++tries) {
    try {
      return save_in_place(tries > 1);
    } catch (const std::exception& error) {
      require_agreed(error);
      const std::string last = "step " + std::to_string(step()) + ", the last, could not be saved";
      if (tries == kTries) {
        throw dist::AgreedError(ErrorKind::kFailure,
                                last + ": " + error.what() + "; " + way_on(recorder_));
      }
      recorder_.warn(step(), last + ", trying again: " + error.what());
      std::this_thread::sleep_for(std::chrono::milliseconds(500 * tries));
    }
  }
}

void Saver::save_what_is_whole() {
  try {
    settle();
    if (step() == 0) return;
    dist::together(checkpoints_.ranks(), [&] { recorder_.require_held(); });
    if (saved_step_ == step()) return;
    require_finite_state(stepper_, recorder_);
    save_in_place(true);
    recorder_.say("saved step " + std::to_string(step()) + " all the same");
  } catch (const std::exception&) {  // another error is on its way
  }
}

void Saver::settle() {
  try {
    if (const auto saved = writer_.wait()) finish(*saved);
  } catch (const std::exception& error) {
    saved_step_ = -1;
    recorder_.warn(step(), std::string("a checkpoint could not be saved: ") + error.what());
  }
}

store::CheckpointContents Saver::contents() {
  recorder_.flush();
  const optim::OptimState optim = stepper_.optim_state();
  store::CheckpointContents contents;
  const data::BatchSource& batches = stepper_.batches();
  contents.trainer =
      to_json(stepper_.state(), recorder_.run_id(), config_, batches.config().begin,
              batches.position_after(static_cast<std::uint64_t>(stepper_.state().step)));
  contents.config = to_json(config_);
  contents.model = stepper_.parameters();
  contents.optim = optim.tensors;
  contents.optim_state = to_json(optim.limits);
  return contents;
}

store::SaveOptions Saver::options(bool ephemeral) const {
  return {.ephemeral = ephemeral,
          .overwrite = config_.save_overwrite || resumed_,
          .hash_threads = stepper_.policy().threads};
}

void Saver::save_in_background(bool ephemeral) {
  collect();
  require_finite_state(stepper_, recorder_);
  writer_.save_async([this] { return contents(); }, options(ephemeral));
  saved_step_ = step();
}

void Saver::save_in_place(bool again) {
  auto how = options(false);
  how.overwrite = how.overwrite || again;
  writer_.save_beside([this] { return contents(); }, how);
  store::SavedCheckpoint saved = *writer_.wait();
  saved.stall_seconds = saved.seconds;
  finish(saved);
  saved_step_ = step();
}

void Saver::collect() {
  std::optional<store::SavedCheckpoint> saved;
  try {
    saved = writer_.wait();
  } catch (const std::exception& error) {
    return note_failure(error);
  }
  if (saved) finish(*saved);
}

void Saver::finish(const store::SavedCheckpoint& saved) {
  failures_ = 0;
  saved_ = saved.path;
  recorder_.record_checkpoint({saved.step, saved.path.string(),
                               static_cast<std::int64_t>(saved.bytes), saved.manifest.hex(),
                               saved.seconds, saved.stall_seconds});
  recorder_.event(saved.step, "checkpoint", saved.path.string());
  if (checkpoints_.ranks().rank() != 0) return;
  try {
    for (const auto& deleted : store::apply_retention(
             recorder_.run_dir(), static_cast<int>(config_.save_num_checkpoints_to_keep),
             config_.save_interval_unsharded)) {
      recorder_.record_checkpoint_deleted(deleted);
    }
  } catch (const std::exception& error) {  // the other ranks do not hear of it
    recorder_.warn(step(), std::string("an old checkpoint stays: ") + error.what());
  }
}

/// Where the transport itself has failed on one of several ranks, no later save can come right.
void Saver::require_agreed(const std::exception& error) const {
  const bool together = dynamic_cast<const dist::AgreedError*>(&error) != nullptr;
  if (checkpoints_.ranks().size() > 1 && !together) throw Error(ErrorKind::kFailure, error.what());
}

void Saver::note_failure(const std::exception& error) {
  require_agreed(error);
  const std::string why = error.what();
  saved_step_ = -1;
  ++failures_;
  const auto allowed = config_.save_failures_allowed;
  if (failures_ > allowed) {
    throw dist::AgreedError(ErrorKind::kFailure, "a checkpoint could not be saved: " + why + "; " +
                                                     recorder_.last_checkpoint() +
                                                     " (`save_failures_allowed` is " +
                                                     std::to_string(allowed) + ")");
  }
  recorder_.warn(step(),
                 "a checkpoint could not be saved (failure " + std::to_string(failures_) + " of " +
                     std::to_string(allowed) +
                     " allowed in a row); training goes on, the next save tries again: " + why);
}

}  // namespace olmo::train

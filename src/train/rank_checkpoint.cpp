#include "train/rank_checkpoint.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <random>

#include "core/compute/named_tensors.h"
#include "core/compute/parallel.h"
#include "core/error.h"
#include "core/files/output_file.h"
#include "dist/agreement.h"
#include "dist/exchange.h"
#include "dist/together.h"
#include "sharding/relay.h"
#include "store/checkpoint/checkpoint_draft.h"
#include "store/checkpoint/checkpoint_folder.h"

namespace olmo::train {
namespace {

namespace fs = std::filesystem;

// What rank 0 says before the path of a checkpoint that all are to read.
constexpr char kThisExperiment = '=', kAnyExperiment = '*';

/// What every rank has of a tensor without dimensions.
ParameterPart scalar(const std::string& name) {
  return {.name = name, .shape = {}, .begin = 0, .size = 1};
}

/// The parameter that a tensor of the optimizer, KEY/PARAMETER, belongs to.
std::string parameter_of(const std::string& name) { return name.substr(name.find('/') + 1); }

std::map<std::string, const ParameterPart*> by_name(const ParameterParts& parts) {
  std::map<std::string, const ParameterPart*> found;
  for (const auto& part : parts) found[part.name] = &part;
  return found;
}

/// Adds `tensors` to `held` and returns what the checkpoint says of them.
std::vector<store::TensorOutline> add_tensors(HeldTensors& held, const NamedTensors& tensors,
                                              const ParameterParts& parts) {
  const auto found = by_name(parts);
  std::vector<store::TensorOutline> outlines;
  for (const auto& [name, tensor] : tensors) {
    const ParameterPart part = tensor.dim() == 0 ? scalar(name) : *found.at(parameter_of(name));
    held.add(part, tensor);
    outlines.push_back({name, part.shape, tensor.scalar_type()});
  }
  return outlines;
}

/// The file of rank 0's draft, on every rank, as the offsets of the tensors and the path behind
/// them.
SharedFile tell(dist::Communicator& ranks, const std::optional<store::CheckpointDraft>& draft,
                std::size_t tensors) {
  SharedFile file;
  file.offsets.resize(tensors);
  std::string text;
  if (draft) {
    for (std::size_t i = 0; i < tensors; ++i) file.offsets[i] = draft->tensors()[i].offset;
    const auto bytes = std::as_bytes(std::span(file.offsets));
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    text += draft->file().string();
  }
  text = dist::broadcast_text(ranks, text, 0);
  const auto offsets = std::as_writable_bytes(std::span(file.offsets));
  OLMO_CHECK(text.size() > offsets.size());
  std::memcpy(offsets.data(), text.data(), offsets.size());
  file.path = text.substr(offsets.size());
  return file;
}

/// What of a SavedCheckpoint every rank is told; the path it knows.
struct SavedFacts {
  std::int64_t step;
  Digest manifest, tensors;
  std::uint64_t bytes;
  double seconds;
  bool direct;
};

store::SavedCheckpoint tell(dist::Communicator& ranks, store::SavedCheckpoint saved,
                            const fs::path& run_dir) {
  if (ranks.size() == 1) return saved;
  const auto facts = dist::broadcast_value(ranks,
                                           SavedFacts{saved.step, saved.manifest, saved.tensors,
                                                      saved.bytes, saved.seconds, saved.direct},
                                           0);
  return {.path = store::checkpoint_path(run_dir, facts.step),
          .step = facts.step,
          .manifest = facts.manifest,
          .tensors = facts.tensors,
          .bytes = facts.bytes,
          .seconds = facts.seconds,
          .stall_seconds = facts.seconds,
          .direct = facts.direct};
}

/// The tensors of a checkpoint are not those of the model.
[[noreturn]] void refuse(const store::CheckpointReader& reader, const std::string& what) {
  throw Error(ErrorKind::kInput, reader.file().string() + ": " + what);
}

at::ScalarType type_of(const store::CheckpointDataset& dataset) {
  if (dataset.dtype == "int64") return at::kLong;
  return dataset.dtype == "float64" ? at::kDouble : at::kFloat;
}

}  // namespace

RankCheckpoints::RankCheckpoints(std::unique_ptr<dist::Communicator> ranks, fs::path run_dir,
                                 ParameterParts parts)
    : ranks_(std::move(ranks)), run_dir_(std::move(run_dir)), parts_(std::move(parts)) {}

store::SavedCheckpoint RankCheckpoints::save(const store::CheckpointSnapshot& snapshot,
                                             const store::SaveOptions& options) {
  dist::Communicator& ranks = *ranks_;
  const bool first = ranks.rank() == 0;
  HeldTensors held;
  std::optional<store::CheckpointDraft> draft;
  dist::together(ranks, [&] {
    if (snapshot.missing) std::rethrow_exception(snapshot.missing);
    const auto& contents = snapshot.contents;
    const store::CheckpointOutline outline{.kind = contents.kind,
                                           .trainer = contents.trainer,
                                           .config = contents.config,
                                           .model = add_tensors(held, contents.model, parts_),
                                           .optim = add_tensors(held, contents.optim, parts_),
                                           .optim_state = contents.optim_state};
    const auto& known = contents.model_digests;
    OLMO_CHECK(known.empty() || known.size() == contents.model.size());
    if (first) draft.emplace(run_dir_, outline, options);
  });
  const SharedFile file = tell(ranks, draft, held.sizes.size());
  sharding::Relay relay(ranks, held.sizes, held.ranges, options.hash_threads);
  HeldWriter writer(file, held, relay, snapshot.contents.model_digests);
  dist::throw_if_any(ranks, writer.write());
  const auto proofs = dist::all_gather_text(ranks, writer.proofs());
  store::SavedCheckpoint saved;
  dist::together(ranks, [&] {
    if (!first) return;
    saved = draft->publish(writer.write_tails(proofs));
    saved.direct = std::ranges::any_of(proofs, [](const auto& text) { return text[0] == '1'; });
  });
  return tell(ranks, saved, run_dir_);
}

Start RankCheckpoints::read(const fs::path& checkpoint,
                            const std::optional<std::string>& experiment) {
  Start start;
  const auto reader =
      open(checkpoint, [&](const auto& opened) { start = read_start_documents(opened); });
  if (!experiment || start.saved.experiment_digest == *experiment)
    read_tensors(reader, start.contents);
  return start;
}

NamedTensors RankCheckpoints::read_weights(const fs::path& path) {
  std::string checkpoint;
  dist::decide(*ranks_,
               [&] { checkpoint = fs::absolute(store::resolve_checkpoint(path)).string(); });
  checkpoint = dist::broadcast_text(*ranks_, checkpoint, 0);
  store::CheckpointContents contents;
  contents.kind = store::CheckpointKind::kWeights;
  read_tensors(open(checkpoint, [](const auto&) {}), contents);
  return contents.model;
}

store::CheckpointReader RankCheckpoints::open(
    const fs::path& checkpoint, const std::function<void(const store::CheckpointReader&)>& use) {
  dist::Communicator& ranks = *ranks_;
  std::optional<store::CheckpointReader> reader;
  dist::together(ranks, [&] {
    reader.emplace(checkpoint);
    use(*reader);
  });
  const auto manifests = dist::all_gather_value(ranks, reader->manifest_digest());
  dist::together(ranks, [&] {
    if (manifests.front() == reader->manifest_digest()) return;
    throw Error(ErrorKind::kInput, checkpoint.string() +
                                       ": is another checkpoint here than on rank 0: the manifest "
                                       "has the SHA-256 " +
                                       reader->manifest_digest().hex() + ", expected " +
                                       manifests.front().hex());
  });
  return std::move(*reader);
}

void RankCheckpoints::read_tensors(const store::CheckpointReader& reader,
                                   store::CheckpointContents& contents) {
  dist::Communicator& ranks = *ranks_;
  HeldTensors held;
  std::vector<const store::CheckpointDataset*> tensors;
  std::optional<HeldReader> source;
  dist::together(ranks, [&] {
    const auto found = by_name(parts_);
    for (const auto& dataset : reader.datasets()) {
      if (dataset.dtype == "json") continue;
      const auto slash = dataset.path.find('/', 1);
      const bool optim = dataset.path.substr(0, slash) == "/optim";
      if (optim && contents.kind == store::CheckpointKind::kWeights) continue;
      const std::string name = dataset.path.substr(slash + 1);
      const auto of = found.find(parameter_of(name));
      if (of == found.end()) refuse(reader, dataset.path + " was not expected");
      const ParameterPart part = dataset.shape.empty() ? scalar(name) : *of->second;
      if (part.shape != dataset.shape) {
        refuse(reader, dataset.path + " is " + shape_text(dataset.shape) + ", expected " +
                           shape_text(part.shape));
      }
      const bool whole = ranks.size() == 1 || dataset.shape.empty();
      const at::Tensor tensor =
          new_tensor(whole ? part.shape : std::vector{part.size}, type_of(dataset));
      (optim ? contents.optim : contents.model).push_back({name, tensor});
      held.add(part, tensor);
      tensors.push_back(&dataset);
    }
    if (contents.model.size() != parts_.size()) {
      refuse(reader, "has " + std::to_string(contents.model.size()) + " parameters, expected " +
                         std::to_string(parts_.size()));
    }
    source.emplace(reader, tensors, held);
  });
  sharding::Relay relay(ranks, held.sizes, held.ranges, pool_threads());
  dist::throw_if_any(ranks, source->read(relay));
}

void StartSearch::run(const std::function<void()>& search) {
  dist::Communicator& ranks = checkpoints_.ranks();
  if (ranks.rank() == 0) {
    const auto end = [&] { dist::broadcast_text(ranks, "", 0); };
    try {
      search();
    } catch (...) {
      end();
      throw;
    }
    return end();
  }
  for (std::string asked; !(asked = dist::broadcast_text(ranks, "", 0)).empty();) {
    last_.reset();  // its tensors, before those of the next one
    try {
      last_ = read_together(asked.substr(1), asked.front() == kAnyExperiment);
    } catch (const dist::AgreedError&) {  // rank 0 decides what follows from it
    }
  }
}

Start StartSearch::read(const fs::path& checkpoint, bool any_experiment) {
  const char how = any_experiment ? kAnyExperiment : kThisExperiment;
  dist::broadcast_text(checkpoints_.ranks(), how + fs::absolute(checkpoint).string(), 0);
  return read_together(checkpoint, any_experiment);
}

Start StartSearch::read_together(const fs::path& checkpoint, bool any_experiment) {
  last_path_.clear();
  Start start =
      checkpoints_.read(checkpoint, any_experiment ? std::nullopt : std::optional(experiment_));
  last_path_ = checkpoint;
  return start;
}

std::optional<Start> StartSearch::share(std::optional<Start> found) {
  dist::Communicator& ranks = checkpoints_.ranks();
  if (ranks.size() == 1) return found;
  const bool is_last = found && found->path == last_path_;
  const std::string path = found ? fs::absolute(found->path).string() : "";
  const fs::path chosen = dist::broadcast_text(ranks, path, 0);
  const bool rank_0_has_it = dist::broadcast_value(ranks, is_last, 0);
  if (chosen.empty()) return std::nullopt;
  if (rank_0_has_it) return ranks.rank() == 0 ? std::move(found) : std::move(last_);
  found.reset();
  last_.reset();
  return checkpoints_.read(chosen);
}

void require_shared_folder(dist::Communicator& ranks, const fs::path& run_dir) {
  if (ranks.size() == 1) return;
  std::string token;
  if (ranks.rank() == 0) token = std::to_string(std::random_device{}());
  token = dist::broadcast_text(ranks, token, 0);
  const fs::path probe = run_dir / ("ranks-" + token + ".tmp");
  dist::together(ranks, [&] {
    if (ranks.rank() == 0) write_file_atomically(probe, token);
  });
  std::exception_ptr error;
  try {
    dist::together(ranks, [&] {
      std::ifstream file(probe);
      std::string text;
      if (std::getline(file, text) && text == token) return;
      throw Error(ErrorKind::kUsage,
                  fs::absolute(run_dir).string() +
                      ": does not show what rank 0 writes there; all ranks write checkpoints into "
                      "the run folder, so it must lie on a file system that they share");
    });
  } catch (...) {  // the probe goes first
    error = std::current_exception();
  }
  std::error_code ignored;
  if (ranks.rank() == 0) fs::remove(probe, ignored);
  if (error) std::rethrow_exception(error);
}

}  // namespace olmo::train

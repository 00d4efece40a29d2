#include "train/state_tensors.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "core/hash.h"
#include "core/parallel.h"
#include "dist/exchange.h"
#include "sharding/whole_tensors.h"
#include "train/rank_trace.h"

namespace olmo::train {
namespace {

std::map<std::string, std::size_t> numbers_of(const sharding::RankUnits& units) {
  std::map<std::string, std::size_t> numbers;
  for (const std::string& name : units.layout().names()) numbers.emplace(name, numbers.size());
  return numbers;
}

Digest hash_of(const Policy& policy, const at::Tensor& tensor) {
  return sha256(host_bytes(to_host(policy, tensor)));
}

/// The tensors of a state whose parts lie on several ranks, on their way to their owners.
class Travelling {
 public:
  Travelling(const sharding::RankUnits& units, const std::vector<StateTensor>& tensors) {
    const auto& layout = units.layout();
    const auto parts = layout.parts(units.groups().slice());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (!tensors[i].parameter) continue;
      const auto& place = layout.place(layout.parameters()[*tensors[i].parameter]);
      const auto& part = parts[*tensors[i].parameter];
      numbers_.push_back(i);
      sizes_.push_back(kFloat * place.size);
      ranges_.push_back({kFloat * part.begin, kFloat * (part.begin + part.size)});
      parts_.push_back(host_bytes(tensors[i].owned));
    }
    whole_ = std::make_unique<sharding::WholeTensors>(units.groups().world(), sizes_, ranges_,
                                                      sharding::Direction::kToOwners);
  }

  /// Bytes of the whole tensor with this number in the state.
  [[nodiscard]] std::int64_t size(std::size_t i) const {
    return sizes_[static_cast<std::size_t>(std::ranges::find(numbers_, i) - numbers_.begin())];
  }

  /// Calls `use` with windows of tensors that are this rank's to use, in the order of their bytes,
  /// and with the tensor's number in the state; from several threads, each with tensors of its own.
  void collect(const std::function<void(std::size_t, std::span<const std::byte>)>& use) {
    std::vector<std::size_t> held;  // those that need not travel
    for (std::size_t k = 0; k < numbers_.size(); ++k)
      if (whole_->stays(k) && whole_->is_mine(k)) held.push_back(k);
    for_each_in_parallel(held.size(),
                         [&](std::size_t i) { use(numbers_[held[i]], parts_[held[i]]); });
    const auto error = whole_->collect(parts_, [&](const sharding::Windows& lanes) {
      for_each_in_parallel(lanes.size(), [&](std::size_t lane) {
        for (const auto& window : lanes[lane]) use(numbers_[window.tensor], window.bytes);
      });
    });
    if (error) std::rethrow_exception(error);
  }

 private:
  static constexpr std::int64_t kFloat = 4;
  std::vector<std::size_t> numbers_;  ///< in the state
  std::vector<std::int64_t> sizes_;
  std::vector<sharding::ByteRange> ranges_;
  std::vector<std::span<const std::byte>> parts_;
  std::unique_ptr<sharding::WholeTensors> whole_;
};

/// Of tensors that are whole on this process.
std::vector<Digest> digests_of(const Policy& policy, const std::vector<at::Tensor>& tensors) {
  std::vector<Digest> digests(tensors.size());
  for_each_in_parallel(tensors.size(),
                       [&](std::size_t i) { digests[i] = hash_of(policy, tensors[i]); });
  return digests;
}

/// Those that the ranks made, each of some; the others are zeros.
std::vector<Digest> gather_digests(dist::Communicator& ranks, const std::vector<Digest>& mine) {
  const auto all = dist::all_gather_values(ranks, std::span<const Digest>(mine));
  std::vector<Digest> digests(mine.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] != Digest{}) digests[i % mine.size()] = all[i];
  return digests;
}

}  // namespace

std::vector<StateTensor> state_of_parameters(const std::string& part, const NamedTensors& owned) {
  std::vector<StateTensor> tensors;
  for (std::size_t i = 0; i < owned.size(); ++i)
    tensors.push_back({part, owned[i].name, i, owned[i].tensor});
  return tensors;
}

std::vector<StateTensor> state_of_optimizer(const sharding::RankUnits& units,
                                            const optim::OptimState& owned) {
  const auto numbers = numbers_of(units);
  std::vector<StateTensor> tensors;
  for (const auto& [name, tensor] : owned.tensors) {
    const auto parameter = optim::parameter_of_moment(name);
    tensors.push_back(
        {"optim", name, parameter ? std::optional(numbers.at(*parameter)) : std::nullopt, tensor});
  }
  return tensors;
}

optim::OptimState owned_of(const sharding::RankUnits& units, const optim::OptimState& whole) {
  if (units.groups().ranks() == 1) return whole;
  const auto numbers = numbers_of(units);
  const auto parts = units.layout().parts(units.groups().slice());
  optim::OptimState owned{.tensors = {}, .limits = whole.limits};
  for (const auto& [name, tensor] : whole.tensors) {
    owned.tensors.push_back({name, tensor});
    const auto parameter = optim::parameter_of_moment(name);
    const auto found = parameter ? numbers.find(*parameter) : numbers.end();
    if (found == numbers.end()) continue;
    const auto& place = units.layout().place(units.layout().parameters()[found->second]);
    const auto& part = parts[found->second];
    if (tensor.sizes() == at::IntArrayRef(place.shape))
      owned.tensors.back().tensor = tensor.reshape({-1}).narrow(0, part.begin, part.size);
  }
  return owned;
}

std::vector<store::StateHash> hash_state(const Policy& policy, const sharding::RankUnits& units,
                                         const std::vector<StateTensor>& tensors) {
  std::vector<Digest> digests(tensors.size());
  if (units.groups().ranks() == 1) {
    std::vector<at::Tensor> whole;
    for (const StateTensor& tensor : tensors) whole.push_back(tensor.owned);
    digests = digests_of(policy, whole);
  } else {
    Travelling travelling(units, tensors);
    std::vector<std::optional<Sha256>> hashes(tensors.size());
    travelling.collect([&](std::size_t i, std::span<const std::byte> bytes) {
      if (!hashes[i]) hashes[i].emplace();
      hashes[i]->update(bytes.data(), bytes.size());
    });
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (hashes[i]) digests[i] = hashes[i]->finish();
      if (!tensors[i].parameter) digests[i] = hash_of(policy, tensors[i].owned);
    }
    digests = gather_digests(units.groups().world(), digests);
  }
  std::vector<store::StateHash> hashes;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    hashes.push_back({tensors[i].part, tensors[i].name, digests[i].hex()});
  return hashes;
}

void trace_state(const Policy& policy, const sharding::RankUnits& units, const std::string& prefix,
                 const std::vector<StateTensor>& tensors, OpTrace& trace) {
  std::vector<PlacedDigest> traced;
  std::mutex mutex;
  const auto add = [&](std::size_t i, const at::Tensor& whole) {
    OpTrace own(trace.format());
    own.add(prefix + tensors[i].name, whole);
    const std::lock_guard lock(mutex);
    traced.push_back({static_cast<std::int64_t>(i), own.digests().front()});
  };
  const bool alone = units.groups().ranks() == 1;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const bool is_mine = alone || (!tensors[i].parameter && units.groups().world().rank() == 0);
    if (is_mine) add(i, to_host(policy, tensors[i].owned));
  }
  if (!alone) {
    Travelling travelling(units, tensors);
    std::vector<at::Tensor> whole(tensors.size());
    std::vector<std::size_t> filled(tensors.size());
    travelling.collect([&](std::size_t i, std::span<const std::byte> bytes) {
      if (filled[i] == 0) whole[i] = new_tensor({travelling.size(i)}, at::kByte);
      const auto all = mutable_host_bytes(whole[i]);
      std::ranges::copy(bytes, all.subspan(filled[i]).begin());
      filled[i] += bytes.size();
      if (filled[i] < all.size()) return;
      add(i, whole[i]);
      whole[i].reset();
    });
  }
  gather_trace(units.groups().world(), traced, trace);
}

std::vector<store::StateHash> hash_tensors(const Policy& policy, const std::string& part,
                                           const NamedTensors& tensors) {
  std::vector<at::Tensor> whole;
  for (const auto& [name, tensor] : tensors) whole.push_back(tensor);
  const auto digests = digests_of(policy, whole);
  std::vector<store::StateHash> hashes;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    hashes.push_back({part, tensors[i].name, digests[i].hex()});
  return hashes;
}

}  // namespace olmo::train

#include "train/state_tensors.h"

#include <map>

#include "core/compute/parallel.h"
#include "core/hash.h"
#include "dist/exchange.h"
#include "ops/trace_output.h"
#include "sharding/relay.h"
#include "train/rank_trace.h"

namespace olmo::train {
namespace {

std::map<std::string, std::size_t> numbers_of(const sharding::RankUnits& units) {
  std::map<std::string, std::size_t> numbers;
  for (const std::string& name : units.layout().names()) numbers.emplace(name, numbers.size());
  return numbers;
}

Digest hash_of(const Policy& policy, const at::Tensor& tensor) {
  Sha256 hash;
  read_on_host(policy, tensor, 0, tensor.nbytes(),
               [&](auto bytes) { hash.update(bytes.data(), bytes.size()); });
  return hash.finish();
}

/// The tensors of a state whose parts lie on several ranks.
class InParts {
 public:
  InParts(const sharding::RankUnits& units, const std::vector<StateTensor>& tensors) {
    const auto& layout = units.layout();
    const auto parts = layout.parts(units.groups().slice());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (!tensors[i].parameter) continue;
      const auto& place = layout.place(layout.parameters()[*tensors[i].parameter]);
      const auto& part = parts[*tensors[i].parameter];
      const auto item = static_cast<std::int64_t>(tensors[i].owned.element_size());
      numbers_.push_back(i);
      owned_.push_back(tensors[i].owned);
      sizes_.push_back(place.size * item);
      ranges_.push_back({part.begin * item, (part.begin + part.size) * item});
    }
  }

  /// Updates a hash of each tensor, which `make(bytes)` begins, with the tensor's bytes. Calls
  /// `done` with those that end on this rank, and the tensors' numbers in the state. Collective.
  template <class Make, class Done>
  void hash(const Policy& policy, dist::Communicator& ranks, const Make& make,
            const Done& done) const {
    std::vector<decltype(make(std::int64_t{0}))> hashes;
    for (const auto size : sizes_) hashes.push_back(make(size));
    sharding::Relay relay(ranks, sizes_, ranges_, policy.threads);
    const auto error = relay.run(hashes, [&](const sharding::Stretch& stretch, auto& hash) {
      const auto begin = stretch.range.begin - ranges_[stretch.tensor].begin;
      read_on_host(policy, owned_[stretch.tensor], static_cast<std::size_t>(begin),
                   static_cast<std::size_t>(stretch.range.size()),
                   [&](auto bytes) { update(hash, bytes); });
    });
    if (error) std::rethrow_exception(error);
    for (std::size_t k = 0; k < hashes.size(); ++k)
      if (relay.ends(k)) done(numbers_[k], hashes[k]);
  }

 private:
  static void update(Sha256& hash, std::span<const std::byte> bytes) {
    hash.update(bytes.data(), bytes.size());
  }
  static void update(OutputHash& hash, std::span<const std::byte> bytes) { hash.update(bytes); }

  std::vector<std::size_t> numbers_;  ///< in the state
  std::vector<at::Tensor> owned_;
  std::vector<std::int64_t> sizes_;          ///< bytes of the whole
  std::vector<sharding::ByteRange> ranges_;  ///< of that, what is owned
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

std::vector<store::StateHash> hash_state(const Policy& policy, const sharding::RankUnits& units,
                                         const std::vector<StateTensor>& tensors) {
  std::vector<Digest> digests(tensors.size());
  if (units.groups().ranks() == 1) {
    std::vector<at::Tensor> whole;
    for (const StateTensor& tensor : tensors) whole.push_back(tensor.owned);
    digests = digests_of(policy, whole);
  } else {
    InParts(units, tensors)
        .hash(
            policy, units.groups().world(), [](std::int64_t) { return Sha256(); },
            [&](std::size_t i, const Sha256& hash) { digests[i] = hash.finish(); });
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (!tensors[i].parameter) digests[i] = hash_of(policy, tensors[i].owned);
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
  const auto add = [&](std::size_t i, const auto& add_output) {
    OpTrace own(trace.format());
    add_output(own, prefix + tensors[i].name);
    traced.push_back({static_cast<std::int64_t>(i), own.digests().front()});
  };
  const bool alone = units.groups().ranks() == 1;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const bool is_mine = alone || (!tensors[i].parameter && units.groups().world().rank() == 0);
    if (!is_mine) continue;
    add(i, [&](OpTrace& own, const std::string& name) {
      ops::trace_output(policy, own, name, tensors[i].owned);
    });
  }
  if (!alone) {
    const auto make = [&](std::int64_t size) {
      return OutputHash(trace.format(), static_cast<std::uint64_t>(size));
    };
    const auto add_hash = [&](std::size_t i, OutputHash& hash) {
      add(i, [&](OpTrace& own, const std::string& name) { own.add(name, hash); });
    };
    InParts(units, tensors).hash(policy, units.groups().world(), make, add_hash);
  }
  gather_trace(units.groups().world(), traced, trace);
}

}  // namespace olmo::train

#include "train/owned_tensors.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <numeric>

#include "core/compute/named_tensors.h"
#include "core/error.h"

namespace olmo::train {
namespace {

using sharding::Stretch;

static_assert(store::kPage == sharding::kLegUnit);

std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_zero(std::span<const std::byte> bytes) {
  return bytes.empty() || (bytes[0] == std::byte{0} &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

/// Hashes tensors, in several threads. Zeros, which moments are before the first step, are hashed
/// once of each size: they are two thirds of the first checkpoint.
class Hasher {
 public:
  void add(std::span<const std::byte> bytes, bool zeros, Sha256& hash) {
    if (!zeros) {
      hash.update(bytes.data(), bytes.size());
      return;
    }
    const std::lock_guard lock(mutex_);
    const auto [of_size, is_new] = of_zeros_.try_emplace(bytes.size());
    if (is_new) of_size->second.update(bytes.data(), bytes.size());
    hash = of_size->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::size_t, Sha256> of_zeros_;  ///< by size
};

}  // namespace

void HeldTensors::add(const ParameterPart& part, const at::Tensor& tensor) {
  OLMO_CHECK(tensor.numel() == part.size);
  const auto item = static_cast<std::int64_t>(tensor.element_size());
  const auto elements =
      std::accumulate(part.shape.begin(), part.shape.end(), std::int64_t{1}, std::multiplies<>());
  sizes.push_back(elements * item);
  ranges.push_back({part.begin * item, (part.begin + part.size) * item});
  parts.push_back(mutable_host_bytes(tensor));
}

std::span<std::byte> HeldTensors::at(const Stretch& stretch) const {
  const auto begin = stretch.range.begin - ranges[stretch.tensor].begin;
  return parts[stretch.tensor].subspan(static_cast<std::size_t>(begin),
                                       static_cast<std::size_t>(stretch.range.size()));
}

HeldWriter::HeldWriter(const SharedFile& file, const HeldTensors& held, sharding::Relay& relay,
                       std::span<const Digest> known)
    : file_(file),
      held_(held),
      relay_(relay),
      known_(known),
      zeros_(held.sizes.size()),
      hashes_(held.sizes.size()) {}

std::exception_ptr HeldWriter::write() {
  std::ranges::transform(held_.parts, zeros_.begin(), is_zero);
  auto writing = std::async(std::launch::async, [&] { write_pages(); });
  Hasher hasher;
  auto error = relay_.run(hashes_, [&](const Stretch& stretch, Sha256& hash) {
    if (stretch.tensor < known_.size()) return;
    const bool whole = stretch.range.size() == held_.sizes[stretch.tensor];
    hasher.add(held_.at(stretch), whole && zeros_[stretch.tensor], hash);
  });
  try {
    writing.get();
  } catch (...) {  // the caller's to throw
    error = std::current_exception();
  }
  return error;
}

/// What this rank writes itself.
void HeldWriter::write_pages() {
  std::vector<store::RawRange> ranges;
  for (std::size_t i = 0; i < held_.sizes.size(); ++i) {
    if (!relay_.takes_part(i) || zeros_[i]) continue;
    const auto bytes = held_.parts[i].first(held_.parts[i].size() - tail(i).size());
    const auto begin = static_cast<std::uint64_t>(held_.ranges[i].begin);
    if (!bytes.empty()) ranges.push_back({file_.offsets[i] + begin, bytes});
  }
  const bool alone = relay_.ranks() == 1;
  // The ranks of a machine would wait for each other: a file takes one write through the page cache
  // at a time.
  direct_ = store::write_ranges(file_.path, ranges, alone ? store::kWriters : 1);
  if (!alone) store::RawWriter(file_.path).sync();
}

std::string HeldWriter::proofs() const {
  std::string text(1, direct_ ? '1' : '0');
  for (std::size_t i = 0; i < hashes_.size(); ++i) {
    if (!relay_.ends(i)) continue;
    const Digest digest = i < known_.size() ? known_[i] : hashes_[i].finish();
    text += as_text(std::as_bytes(std::span(digest.bytes)));
    text += as_text(tail(i));
  }
  return text;
}

std::vector<Digest> HeldWriter::write_tails(const std::vector<std::string>& proofs) const {
  std::vector<std::size_t> at(proofs.size(), 1);
  std::vector<Digest> digests(hashes_.size());
  const store::RawWriter out(file_.path);
  for (std::size_t i = 0; i < hashes_.size(); ++i) {
    const auto rank = static_cast<std::size_t>(relay_.last(i));
    const auto proof = std::as_bytes(std::span(proofs[rank])).subspan(at[rank]);
    auto& digest = digests[i].bytes;
    std::memcpy(digest.data(), proof.data(), digest.size());
    const auto pages = whole_pages(i);
    const auto tail = static_cast<std::size_t>(held_.sizes[i] - pages);
    out.write(file_.offsets[i] + static_cast<std::uint64_t>(pages),
              proof.subspan(digest.size(), tail));
    at[rank] += digest.size() + tail;
  }
  return digests;
}

/// Bytes of a tensor that share no page with others.
std::int64_t HeldWriter::whole_pages(std::size_t tensor) const {
  constexpr auto kPage = static_cast<std::int64_t>(store::kPage);
  return file_.offsets[tensor] % store::kPage == 0 ? held_.sizes[tensor] / kPage * kPage : 0;
}

/// What of a tensor's last bytes lies here and is left to rank 0.
std::span<const std::byte> HeldWriter::tail(std::size_t tensor) const {
  const auto& [begin, end] = held_.ranges[tensor];
  if (end < held_.sizes[tensor]) return {};
  const auto pages = whole_pages(tensor);
  OLMO_CHECK(begin <= pages);  // small tensors, which begin anywhere, are whole on a rank
  return held_.at({tensor, {pages, end}});
}

HeldReader::HeldReader(const store::CheckpointReader& reader,
                       std::vector<const store::CheckpointDataset*> tensors,
                       const HeldTensors& held)
    : reader_(reader), in_(reader.file()), tensors_(std::move(tensors)), held_(held) {}

std::exception_ptr HeldReader::read(sharding::Relay& relay) const {
  const auto read = [&](const Stretch& stretch, Sha256& hash) {
    const auto& dataset = *tensors_[stretch.tensor];
    in_.read_and_hash(dataset.offset + static_cast<std::uint64_t>(stretch.range.begin),
                      held_.at(stretch), hash);
    if (stretch.range.end == held_.sizes[stretch.tensor])
      reader_.require_digest(dataset, hash.finish());
  };
  std::vector<Sha256> hashes(tensors_.size());
  auto error = relay.run(hashes, read);
  if (error) return error;
  try {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (held_.ranges[i].size() < held_.sizes[i] || relay.takes_part(i)) continue;
      Sha256 hash;  // of a copy
      read({i, held_.ranges[i]}, hash);
    }
  } catch (...) {  // the caller's to throw
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace olmo::train

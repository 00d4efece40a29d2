#include "train/owned_tensors.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <future>
#include <numeric>

#include "core/error.h"
#include "core/named_tensors.h"
#include "core/parallel.h"

namespace olmo::train {
namespace {

using sharding::WholeTensors;
using sharding::Window;
using sharding::Windows;

static_assert(store::kPage == sharding::kWindowUnit);

/// Does all of `tasks` at the same time.
void in_threads(const std::vector<std::function<void()>>& tasks) {
  std::vector<std::future<void>> running;
  for (const auto& task : tasks) running.push_back(std::async(std::launch::async, task));
  for (auto& each : running) each.wait();
  for (auto& each : running) each.get();
}

std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

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

OwnedTensors::OwnedTensors(const SharedFile& file, const HeldTensors& held)
    : file_(file), held_(held), out_(file.path), progress_(held.sizes.size()) {}

void OwnedTensors::write(const Windows& windows) {
  std::vector<std::function<void()>> tasks;
  for (const auto& lane : windows) {
    if (!lane.empty()) tasks.emplace_back([&] { hash(lane); });
  }
  if (tasks.empty()) return;
  tasks.emplace_back([&] {
    for (const auto& lane : windows) {
      for (const auto& window : lane) write_pages(window);
    }
  });
  in_threads(tasks);
}

void OwnedTensors::write_those_held(const WholeTensors& whole, int hash_threads) {
  std::vector<store::RawRange> ranges;
  std::vector<std::size_t> tensors;
  for (std::size_t i = 0; i < held_.sizes.size(); ++i) {
    if (!whole.is_mine(i) || !whole.stays(i)) continue;
    const std::span<const std::byte> bytes = held_.parts[i];
    const auto pages = static_cast<std::size_t>(whole_pages(i));
    ranges.push_back({file_.offsets[i], bytes, bytes.size() - pages});
    progress_[i].tail = as_text(bytes.subspan(pages));
    tensors.push_back(i);
  }
  const auto written = store::write_and_hash(file_.path, ranges, hash_threads);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    progress_[tensors[i]].digest = written.digests[i];
  direct_ = direct_ || written.direct;
}

std::string OwnedTensors::proofs(const WholeTensors& whole) const {
  std::string text(1, direct_ ? '1' : '0');
  for (std::size_t i = 0; i < progress_.size(); ++i) {
    if (!whole.is_mine(i)) continue;
    text += as_text(std::as_bytes(std::span(progress_[i].digest.bytes)));
    text += progress_[i].tail;
  }
  return text;
}

std::vector<Digest> OwnedTensors::write_tails(const std::vector<std::string>& proofs,
                                              const WholeTensors& whole) {
  std::vector<std::size_t> at(proofs.size(), 1);
  std::vector<Digest> digests(progress_.size());
  for (std::size_t i = 0; i < progress_.size(); ++i) {
    const auto rank = static_cast<std::size_t>(whole.owner(i));
    const auto proof = std::as_bytes(std::span(proofs[rank])).subspan(at[rank]);
    auto& digest = digests[i].bytes;
    std::memcpy(digest.data(), proof.data(), digest.size());
    const auto pages = whole_pages(i);
    const auto tail = static_cast<std::size_t>(held_.sizes[i] - pages);
    out_.write(file_.offsets[i] + static_cast<std::uint64_t>(pages),
               proof.subspan(digest.size(), tail));
    at[rank] += digest.size() + tail;
  }
  return digests;
}

/// Bytes of a tensor that share no page with others.
std::int64_t OwnedTensors::whole_pages(std::size_t tensor) const {
  constexpr auto kPage = static_cast<std::int64_t>(store::kPage);
  return file_.offsets[tensor] % store::kPage == 0 ? held_.sizes[tensor] / kPage * kPage : 0;
}

void OwnedTensors::hash(const std::vector<Window>& lane) {
  for (const auto& [tensor, begin, bytes] : lane) {
    Progress& progress = progress_[tensor];
    progress.hash.update(bytes.data(), bytes.size());
    const auto end = begin + static_cast<std::int64_t>(bytes.size());
    if (end < held_.sizes[tensor]) continue;
    const auto pages = std::max(begin, whole_pages(tensor));
    progress.tail = as_text(bytes.subspan(static_cast<std::size_t>(pages - begin)));
    progress.digest = progress.hash.finish();
  }
}

void OwnedTensors::write_pages(const Window& window) {
  const auto end = std::min(window.begin + static_cast<std::int64_t>(window.bytes.size()),
                            whole_pages(window.tensor));
  if (end <= window.begin) return;
  out_.write(file_.offsets[window.tensor] + static_cast<std::uint64_t>(window.begin),
             window.bytes.first(static_cast<std::size_t>(end - window.begin)));
  direct_ = direct_ || out_.direct();
}

TensorSource::TensorSource(const store::CheckpointReader& reader,
                           std::vector<const store::CheckpointDataset*> tensors)
    : reader_(reader), in_(reader.file()), tensors_(std::move(tensors)), hashes_(tensors_.size()) {}

void TensorSource::read(const Windows& windows) {
  std::vector<std::function<void()>> tasks;
  for (const auto& lane : windows) {
    if (lane.empty()) continue;
    tasks.emplace_back([&] {
      for (const auto& window : lane) read(window);
    });
  }
  in_threads(tasks);
}

void TensorSource::read_those_held(const WholeTensors& whole, const HeldTensors& held) {
  std::vector<std::size_t> own;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (whole.is_mine(i) && whole.stays(i)) own.push_back(i);
  }
  const auto order = largest_first(own.size(), [&](std::size_t i) { return held.sizes[own[i]]; });
  for_each_in_parallel(order.size(), [&](std::size_t i) {
    const std::size_t tensor = own[order[i]];
    reader_.require_digest(*tensors_[tensor],
                           in_.read_and_hash(tensors_[tensor]->offset, held.parts[tensor]));
  });
}

void TensorSource::read(const Window& window) {
  const auto& dataset = *tensors_[window.tensor];
  in_.read(dataset.offset + static_cast<std::uint64_t>(window.begin), window.bytes);
  auto& hash = hashes_[window.tensor];
  hash.update(window.bytes.data(), window.bytes.size());
  if (static_cast<std::uint64_t>(window.begin) + window.bytes.size() == dataset.bytes)
    reader_.require_digest(dataset, hash.finish());
}

}  // namespace olmo::train

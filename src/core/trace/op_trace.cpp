#include "core/trace/op_trace.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "core/compute/named_tensors.h"
#include "core/compute/parallel.h"
#include "core/error.h"

namespace olmo {
namespace {

constexpr std::size_t kPiece = kTracePiece;

std::size_t pieces_of(std::uint64_t bytes) {
  return static_cast<std::size_t>(trace_pieces(static_cast<std::int64_t>(bytes)));
}

void add_to(TraceSums& sums, std::span<const std::byte> bytes) {
  constexpr std::size_t kBlock = sizeof(TraceSums);
  static_assert(kBlock == kOutputBlock);
  const auto add = [&](const std::byte* block) {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kTraceSums; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, block + i * sizeof word, sizeof word);
      sums[i] = trace_sum(sums[i], word, i);
    }
  };
  // The memory decides the speed. Fetched ahead, it comes 1.6 times as fast: the processor's own
  // prefetching ends with each page.
  constexpr std::size_t kAhead = 4096;
  std::size_t at = 0;
  for (; at + kBlock <= bytes.size(); at += kBlock) {
    __builtin_prefetch(bytes.data() + at + kAhead);
    add(bytes.data() + at);
  }
  if (at < bytes.size()) {
    std::byte rest[kBlock] = {};
    std::memcpy(rest, bytes.data() + at, bytes.size() - at);
    add(rest);
  }
}

TraceSums sums_of(std::span<const std::byte> bytes) {
  TraceSums sums{};
  add_to(sums, bytes);
  return sums;
}

Sha256& update(Sha256& all, const Digest& piece) {
  return all.update(piece.bytes.data(), piece.bytes.size());
}

Sha256& update(Sha256& all, const TraceSums& piece) {
  for (const std::uint64_t sum : piece) all.update_u64(sum);
  return all;
}

/// SHA-256 over the size and what is known of pieces of it.
template <class Piece>
Digest digest_of(std::uint64_t size, std::span<const Piece> pieces) {
  Sha256 all;
  all.update_u64(size);
  for (const auto& piece : pieces) update(all, piece);
  return all.finish();
}

/// Of what `hash` gives of pieces: several threads can do that.
template <class Hash>
Digest digest_of(std::span<const std::byte> bytes, const Hash& hash) {
  using Piece = decltype(hash(bytes));
  std::vector<Piece> pieces(pieces_of(bytes.size()));
  for_each_in_parallel(pieces.size(), [&](std::size_t i) {
    pieces[i] = hash(bytes.subspan(i * kPiece, std::min(kPiece, bytes.size() - i * kPiece)));
  });
  return digest_of<Piece>(bytes.size(), pieces);
}

}  // namespace

OutputHash::OutputHash(TraceFormat format, std::uint64_t size) : format_(format), left_(size) {
  all_.update_u64(size);
}

void OutputHash::update(std::span<const std::byte> bytes) {
  OLMO_CHECK(bytes.size() <= left_ && (bytes.size() == left_ || bytes.size() % kOutputBlock == 0));
  left_ -= bytes.size();
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(bytes.size(), kPiece - in_piece_));
    if (format_ == TraceFormat::kSums)
      add_to(sums_, part);
    else
      piece_.update(part.data(), part.size());
    in_piece_ += part.size();
    bytes = bytes.subspan(part.size());
    if (in_piece_ == kPiece) end_piece();
  }
}

void OutputHash::end_piece() {
  if (format_ == TraceFormat::kSums)
    olmo::update(all_, std::exchange(sums_, {}));
  else
    olmo::update(all_, std::exchange(piece_, Sha256()).finish());
  in_piece_ = 0;
}

Digest OutputHash::finish() {
  OLMO_CHECK(left_ == 0);
  if (in_piece_ > 0) end_piece();
  return all_.finish();
}

void OpTrace::add(std::string_view operation, Digest digest) {
  if (format_ == TraceFormat::kSums) digest = marked(digest);
  digests_.push_back({prefix_ + std::string(operation), digest});
}

void OpTrace::add(std::string_view operation, const at::Tensor& output) {
  const at::Tensor dense = output.contiguous();
  const auto bytes = host_bytes(dense);
  add(operation,
      format_ == TraceFormat::kSums
          ? digest_of(bytes, sums_of)
          : digest_of(bytes, [](std::span<const std::byte> piece) { return sha256(piece); }));
}

void OpTrace::add(std::string_view operation, std::uint64_t size,
                  std::span<const TraceSums> pieces) {
  OLMO_CHECK(format_ == TraceFormat::kSums && pieces.size() == pieces_of(size));
  add(operation, digest_of(size, pieces));
}

void OpTrace::add(std::string_view operation, double value) {
  add(operation, Sha256().update_u64(std::bit_cast<std::uint64_t>(value)).finish());
}

OpScope::OpScope(OpTrace* trace, std::string_view name) : trace_(trace) {
  if (trace_ == nullptr) return;
  outer_ = trace_->prefix_.size();
  trace_->prefix_ += name;
}

OpScope::~OpScope() {
  if (trace_ != nullptr) trace_->prefix_.resize(outer_);
}

}  // namespace olmo

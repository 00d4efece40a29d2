#include "core/op_trace.h"

#include <bit>

#include "core/error.h"
#include "core/named_tensors.h"
#include "core/parallel.h"

namespace olmo {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;

/// SHA-256 over the SHA-256 of pieces of 1 MiB: those can be hashed by several threads.
Digest digest_of(std::span<const std::byte> bytes) {
  std::vector<Digest> pieces((bytes.size() + kPiece - 1) / kPiece);
  for_each_in_parallel(pieces.size(), [&](std::size_t i) {
    pieces[i] = sha256(bytes.subspan(i * kPiece, std::min(kPiece, bytes.size() - i * kPiece)));
  });
  Sha256 all;
  all.update_u64(bytes.size());
  for (const Digest& piece : pieces) all.update(piece.bytes.data(), piece.bytes.size());
  return all.finish();
}

}  // namespace

void OpTrace::add(std::string_view operation, const at::Tensor& output) {
  const at::Tensor dense = output.contiguous();
  digests_.push_back({prefix_ + std::string(operation), digest_of(host_bytes(dense))});
}

void OpTrace::add(std::string_view operation, double value) {
  digests_.push_back({prefix_ + std::string(operation),
                      Sha256().update_u64(std::bit_cast<std::uint64_t>(value)).finish()});
}

OpScope::OpScope(OpTrace* trace, std::string_view name) : trace_(trace) {
  if (trace_ == nullptr) return;
  outer_ = trace_->prefix_.size();
  trace_->prefix_ += name;
}

OpScope::~OpScope() {
  if (trace_ != nullptr) trace_->prefix_.resize(outer_);
}

std::optional<TraceDifference> first_difference(std::span<const OpDigest> a,
                                                std::span<const OpDigest> b) {
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i >= a.size()) return TraceDifference{b[i].operation, "only the second trace has it"};
    if (i >= b.size()) return TraceDifference{a[i].operation, "only the first trace has it"};
    if (a[i].operation != b[i].operation) {
      return TraceDifference{a[i].operation,
                             "the second trace has " + b[i].operation + " in its place"};
    }
    if (a[i].digest != b[i].digest) return TraceDifference{a[i].operation, "its output differs"};
  }
  return std::nullopt;
}

}  // namespace olmo

#include "dist/together.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "dist/agreement.h"
#include "dist/exchange.h"

namespace olmo::dist {
namespace {

constexpr std::int32_t kNone = 0;  // no ErrorKind has this number

/// An error in words.
struct Told {
  std::int32_t kind = kNone;
  std::string text;
};

Told told(const std::exception_ptr& error) {
  if (!error) return {};
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    return {static_cast<std::int32_t>(known.kind()), known.what()};
  } catch (const std::exception& other) {  // no memory, no thread
    return {static_cast<std::int32_t>(ErrorKind::kFailure), other.what()};
  }
}

}  // namespace

void throw_if_any(Communicator& ranks, const std::exception_ptr& mine) {
  if (ranks.size() == 1) {
    if (mine) std::rethrow_exception(mine);
    return;
  }
  const Told own = told(mine);
  const auto kinds = all_gather_value(ranks, own.kind);
  const auto failed = [](std::int32_t kind) { return kind != kNone; };
  const auto first = std::ranges::find_if(kinds, failed);
  if (first == kinds.end()) return;
  const auto rank = static_cast<int>(first - kinds.begin());
  const std::string text = broadcast_text(ranks, own.text, rank);
  const bool all = std::ranges::all_of(kinds, failed);
  throw AgreedError(static_cast<ErrorKind>(*first),
                    all ? text : "rank " + std::to_string(rank) + ": " + text);
}

void decide(Communicator& ranks, const std::function<void()>& work) {
  if (ranks.size() == 1) return work();
  std::exception_ptr mine;
  if (ranks.rank() == 0) {
    try {
      work();
    } catch (...) {  // carried to all ranks
      mine = std::current_exception();
    }
  }
  const Told own = told(mine);
  const std::int32_t kind = broadcast_value(ranks, own.kind, 0);
  if (kind == kNone) return;
  throw AgreedError(static_cast<ErrorKind>(kind), broadcast_text(ranks, own.text, 0));
}

}  // namespace olmo::dist

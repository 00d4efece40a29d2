#include "data/order.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
#include <memory>
#include <numeric>

#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/compute/parallel.h"
#include "core/compute/random.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/files/output_file.h"
#include "core/hash.h"

namespace olmo::data {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little,
              "order files are written and mapped as they are: little-endian");

constexpr char kFormat[] = "olmo-harness epoch order";
constexpr int kVersion = 1;
constexpr std::uint64_t kPiece = std::uint64_t{16} << 20;  ///< numbers
constexpr std::uint64_t kLargestSidecar = 4096;            ///< bytes

void check(const OrderConfig& config, std::uint64_t epoch) {
  if (config.instances >= std::numeric_limits<std::uint32_t>::max()) {
    throw Error(ErrorKind::kInput, "data order: " + std::to_string(config.instances) +
                                       " instances, expected fewer than 2^32 - 1 (OLMo's order has "
                                       "32-bit numbers); split the data set");
  }
  if (config.seed > std::numeric_limits<std::uint64_t>::max() - epoch) {
    throw Error(ErrorKind::kUsage,
                "data order: seed " + std::to_string(config.seed) + " plus epoch exceeds 64 bits");
  }
}

/// Numbers that a shuffle reaches all over. Pages of 2 MiB, where the system gives them, spare it
/// half of its time, which are walks through page tables.
class Numbers {
 public:
  explicit Numbers(std::uint64_t count) : count_(count) {
    constexpr std::size_t kHugePage = std::size_t{2} << 20;
    const std::size_t bytes = (count * sizeof(std::uint32_t) / kHugePage + 1) * kHugePage;
    data_.reset(static_cast<std::uint32_t*>(std::aligned_alloc(kHugePage, bytes)));
    if (!data_) throw std::bad_alloc();
    ::madvise(data_.get(), bytes, MADV_HUGEPAGE);  // a wish: without, it is slower
  }
  [[nodiscard]] std::span<std::uint32_t> all() const { return {data_.get(), count_}; }

 private:
  struct Free {
    void operator()(std::uint32_t* data) const noexcept { std::free(data); }
  };
  std::uint64_t count_;
  std::unique_ptr<std::uint32_t, Free> data_;
};

std::uint64_t pieces_of(std::uint64_t count) { return (count + kPiece - 1) / kPiece; }

void throw_if_stopped(const std::stop_token& stop) {
  if (stop.stop_requested())
    throw Error(ErrorKind::kFailure, "data order: it was no longer wanted");
}

/// build_order into memory of this size; `threads` share what can be shared.
void fill_order(const OrderConfig& config, std::uint64_t epoch, std::span<std::uint32_t> out,
                const std::stop_token& stop, int threads) {
  const auto part = [&](std::uint64_t i) {
    return out.subspan(i * kPiece, std::min(kPiece, out.size() - i * kPiece));
  };
  for_each_in_parallel(
      pieces_of(out.size()),
      [&](std::size_t i) {
        const auto numbers = part(i);
        std::iota(numbers.begin(), numbers.end(), static_cast<std::uint32_t>(i * kPiece));
      },
      threads);
  if (!config.shuffle) return;
  Pcg64 random(config.seed + epoch);
  for (std::size_t size = out.size(); size > 1;) {
    throw_if_stopped(stop);
    const std::size_t end = size > kPiece ? size - kPiece : 1;
    random.shuffle_down_to(out.first(size), end);
    size = end;
  }
}

/// The digest of pieces, whose numbers `read(first, out)` gives.
template <typename Read>
std::string digest_of_pieces(std::uint64_t count, int threads, const Read& read) {
  constexpr std::uint64_t kBlock = std::uint64_t{1} << 18;
  std::vector<Digest> pieces(pieces_of(count));
  for_each_in_parallel(
      pieces.size(),
      [&](std::size_t i) {
        Sha256 hash;
        std::vector<std::uint32_t> block(kBlock);
        const std::uint64_t end = std::min((i + 1) * kPiece, count);
        for (std::uint64_t at = i * kPiece; at < end; at += kBlock) {
          const auto numbers = std::span(block).first(std::min(kBlock, end - at));
          read(at, numbers);
          hash.update(numbers.data(), numbers.size_bytes());
        }
        pieces[i] = hash.finish();
      },
      threads);
  Sha256 hash;
  for (const Digest& piece : pieces) hash.update(piece.bytes.data(), piece.bytes.size());
  return hash.finish().hex();
}

Json facts_of(const OrderConfig& config, std::uint64_t epoch) {
  return {{"format", kFormat},   {"version", kVersion}, {"instances", config.instances},
          {"seed", config.seed}, {"epoch", epoch},      {"shuffle", config.shuffle}};
}

fs::path facts_path(const fs::path& order) {
  fs::path path = order;
  path += ".json";
  return path;
}

/// A file that only its owner, who is this user, may have written; no link.
bool is_ours(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         status.st_uid == ::geteuid() && (status.st_mode & S_IWOTH) == 0;
}

/// What the sidecar says, if it is the order's of this config; null if not, whatever is wrong.
Json read_facts(const fs::path& order, const OrderConfig& config, std::uint64_t epoch) {
  const fs::path path = facts_path(order);
  std::error_code error;
  if (!is_ours(path) || fs::file_size(path, error) > kLargestSidecar) return nullptr;
  try {
    Json facts = read_json_file(path);
    if (!facts.is_object() || !facts.contains("pieces_sha256")) return nullptr;
    const Json digest = facts["pieces_sha256"];
    facts.erase("pieces_sha256");
    return facts == facts_of(config, epoch) ? digest : Json();
  } catch (const Error&) {
    return nullptr;
  }
}

void write_order(const fs::path& path, const OrderConfig& config, std::uint64_t epoch,
                 const std::stop_token& stop, int threads) {
  const Numbers numbers(config.instances);
  const auto all = numbers.all();
  fill_order(config, epoch, all, stop, threads);
  OutputFile file(path);
  for (std::uint64_t at = 0; at < all.size(); at += kPiece) {
    throw_if_stopped(stop);
    const auto piece = std::as_bytes(all.subspan(at, std::min(kPiece, all.size() - at)));
    file.append({reinterpret_cast<const char*>(piece.data()), piece.size()});
  }
  file.publish();
  Json facts = facts_of(config, epoch);
  facts["pieces_sha256"] =
      digest_of_pieces(all.size(), threads, [&](std::uint64_t first, std::span<std::uint32_t> out) {
        std::ranges::copy(all.subspan(first, out.size()), out.begin());
      });
  write_file_atomically(facts_path(path), json_text(facts, 2) + "\n");
}

}  // namespace

std::vector<std::uint32_t> build_order(const OrderConfig& config, std::uint64_t epoch) {
  check(config, epoch);
  std::vector<std::uint32_t> order(config.instances);
  fill_order(config, epoch, order, {}, 1);
  return order;
}

fs::path order_path(const fs::path& folder, std::uint64_t epoch) {
  return folder / ("global_indices.epoch" + std::to_string(epoch) + ".npy");
}

void OrderFile::read(std::uint64_t first, std::span<std::uint32_t> out) const {
  OLMO_CHECK(first <= size_ && out.size() <= size_ - first);
  copy_mapped(file_, first * sizeof(std::uint32_t), std::as_writable_bytes(out));
  file_.check_not_cut();
  const auto wrong =
      std::ranges::find_if(out, [&](std::uint32_t number) { return number >= size_; });
  if (wrong == out.end()) return;
  throw Error(ErrorKind::kInput,
              file_.path().string() + ": number " +
                  std::to_string(first + static_cast<std::uint64_t>(wrong - out.begin())) + " is " +
                  std::to_string(*wrong) + ", expected one below " + std::to_string(size_) +
                  ": the file was altered; remove it, and it is made again");
}

std::string OrderFile::pieces_sha256(int threads) const {
  return digest_of_pieces(size_, threads, [&](std::uint64_t first, std::span<std::uint32_t> out) {
    copy_mapped(file_, first * sizeof(std::uint32_t), std::as_writable_bytes(out));
  });
}

std::optional<OrderFile> open_order_file(const fs::path& folder, const OrderConfig& config,
                                         std::uint64_t epoch) {
  check(config, epoch);
  const fs::path path = order_path(folder, epoch);
  if (!is_ours(path) || read_facts(path, config, epoch).is_null()) return std::nullopt;
  OrderFile file(path);
  if (file.file_.bytes().size() != config.instances * sizeof(std::uint32_t)) return std::nullopt;
  return file;
}

std::optional<std::string> make_order_file(const fs::path& folder, const OrderConfig& config,
                                           std::uint64_t epoch, const std::stop_token& stop,
                                           int threads) {
  const fs::path path = order_path(folder, epoch);
  std::string why = " was not there";
  if (const auto file = open_order_file(folder, config, epoch)) {
    const Json recorded = read_facts(path, config, epoch);
    if (recorded == file->pieces_sha256(threads)) return std::nullopt;
    why = " does not hold what its sidecar says";
  } else if (fs::exists(fs::symlink_status(path))) {
    why = " is cut, of another run, or not of this user";
  }
  make_folders(folder);
  // A sidecar never stands beside an order that it does not describe; and neither the permissions
  // of what lies there nor where a link leads is taken over.
  remove_order_file(folder, epoch);
  write_order(path, config, epoch, stop, threads);
  return path.string() + why;
}

void remove_order_file(const fs::path& folder, std::uint64_t epoch) {
  std::error_code ignored;
  fs::remove(facts_path(order_path(folder, epoch)), ignored);
  fs::remove(order_path(folder, epoch), ignored);
}

}  // namespace olmo::data

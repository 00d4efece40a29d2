#include "data/documents/line_writer.h"

#include <string>
#include <vector>

#include <zlib.h>
#include <zstd.h>

#include "core/compute/parallel.h"
#include "core/error.h"
#include "core/files/output_file.h"

namespace olmo::data {
namespace {

constexpr std::size_t kBlock = 1 << 20;

using Compress = std::string (*)(const std::string&, Effort);

std::string gzip(const std::string& block, Effort effort) {
  z_stream stream{};
  const int level = effort == Effort::kUsual ? 6 : 1;
  if (deflateInit2(&stream, level, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw Error(ErrorKind::kFailure, "zlib cannot be initialised");
  std::string out(deflateBound(&stream, static_cast<uLong>(block.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(block.data()));
  stream.avail_in = static_cast<uInt>(block.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int ended = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  OLMO_CHECK(ended == Z_STREAM_END);
  return out;
}

std::string zstandard(const std::string& block, Effort effort) {
  std::string out(ZSTD_compressBound(block.size()), '\0');
  const std::size_t size = ZSTD_compress(out.data(), out.size(), block.data(), block.size(),
                                         effort == Effort::kUsual ? 3 : 1);
  if (ZSTD_isError(size) != 0)
    throw Error(ErrorKind::kFailure, std::string("libzstd: ") + ZSTD_getErrorName(size));
  out.resize(size);
  return out;
}

Compress compress_for(const std::filesystem::path& path) {
  if (path.extension() == ".gz") return gzip;
  if (path.extension() == ".zst") return zstandard;
  return nullptr;
}

}  // namespace

struct LineWriter::State {
  State(const std::filesystem::path& path, int threads_, Effort effort_)
      : file(path), compress(compress_for(path)), threads(threads_), effort(effort_) {}

  void append(std::string_view bytes) {
    hash.update(bytes);
    file.append(bytes);
  }

  /// Compresses the blocks and writes them, in their order.
  void write_blocks() {
    for_each_in_parallel(
        blocks.size(), [&](std::size_t i) { blocks[i] = compress(blocks[i], effort); }, threads);
    for (const std::string& block : blocks) append(block);
    blocks.clear();
  }

  OutputFile file;
  Sha256 hash;
  Compress compress;
  int threads;
  Effort effort;
  std::string open;                 ///< lines of a block that is not full
  std::vector<std::string> blocks;  ///< full ones
  bool has_blocks = false;
};

LineWriter::LineWriter(const std::filesystem::path& path, int threads, Effort effort)
    : state_(std::make_unique<State>(path, threads, effort)) {}
LineWriter::~LineWriter() = default;

void LineWriter::write(std::string_view line) {
  State& state = *state_;
  state.open.append(line);
  state.open += '\n';
  if (state.open.size() < kBlock) return;
  state.has_blocks = true;
  if (state.compress == nullptr) {
    state.append(state.open);
    state.open.clear();
    return;
  }
  state.blocks.push_back(std::move(state.open));
  state.open.clear();
  // Several for each thread, for one may be slower than another.
  if (std::ssize(state.blocks) >= std::ptrdiff_t{4} * state.threads) state.write_blocks();
}

Digest LineWriter::finish() {
  State& state = *state_;
  if (state.compress == nullptr) {
    state.append(state.open);
  } else {
    // A file of nothing has one block, too: no bytes at all are no gzip file.
    if (!state.open.empty() || !state.has_blocks) state.blocks.push_back(std::move(state.open));
    state.write_blocks();
  }
  state.open.clear();
  state.file.finish();
  return state.hash.finish();
}

void LineWriter::publish() { state_->file.publish(); }

}  // namespace olmo::data

#include "data/byte_source.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <zlib.h>
#include <zstd.h>

#include "core/error.h"
#include "core/input_file.h"

namespace olmo::data {
namespace {

constexpr std::size_t kFileBlock = 1 << 18;
constexpr std::string_view kGzipMagic = "\x1f\x8b";
constexpr std::string_view kZstdMagic = "\x28\xb5\x2f\xfd";

/// The raw file, read in blocks and hashed on the way.
class RawFile {
 public:
  explicit RawFile(const std::filesystem::path& path)
      : file_(path, InputFile::Pipes::kRead), block_(kFileBlock) {}

  /// What is read but not consumed; reads the next block if that is nothing. Empty at the end of
  /// the file.
  std::string_view available() {
    if (begin_ == end_ && !at_end_) fill();
    return {block_.data() + begin_, end_ - begin_};
  }
  void consume(std::size_t size) {
    begin_ += size;
    position_ += size;
  }
  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }
  [[nodiscard]] std::uint64_t size() const { return file_.size(); }
  [[nodiscard]] std::uint64_t position() const { return position_; }
  Digest digest() { return hash_.finish(); }

 private:
  void fill() {
    begin_ = 0;
    end_ = file_.read(block_);
    at_end_ = end_ == 0;
    hash_.update(block_.data(), end_);
  }

  InputFile file_;
  std::vector<char> block_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t position_ = 0;
  bool at_end_ = false;
  Sha256 hash_;
};

[[noreturn]] void fail_at(const RawFile& file, const std::string& what) {
  throw Error(ErrorKind::kInput, file.path().string() + ": " + what + " at byte " +
                                     std::to_string(file.position()) + " of " +
                                     std::to_string(file.size()));
}

/// gzip (RFC 1952), member after member; zero bytes after the last one are padding.
class GzipStream {
 public:
  GzipStream() {
    if (inflateInit2(&stream_, MAX_WBITS + 16) != Z_OK)
      throw Error(ErrorKind::kFailure, "zlib cannot be initialised");
  }
  ~GzipStream() { inflateEnd(&stream_); }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  std::size_t read(RawFile& file, char* out, std::size_t size) {
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(size);
    while (stream_.avail_out == size) {
      if (!in_member_ && !begin_member(file)) return 0;
      inflate_some(file);
    }
    return size - stream_.avail_out;
  }

 private:
  bool begin_member(RawFile& file) {
    while (!first_ && !file.available().empty() && file.available().front() == '\0')
      file.consume(1);
    if (file.available().empty()) return false;
    if (!first_ && file.available().front() != kGzipMagic.front())
      fail_at(file, "something that is not gzip follows the gzip data");
    first_ = false;
    in_member_ = true;
    inflateReset(&stream_);
    return true;
  }

  void inflate_some(RawFile& file) {
    const std::string_view in = file.available();
    if (in.empty()) fail_at(file, "the gzip data is truncated: it stops");
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    const int result = inflate(&stream_, Z_NO_FLUSH);
    file.consume(in.size() - stream_.avail_in);
    if (result == Z_STREAM_END) {
      in_member_ = false;
    } else if (result != Z_OK) {
      fail_at(file, std::string("the gzip data is corrupt (") +
                        (stream_.msg == nullptr ? "unknown reason" : stream_.msg) + ")");
    }
  }

  z_stream stream_{};
  bool in_member_ = false;
  bool first_ = true;
};

/// Zstandard (RFC 8878), frame after frame, skippable ones included.
class ZstdStream {
 public:
  ZstdStream() : stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) throw Error(ErrorKind::kFailure, "zstd cannot be initialised");
  }
  ~ZstdStream() { ZSTD_freeDStream(stream_); }
  ZstdStream(const ZstdStream&) = delete;
  ZstdStream& operator=(const ZstdStream&) = delete;

  std::size_t read(RawFile& file, char* out, std::size_t size) {
    ZSTD_outBuffer output{out, size, 0};
    while (output.pos == 0) {
      const std::string_view in = file.available();
      ZSTD_inBuffer input{in.data(), in.size(), 0};
      const std::size_t wanted = ZSTD_decompressStream(stream_, &output, &input);
      file.consume(input.pos);
      if (ZSTD_isError(wanted))
        fail_at(file, std::string("the zstd data is corrupt (") + ZSTD_getErrorName(wanted) + ")");
      if (in.empty() && output.pos == 0) {
        if (in_frame_) fail_at(file, "the zstd data is truncated: it stops");
        return 0;
      }
      in_frame_ = wanted != 0;
    }
    return output.pos;
  }

 private:
  ZSTD_DStream* stream_;
  bool in_frame_ = false;
};

bool starts_with(std::string_view text, std::string_view head) {
  return text.substr(0, head.size()) == head;
}

Compression recognise(const std::filesystem::path& path, std::string_view head) {
  const Compression found = starts_with(head, kGzipMagic)   ? Compression::kGzip
                            : starts_with(head, kZstdMagic) ? Compression::kZstd
                                                            : Compression::kNone;
  const std::string extension = path.extension().string();
  const bool promised_gzip = extension == ".gz" && found != Compression::kGzip;
  const bool promised_zstd =
      (extension == ".zst" || extension == ".zstd") && found != Compression::kZstd;
  if (promised_gzip || promised_zstd) {
    throw Error(ErrorKind::kInput, path.string() + ": is not " + (promised_gzip ? "gzip" : "zstd") +
                                       " data, although it is named " + extension +
                                       (head.empty() ? "; it is empty" : ""));
  }
  return found;
}

}  // namespace

struct ByteSource::State {
  explicit State(const std::filesystem::path& path)
      : file(path), compression(recognise(path, file.available())) {
    if (compression == Compression::kGzip) gzip = std::make_unique<GzipStream>();
    if (compression == Compression::kZstd) zstd = std::make_unique<ZstdStream>();
  }
  RawFile file;
  Compression compression;
  std::unique_ptr<GzipStream> gzip;
  std::unique_ptr<ZstdStream> zstd;
};

std::string to_string(Compression compression) {
  switch (compression) {
    case Compression::kGzip:
      return "gzip";
    case Compression::kZstd:
      return "zstd";
    default:
      return "none";
  }
}

ByteSource::ByteSource(const std::filesystem::path& path) : state_(std::make_unique<State>(path)) {}
ByteSource::~ByteSource() = default;
ByteSource::ByteSource(ByteSource&&) noexcept = default;
ByteSource& ByteSource::operator=(ByteSource&&) noexcept = default;

std::size_t ByteSource::read(char* out, std::size_t size) {
  if (state_->gzip) return state_->gzip->read(state_->file, out, size);
  if (state_->zstd) return state_->zstd->read(state_->file, out, size);
  const std::string_view in = state_->file.available();
  const std::size_t count = std::min(size, in.size());
  std::copy_n(in.data(), count, out);
  state_->file.consume(count);
  return count;
}

Compression ByteSource::compression() const { return state_->compression; }
std::uint64_t ByteSource::file_size() const { return state_->file.size(); }
std::uint64_t ByteSource::file_position() const { return state_->file.position(); }
Digest ByteSource::digest() { return state_->file.digest(); }

}  // namespace olmo::data

#include "data/text_reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>
#include <zlib.h>
#include <zstd.h>

#include "core/error.h"
#include "core/files/input_file.h"
#include "data/foreign_format.h"

namespace olmo::data {
namespace {

constexpr std::size_t kBlock = 1 << 18;

constexpr std::string_view kGzipMagic = "\x1f\x8b";
constexpr std::string_view kZstdMagic = "\x28\xb5\x2f\xfd";

/// The raw file, read in blocks and hashed on the way.
class RawFile {
 public:
  explicit RawFile(const std::filesystem::path& path)
      : file_(path, InputFile::Pipes::kRead), block_(kBlock) {}

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

Compression recognise(const std::filesystem::path& path, std::string_view head) {
  const Compression found = head.starts_with(kGzipMagic)   ? Compression::kGzip
                            : head.starts_with(kZstdMagic) ? Compression::kZstd
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

/// Keeps the strings at the top level that DocumentText names and nothing else. The last one of a
/// name wins, as with every JSON reader of Python.
class TextHandler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return scalar(); }
  bool boolean(bool) override { return scalar(); }
  bool number_integer(number_integer_t) override { return scalar(); }
  bool number_unsigned(number_unsigned_t) override { return scalar(); }
  bool number_float(number_float_t, const string_t&) override { return scalar(); }
  bool binary(binary_t&) override { return scalar(); }
  bool string(string_t& value) override {
    if (wanted_ == nullptr) return scalar();
    if (wanted_ == &result.text) result.problem.clear();
    *wanted_ = std::move(value);
    wanted_ = nullptr;
    return true;
  }
  bool start_object(std::size_t) override { return open(true); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(false); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (depth_ == 1 && !keys_.insert(name).second) return fail("has the key `" + name + "` twice");
    wanted_ = depth_ != 1           ? nullptr
              : name == "text"      ? &result.text
              : name == "id"        ? &result.id
              : name == "source"    ? &result.source
              : name == "subdomain" ? &result.subdomain
                                    : nullptr;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // The library's sentence begins with the place, then says what is wrong, and ends with the text
    // read so far.
    const std::string_view whole = error.what();
    const auto begin = std::min(whole.find("syntax error"), whole.size());
    const std::string reason(whole.substr(begin, whole.find("; last read", begin) - begin));
    fail("is not valid JSON at byte " + std::to_string(position) +
         (reason.empty() ? "" : " (" + reason + ")"));
    return false;
  }

  DocumentText result{
      .text = {}, .problem = "has no field `text`", .id = {}, .source = {}, .subdomain = {}};

 private:
  bool open(bool object) {
    if (depth_ == 0 && !object) return fail("is not a JSON object");
    if (wanted_ != nullptr) scalar();
    ++depth_;
    return true;
  }
  bool close() {
    --depth_;
    return true;
  }
  bool scalar() {
    if (depth_ == 0) return fail("is not a JSON object");
    if (wanted_ == &result.text) fail("has a `text` that is not a string");
    if (wanted_ != nullptr) wanted_->reset();
    wanted_ = nullptr;
    return true;
  }
  bool fail(std::string problem) {
    result.text.reset();
    result.problem = std::move(problem);
    return false;
  }

  std::uint64_t depth_ = 0;
  std::set<std::string> keys_;                    ///< of the document
  std::optional<std::string>* wanted_ = nullptr;  ///< where the next value goes
};

void refuse_foreign(std::string_view head, const std::filesystem::path& path) {
  const auto format = foreign_to_json_lines(head);
  if (!format) return;
  throw Error(ErrorKind::kInput,
              path.string() + ": is " + std::string(format->name) +
                  ", expected JSON lines with a field `text`, plain, gzip or zstd: " +
                  (format->is_packed ? "unpack it" : "convert it") + " first");
}

bool is_text_file(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  constexpr std::string_view kEndings[] = {".jsonl", ".jsonl.gz", ".jsonl.zst", ".json.gz",
                                           ".json.zst"};
  return std::any_of(std::begin(kEndings), std::end(kEndings), [&](std::string_view ending) {
    return name.size() > ending.size() && name.ends_with(ending);
  });
}

/// Dolma's layout has documents/ and, beside it, what is known of them in files of the same names.
bool is_of_attributes(const std::filesystem::path& folder) {
  std::error_code error;  // what cannot be looked at is none
  return folder.filename() == "attributes" &&
         std::filesystem::is_directory(folder.parent_path() / "documents", error);
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
  constexpr std::array<const char*, 3> kNames = {"none", "gzip", "zstd"};
  return kNames.at(static_cast<std::size_t>(compression));
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

std::string too_long_problem() {
  return "is longer than " + std::to_string(LineReader::kMaxLine) + " bytes";
}

LineReader::LineReader(const std::filesystem::path& path, std::size_t max_line)
    : path_(path), source_(path), max_line_(max_line), block_(kBlock) {}

bool LineReader::refill() {
  begin_ = 0;
  const bool first = source_.file_position() == 0;
  end_ = source_.read(block_.data(), block_.size());
  if (first) refuse_foreign({block_.data(), end_}, path_);
  return end_ > 0;
}

bool LineReader::next(Line& line) {
  line.bytes.clear();
  line.too_long = false;
  line.number = ++number_;
  bool any = false;
  while (begin_ < end_ || refill()) {
    any = true;
    const char* from = block_.data() + begin_;
    const void* newline = std::memchr(from, '\n', end_ - begin_);
    const std::size_t length =
        newline == nullptr ? end_ - begin_
                           : static_cast<std::size_t>(static_cast<const char*>(newline) - from);
    const std::size_t room = max_line_ - line.bytes.size();
    line.bytes.append(from, std::min(length, room));
    line.too_long = line.too_long || length > room;
    begin_ += length + (newline == nullptr ? 0 : 1);
    if (newline != nullptr) return true;
  }
  return any;
}

DocumentText parse_document(std::string_view line) {
  TextHandler handler;
  // The library takes a zero byte for the end of the text.
  if (const auto zero = line.find('\0'); zero != std::string_view::npos) {
    handler.result.problem =
        "is not valid JSON at byte " + std::to_string(zero + 1) + " (a zero byte)";
    return std::move(handler.result);
  }
  nlohmann::json::sax_parse(line.begin(), line.end(), &handler);
  return std::move(handler.result);
}

std::vector<std::filesystem::path> expand_inputs(const std::vector<std::filesystem::path>& inputs) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  for (const fs::path& given : inputs) {
    const fs::path input = given == "-" ? fs::path("/dev/stdin") : given;
    std::error_code error;
    const auto status = fs::status(input, error);
    if (!fs::exists(status))
      throw Error(ErrorKind::kInput, input.string() + ": does not exist or cannot be reached");
    if (!fs::is_directory(status)) {
      files.push_back(input);
      continue;
    }
    std::vector<fs::path> found;
    using Walk = fs::recursive_directory_iterator;
    for (Walk it(input, fs::directory_options::follow_directory_symlink, error), end;
         !error && it != end; it.increment(error)) {
      if (is_of_attributes(it->path())) it.disable_recursion_pending();
      if (it->is_regular_file() && is_text_file(it->path())) found.push_back(it->path());
    }
    if (error)
      throw Error(ErrorKind::kInput, input.string() + ": cannot be listed: " + error.message());
    if (found.empty())
      throw Error(ErrorKind::kInput,
                  input.string() + ": holds no .jsonl, .jsonl.gz, .jsonl.zst or .json.gz file");
    std::sort(found.begin(), found.end());
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

}  // namespace olmo::data

#include "data/documents/lines.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text/text.h"

namespace olmo::data {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{8} << 20;
constexpr std::size_t kGroupBytes = std::size_t{64} << 10;

}  // namespace

void BadLines::add(BadLine line) {
  if (policy_ == BadLinePolicy::kStop) {
    throw Error(ErrorKind::kInput, line.file + ":" + std::to_string(line.line) + ": the line " +
                                       line.problem + "; repair it, or give --on-bad-line skip");
  }
  ++count_;
  if (first_.size() < kMaxListed) first_.push_back(std::move(line));
}

Json to_json(const BadLines& lines) {
  Json first = Json::array();
  for (const BadLine& bad : lines.first())
    first.push_back({{"file", bad.file}, {"line", bad.line}, {"problem", bad.problem}});
  return {{"count", lines.count()}, {"first", std::move(first)}};
}

LineChunkReader::LineChunkReader(std::vector<std::filesystem::path> paths)
    : paths_(std::move(paths)) {
  for (const auto& path : paths_) {
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    if (!error) bytes_total_ += size;
  }
}

void LineChunkReader::read(LineChunk& chunk) {
  chunk.count = 0;
  chunk.groups.clear();
  std::size_t bytes = 0;
  std::size_t group_bytes = 0;
  while (bytes < kChunkBytes) {
    if (chunk.items.size() == chunk.count) chunk.items.emplace_back();
    LineChunk::Item& item = chunk.items[chunk.count];
    if (!next(item)) break;
    if (chunk.groups.empty() || group_bytes >= kGroupBytes) {
      chunk.groups.emplace_back(chunk.count, chunk.count);
      group_bytes = 0;
    }
    chunk.groups.back().second = ++chunk.count;
    bytes += item.line.bytes.size() + 1;
    group_bytes += item.line.bytes.size() + 1;
  }
  chunk.bytes_read = bytes_done_ + (reader_ ? reader_->source().file_position() : 0);
}

bool LineChunkReader::next(LineChunk::Item& item) {
  while (sources_.size() < paths_.size() || reader_) {
    if (!reader_) {
      reader_ = std::make_unique<LineReader>(paths_[sources_.size()]);
      SourceFile& source = sources_.emplace_back();
      source.path = paths_[sources_.size() - 1].string();
      source.bytes = reader_->source().file_size();
      source.compression = reader_->source().compression();
    }
    if (reader_->next(item.line)) {
      item.source = sources_.size() - 1;
      ++sources_.back().lines;
      return true;
    }
    bytes_done_ += reader_->source().file_position();
    sources_.back().digest = reader_->source().digest();
    reader_.reset();
  }
  return false;
}

bool is_blank(const Line& line) {
  return !line.too_long && line.bytes.find_first_not_of(" \t\r") == std::string::npos;
}

ParsedDocument parse_whole_document(const Line& line) {
  constexpr std::string_view kWhere = "line";
  if (line.too_long) return {.document = {}, .problem = too_long_problem()};
  try {
    Json document =
        parse_strict_json(line.bytes, {.where = std::string(kWhere), .is_object = true});
    const auto text = document.find("text");
    if (text == document.end()) return {.document = {}, .problem = "has no field `text`"};
    if (!text->is_string()) return {.document = {}, .problem = "has a `text` that is not a string"};
    return {.document = std::move(document), .problem = ""};
  } catch (const Error& error) {  // "line: is not valid JSON"
    return {.document = {}, .problem = std::string(error.what()).substr(kWhere.size() + 2)};
  }
}

void ReadingProgress::tell(const LineChunk& chunk, const std::function<Progress()>& make) {
  const auto now = std::chrono::steady_clock::now();
  if (!on_progress_ || now - last_ < std::chrono::milliseconds(200)) return;
  last_ = now;
  const auto read = static_cast<double>(chunk.bytes_read);  // compressed, as the files are
  const auto total = static_cast<double>(reader_.bytes_total());
  Progress progress = make();
  progress.what = verb_ + (" " + format_bytes(read)) + " of " + format_bytes(total);
  progress.fraction = total > 0 ? read / total : 0;
  on_progress_(progress);
}

}  // namespace olmo::data

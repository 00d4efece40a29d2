#include "data/document_index.h"

#include <algorithm>

#include "core/error.h"
#include "core/text/csv.h"
#include "core/text/number.h"
#include "core/text/safe_text.h"
#include "data/documents/line_writer.h"
#include "data/text_reader.h"

namespace olmo::data {
namespace {

namespace fs = std::filesystem;

/// One index on its way to rows.
class IndexReader {
 public:
  explicit IndexReader(const fs::path& path) : path_(path.string()), reader_(path) {}

  bool next(IndexedDocument& document) {
    std::vector<std::string> fields;
    do {
      if (!next_record()) return false;
      CsvReader record(record_, path_);
      if (!record.next(fields)) fields.clear();  // a blank line
    } while (fields.empty());
    if (fields.size() != 5) fail("has " + std::to_string(fields.size()) + " fields, expected 5");
    document.tokens = {.begin = number(fields[0]), .end = number(fields[1])};
    document.origin = {.id = fields[2], .source = fields[3], .line = number(fields[4])};
    if (document.tokens.begin != covered_ || document.tokens.end < covered_)
      fail("tells tokens " + fields[0] + " to " + fields[1] + ", expected the ones from " +
           std::to_string(covered_) + " on");
    covered_ = document.tokens.end;
    return true;
  }

  [[nodiscard]] std::uint64_t covered() const noexcept { return covered_; }
  std::string digest() { return reader_.source().digest().hex(); }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::kInput, path_ + ":" + std::to_string(line_) + ": " + what);
  }

  [[nodiscard]] std::uint64_t number(const std::string& text) const {
    const auto parsed = parse_number<std::uint64_t>(text);
    if (!parsed) fail("expected a whole number, got \"" + text.substr(0, 40) + "\"");
    return *parsed;
  }

  /// A line, or several if quotes enclose their ends.
  bool next_record() {
    record_.clear();
    std::ptrdiff_t quotes = 0;
    for (Line line; reader_.next(line);) {
      if (record_.empty()) line_ = line.number;
      record_ += line.bytes + "\n";
      quotes += std::ranges::count(line.bytes, '"');
      if (line.too_long || record_.size() > LineReader::kMaxLine) fail(too_long_problem());
      if (quotes % 2 == 0) return true;
    }
    return !record_.empty();
  }

  std::string path_;
  LineReader reader_;
  std::string record_;
  std::uint64_t line_ = 0;
  std::uint64_t covered_ = 0;
};

}  // namespace

fs::path document_index_path(const fs::path& token_file) {
  return fs::path(token_file).replace_extension(".csv.gz");
}

struct DocumentIndexWriter::State {
  State(const fs::path& token_file, int threads)
      : lines(document_index_path(token_file), threads, Effort::kLittle) {}
  LineWriter lines;
};

DocumentIndexWriter::DocumentIndexWriter(const fs::path& token_file, int threads)
    : state_(std::make_unique<State>(token_file, threads)) {}
DocumentIndexWriter::~DocumentIndexWriter() = default;

void DocumentIndexWriter::add(const IndexedDocument& document) {
  const auto& [tokens, origin] = document;
  state_->lines.write(std::to_string(tokens.begin) + "," + std::to_string(tokens.end) + "," +
                      csv_cell(origin.id) + "," + csv_cell(origin.source) + "," +
                      std::to_string(origin.line));
}

Digest DocumentIndexWriter::finish() { return state_->lines.finish(); }
void DocumentIndexWriter::publish() { state_->lines.publish(); }

std::vector<IndexedDocument> read_document_index(const fs::path& index, std::uint64_t tokens,
                                                 std::vector<TokenRange> ranges,
                                                 const std::optional<std::string>& sha256) {
  std::ranges::sort(ranges, {}, &TokenRange::begin);
  std::vector<IndexedDocument> found;
  IndexReader reader(index);
  std::size_t range = 0;
  for (IndexedDocument document; reader.next(document);) {
    while (range < ranges.size() && ranges[range].end <= document.tokens.begin) ++range;
    if (range < ranges.size() && ranges[range].begin < document.tokens.end)
      found.push_back(document);
  }
  if (reader.covered() != tokens)
    throw Error(ErrorKind::kInput, index.string() + ": tells of " +
                                       std::to_string(reader.covered()) +
                                       " tokens, but the token file has " + std::to_string(tokens));
  if (sha256 && reader.digest() != *sha256)
    throw Error(ErrorKind::kInput,
                index.string() + ": is not the index that the token file's sidecar tells of");
  return found;
}

}  // namespace olmo::data

#include "data/document_index.h"

#include <algorithm>
#include <functional>
#include <map>

#include "core/error.h"
#include "core/text/csv.h"
#include "core/text/number.h"
#include "core/text/safe_text.h"
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

/// Calls use(document) for each row of an index, and checks the whole.
template <class Use>
void for_each_document(const DocumentIndex& index, const Use& use) {
  IndexReader reader(index.path);
  for (IndexedDocument document; reader.next(document);) use(document);
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::kInput, index.path.string() + ": is no index of its token file: " + why +
                                       "; remove it, or put the right one there");
  };
  if (reader.covered() != index.tokens)
    refuse("it tells of " + std::to_string(reader.covered()) + " tokens, the file has " +
           std::to_string(index.tokens));
  if (index.sha256 && reader.digest() != *index.sha256)
    refuse("the file's sidecar tells of another one");
}

/// By the names of the sources.
using SourceCounts = std::map<std::string, SourceCount>;

void add(SourceCounts& counts, const SourceCount& one) {
  SourceCount& count =
      counts.try_emplace(one.source, SourceCount{.source = one.source}).first->second;
  count.documents += one.documents;
  count.tokens += one.tokens;
}

std::vector<SourceCount> sorted(const SourceCounts& counts) {
  std::vector<SourceCount> list;
  for (const auto& [source, count] : counts) list.push_back(count);
  std::ranges::stable_sort(list, std::ranges::greater{}, &SourceCount::tokens);
  return list;
}

}  // namespace

fs::path document_index_path(const fs::path& token_file) {
  return fs::path(token_file).replace_extension(".csv.gz");
}

DocumentIndexWriter::DocumentIndexWriter(const fs::path& token_file, int threads)
    : lines_(document_index_path(token_file), threads, Effort::kLittle) {}

void DocumentIndexWriter::add(const IndexedDocument& document) {
  const auto& [tokens, origin] = document;
  lines_.write(std::to_string(tokens.begin) + "," + std::to_string(tokens.end) + "," +
               csv_cell(origin.id) + "," + csv_cell(origin.source) + "," +
               std::to_string(origin.line) + "\r");
}

std::optional<DocumentIndex> find_document_index(const TokenFile& file) {
  const auto path = document_index_path(file.path());
  if (!fs::exists(path)) return std::nullopt;
  const auto sidecar = read_sidecar(file.path());
  return DocumentIndex{.path = path,
                       .tokens = file.size(),
                       .sha256 = sidecar ? sidecar->index_sha256 : std::nullopt};
}

std::vector<IndexedDocument> find_documents(const DocumentIndex& index,
                                            std::vector<TokenRange> ranges) {
  std::ranges::sort(ranges, {}, &TokenRange::begin);
  std::vector<IndexedDocument> found;
  std::size_t range = 0;
  for_each_document(index, [&](const IndexedDocument& document) {
    while (range < ranges.size() && ranges[range].end <= document.tokens.begin) ++range;
    if (range < ranges.size() && ranges[range].begin < document.tokens.end)
      found.push_back(document);
  });
  return found;
}

std::vector<SourceCount> count_sources(const DocumentIndex& index) {
  SourceCounts counts;
  for_each_document(index, [&](const IndexedDocument& document) {
    add(counts, {.source = document.origin.source,
                 .documents = 1,
                 .tokens = document.tokens.end - document.tokens.begin});
  });
  return sorted(counts);
}

std::vector<SourceCount> sum(const std::vector<SourceCount>& a, const std::vector<SourceCount>& b) {
  SourceCounts counts;
  for (const auto* list : {&a, &b})
    for (const SourceCount& one : *list) add(counts, one);
  return sorted(counts);
}

}  // namespace olmo::data

#include "eval/perplexity.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"
#include "core/hash.h"
#include "data/token_file.h"
#include "eval/document_reader.h"

namespace olmo::eval {
namespace {

// What is held at a time. The scores do not depend on it.
constexpr std::size_t kChunkBytes = std::size_t{4} << 20;
constexpr std::size_t kChunkTokens = std::size_t{1} << 20;

using TokenIds = std::vector<std::uint32_t>;

std::string hash_ids(std::span<const std::uint32_t> ids) {
  return sha256(std::as_bytes(ids)).hex();  // little-endian, as every machine that we build for
}

/// What a source's documents leave for its next instance, and how many instances it had.
struct Stream {
  TokenIds ids;
  std::int64_t instances = 0;
};

/// One pass over a suite: rows and their windows gather until a chunk is full, then are scored.
class Pass {
 public:
  Pass(const PerplexitySuite& suite, const data::Tokenizer* tokenizer, const ScoreTokens& model,
       const PerplexityOptions& options, const PerplexityCallbacks& callbacks)
      : suite_(suite),
        tokenizer_(tokenizer),
        model_(model),
        options_(options),
        callbacks_(callbacks) {}

  void run() {
    if (file_kind(suite_.sources.front().files.front().path) == FileKind::kTokens)
      run_token_files();
    else
      run_documents();
    report(1.0);
  }

 private:
  void run_documents() {
    const bool whole = suite_.convention == DocumentConvention::kCatwalk;
    DocumentReader reader(suite_.sources, whole ? options_.limit : std::nullopt);
    std::vector<Document> documents;
    bool more = true;
    const auto read = [&] {
      more = read_chunk(reader, documents);
      if (!documents.empty()) place_ = documents.back().place;
      if (whole)
        add_documents(documents);
      else
        add_to_streams(documents);
    };
    read_alike(read);
    while (more) {
      score(fraction_done(reader));
      read_alike(read);
    }
  }

  /// Does `read`, which adds to what is to be scored. Of a team all members have read the same
  /// afterwards, so that they score the same.
  void read_alike(const std::function<void()>& read) {
    if (options_.queue.team == nullptr) return read();
    const auto read_and_hash = [&] {
      read();
      Sha256 hash;
      hash.update_u64(static_cast<std::uint64_t>(next_index_));
      for (const auto& row : rows_) {
        hash.update_u64(static_cast<std::uint64_t>(row.index));
        hash.update(row.text_hash);
      }
      return hash.finish();
    };
    options_.queue.team->read_alike(read_and_hash,
                                    [&] { return "suite " + suite_.name + ", up to " + place_; });
  }

  /// Of what is to be scored: a limit on instances is reached long before the end of the files.
  [[nodiscard]] double fraction_done(const DocumentReader& reader) const {
    if (!options_.limit || suite_.convention == DocumentConvention::kCatwalk)
      return reader.fraction_read();
    double done = 0;
    for (const auto& [source, stream] : streams_)
      done += static_cast<double>(stream.instances) / static_cast<double>(*options_.limit);
    const auto sources = std::max(suite_.sources.size(), streams_.size());
    return std::min(1.0, std::max(reader.fraction_read(), done / static_cast<double>(sources)));
  }

  static bool read_chunk(DocumentReader& reader, std::vector<Document>& documents) {
    documents.clear();
    std::size_t bytes = 0;
    while (bytes < kChunkBytes) {
      Document document;
      if (!reader.next(document)) break;
      bytes += document.text.size() + 1;
      documents.push_back(std::move(document));
    }
    return !documents.empty();
  }

  std::vector<TokenIds> tokenize(std::span<const Document> documents) const {
    std::vector<std::string_view> texts;
    texts.reserve(documents.size());
    for (const Document& document : documents) texts.push_back(document.text);
    OLMO_CHECK(tokenizer_ != nullptr);
    return tokenizer_->encode_batch(texts, options_.threads);
  }

  void add_documents(std::vector<Document>& documents) {
    const std::int64_t first = next_index_;
    next_index_ += std::ssize(documents);
    std::vector<std::int64_t> indices;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < documents.size(); ++i) {
      const std::int64_t index = first + static_cast<std::int64_t>(i);
      if (skip(index)) continue;
      indices.push_back(index);
      if (kept != i) documents[kept] = std::move(documents[i]);
      ++kept;
    }
    documents.resize(kept);
    const auto ids = tokenize(documents);
    for (std::size_t i = 0; i < kept; ++i) add_document(documents[i], indices[i], ids[i]);
  }

  void add_document(const Document& document, std::int64_t index, const TokenIds& ids) {
    const TextCounts counts = count_text(document.text);
    SequenceGroup group{.sequences =
                            rolling_windows(ids, options_.eos_token_id, options_.max_length)};
    const auto windows = std::ssize(group.sequences);
    add({.suite = suite_.name,
         .source = document.source,
         .subdomain = document.subdomain,
         .index = index,
         .document = document.id,
         .windows = windows,
         .tokens = std::ssize(ids),
         .bytes = counts.bytes,
         .chars = counts.chars,
         .words = counts.words,
         .text_hash = sha256(document.text).hex()},
        std::move(group));
  }

  void add_to_streams(std::span<const Document> documents) {
    const auto ids = tokenize(documents);
    for (std::size_t i = 0; i < documents.size(); ++i) {
      Stream& stream = streams_[documents[i].source];
      stream.ids.insert(stream.ids.end(), ids[i].begin(), ids[i].end());
      stream.ids.push_back(options_.eos_token_id);
      cut_instances(documents[i].source, stream);
    }
  }

  /// Takes the whole instances from the front of `stream`.
  void cut_instances(const std::string& source, Stream& stream) {
    const auto length = static_cast<std::size_t>(options_.max_length);
    std::size_t begin = 0;
    for (; stream.ids.size() - begin >= length; begin += length)
      add_instance(source, stream, std::span(stream.ids).subspan(begin, length));
    stream.ids.erase(stream.ids.begin(), stream.ids.begin() + static_cast<std::ptrdiff_t>(begin));
  }

  [[nodiscard]] bool enough(const Stream& stream) const {
    return options_.limit && stream.instances >= *options_.limit;
  }

  void add_instance(const std::string& source, Stream& stream, std::span<const std::uint32_t> ids) {
    if (enough(stream)) return;
    const std::int64_t number = stream.instances++;
    const std::int64_t index = next_index_++;
    if (skip(index)) return;
    const auto scored = std::ssize(ids) - 1;
    SequenceGroup group;
    group.sequences.push_back({.tokens = {ids.begin(), ids.end()}, .scored = scored});
    add({.suite = suite_.name,
         .source = source,
         .subdomain = {},
         .index = index,
         .document = "instance " + std::to_string(number),
         .windows = 1,
         .tokens = scored,
         .text_hash = hash_ids(ids)},
        std::move(group));
  }

  void run_token_files() {
    double total = 0;
    for (const SuiteSource& source : suite_.sources)
      for (const SuiteFile& file : source.files) total += weight(file);
    double finished = 0;
    for (const SuiteSource& source : suite_.sources) {
      Stream stream;
      for (const SuiteFile& file : source.files) {
        const double size = weight(file);
        run_token_file(source.name, file.path, stream, finished / total, size / total);
        finished += size;
      }
    }
  }

  /// What a token file costs beside the others: its bytes, or with a limit as much as any other.
  [[nodiscard]] double weight(const SuiteFile& file) const {
    std::error_code error;
    const auto bytes = std::filesystem::file_size(file.path, error);
    return options_.limit || error ? 1 : static_cast<double>(std::max<std::uintmax_t>(bytes, 1));
  }

  /// The file's instances; `fraction` of the suite is behind it, it is `share` of it.
  void run_token_file(const std::string& source, const std::filesystem::path& path, Stream& stream,
                      double fraction, double share) {
    std::optional<data::TokenFile> file;
    const auto length = static_cast<std::uint64_t>(options_.max_length);
    std::uint64_t first = 0;
    bool more = true;
    const auto read = [&] {
      place_ = path.string();
      if (!file) file.emplace(path, dtype_of(path));
      TokenIds ids(length);
      more = true;
      for (; file->size() - first >= length && !enough(stream); first += length) {
        if (pending_tokens_ >= kChunkTokens) return;
        file->read(first, std::span(ids));
        check_ids(*file, first, length);
        add_instance(source, stream, ids);
      }
      more = false;
    };
    while (more) {
      read_alike(read);
      const double part =
          more ? static_cast<double>(first) / static_cast<double>(file->size()) : 1.0;
      score(fraction + share * part);
    }
  }

  [[nodiscard]] data::TokenDtype dtype_of(const std::filesystem::path& path) const {
    const auto otherwise = suite_.dtype.value_or(data::TokenDtype::kUint16);
    const auto sidecar = data::read_sidecar(path);
    return sidecar ? sidecar->dtype.value_or(otherwise) : otherwise;
  }

  void check_ids(const data::TokenFile& file, std::uint64_t first, std::uint64_t count) const {
    if (options_.vocab_size == 0) return;
    if (const auto bad = file.find_id_beyond(options_.vocab_size, first, count))
      throw Error(ErrorKind::kInput,
                  file.path().string() + ": token " + std::to_string(*bad) + " has id " +
                      std::to_string(file.at(*bad)) + ", but the model's vocabulary has " +
                      std::to_string(options_.vocab_size) + " ids; wrong dtype or tokenizer");
  }

  bool skip(std::int64_t index) {
    if (!callbacks_.is_done || !callbacks_.is_done(index)) return false;
    ++progress_.documents;
    return true;
  }

  void add(DocumentRow row, SequenceGroup group) {
    if (group.sequences.empty()) return finish(row);
    pending_tokens_ += static_cast<std::size_t>(row.tokens);
    rows_.push_back(std::move(row));
    groups_.push_back(std::move(group));
  }

  void finish(const DocumentRow& row) {
    ++progress_.documents;
    progress_.tokens += row.tokens;
    callbacks_.on_document(row);
  }

  void report(double fraction) {
    progress_.fraction = fraction;
    if (callbacks_.on_progress) callbacks_.on_progress(progress_);
  }

  /// Scores what has gathered; then `fraction` of the suite is done.
  void score(double fraction) {
    const double before = progress_.fraction;
    const std::int64_t rows_before = progress_.rows;
    const auto planned = static_cast<double>(rows_to_run(groups_, options_.queue));
    QueueCallbacks queue;
    queue.on_group = [&](std::size_t group, std::span<const SequenceScore> scores) {
      take_scores(rows_[group], scores);
    };
    queue.on_progress = [&](std::int64_t rows_done) {
      progress_.rows = rows_before + rows_done;
      report(before + (fraction - before) * static_cast<double>(rows_done) / planned);
    };
    score_groups(groups_, model_, options_.queue, queue);
    groups_.clear();
    rows_.clear();
    pending_tokens_ = 0;
    report(fraction);
  }

  void take_scores(DocumentRow& row, std::span<const SequenceScore> scores) {
    for (const SequenceScore& window : scores) row.nll -= window.log_prob;
    if (!std::isfinite(row.nll))
      throw Error(
          ErrorKind::kDiverged,
          "suite " + suite_.name + ": the log-likelihood of " + row.document + " (source " +
              row.source + ", document " + std::to_string(row.index) +
              ") is not a finite number; the model's weights or activations are not finite");
    finish(row);
  }

  const PerplexitySuite& suite_;
  const data::Tokenizer* tokenizer_;
  const ScoreTokens& model_;
  const PerplexityOptions& options_;
  const PerplexityCallbacks& callbacks_;
  std::map<std::string, Stream> streams_;  ///< by source
  std::vector<DocumentRow> rows_;          ///< row i belongs to group i
  std::vector<SequenceGroup> groups_;
  std::size_t pending_tokens_ = 0;
  std::int64_t next_index_ = 0;
  std::string place_;  ///< of what was read last, for messages
  PerplexityProgress progress_;
};

}  // namespace

std::vector<ScoredSequence> rolling_windows(std::span<const std::uint32_t> ids, std::uint32_t eos,
                                            std::int64_t max_length) {
  std::vector<ScoredSequence> windows;
  const auto length = static_cast<std::size_t>(max_length);
  for (std::size_t done = 0; done < ids.size();) {
    const std::size_t end = std::min(done + length, ids.size());
    ScoredSequence window;
    window.scored = static_cast<std::int64_t>(end - done);
    if (done == 0) {
      window.tokens.push_back(eos);
      window.tokens.insert(window.tokens.end(), ids.begin(),
                           ids.begin() + static_cast<std::ptrdiff_t>(end));
    } else {
      const auto last = ids.begin() + static_cast<std::ptrdiff_t>(end);
      window.tokens.assign(last - static_cast<std::ptrdiff_t>(length) - 1, last);
    }
    windows.push_back(std::move(window));
    done = end;
  }
  return windows;
}

void evaluate_perplexity(const PerplexitySuite& suite, const data::Tokenizer* tokenizer,
                         const ScoreTokens& model, const PerplexityOptions& options,
                         const PerplexityCallbacks& callbacks) {
  const std::int64_t least = suite.convention == DocumentConvention::kCatwalk ? 1 : 2;
  constexpr std::int64_t kMost = 1 << 24;
  if (options.max_length < least || options.max_length > kMost)
    throw Error(ErrorKind::kUsage, "suite " + suite.name + ": max_length must be from " +
                                       std::to_string(least) + " to " + std::to_string(kMost) +
                                       ", got " + std::to_string(options.max_length));
  OLMO_CHECK(!suite.sources.empty());
  Pass(suite, tokenizer, model, options, callbacks).run();
}

}  // namespace olmo::eval

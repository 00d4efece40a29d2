#include "data/tokenize.h"

#include <chrono>
#include <exception>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/compute/policy.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/files/output_file.h"
#include "core/process/terminal.h"
#include "core/text/text.h"
#include "data/python_text.h"
#include "data/text_reader.h"

namespace olmo::data {
namespace {

constexpr std::string_view kEndOfText = "<|endoftext|>";
constexpr std::uint64_t kOlmoTokensPerFile = 512ULL << 20;
constexpr std::size_t kChunkBytes =
    std::size_t{8} << 20;  ///< lines in memory at once: two chunks, or one line if it is longer
constexpr std::size_t kGroupBytes = std::size_t{64} << 10;  ///< unit of work of one thread

/// Consecutive lines, possibly of several sources. Their memory is used again.
struct Chunk {
  struct Item {
    Line line;
    std::size_t source = 0;
  };
  std::vector<Item> items;
  std::size_t count = 0;
  std::vector<std::pair<std::size_t, std::size_t>> groups;  ///< [first, last) of items
  std::uint64_t bytes_read = 0;  ///< of all sources, when the chunk was full
};

/// What became of a group of lines.
struct Encoded {
  std::vector<std::uint32_t> ids;
  std::vector<std::size_t> ends;  ///< one per document, in `ids`
  std::vector<std::size_t> sources;
  struct Skipped {
    std::size_t item = 0;
    enum Why { kBlank, kEmpty, kBad } why = kBlank;
    std::string problem;
  };
  std::vector<Skipped> skipped;
  std::uint64_t text_bytes = 0;
  std::exception_ptr failure;
};

/// Reads the sources one after the other, a chunk at a time.
class ChunkReader {
 public:
  explicit ChunkReader(std::vector<std::filesystem::path> paths) : paths_(std::move(paths)) {
    for (const auto& path : paths_) {
      std::error_code error;
      const auto size = std::filesystem::file_size(path, error);
      if (!error) bytes_total_ += size;
    }
  }

  void read(Chunk& chunk) {
    chunk.count = 0;
    chunk.groups.clear();
    std::size_t bytes = 0;
    std::size_t group_bytes = 0;
    while (bytes < kChunkBytes) {
      if (chunk.items.size() == chunk.count) chunk.items.emplace_back();
      Chunk::Item& item = chunk.items[chunk.count];
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

  [[nodiscard]] std::uint64_t bytes_total() const { return bytes_total_; }
  std::vector<SourceReport>& sources() { return sources_; }

 private:
  bool next(Chunk::Item& item) {
    while (sources_.size() < paths_.size() || reader_) {
      if (!reader_) {
        reader_ = std::make_unique<LineReader>(paths_[sources_.size()]);
        SourceReport& source = sources_.emplace_back();
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

  std::vector<std::filesystem::path> paths_;
  std::unique_ptr<LineReader> reader_;
  std::vector<SourceReport> sources_;
  std::uint64_t bytes_done_ = 0;
  std::uint64_t bytes_total_ = 0;
};

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

void encode_line(const Chunk& chunk, std::size_t index, const Tokenizer& tokenizer,
                 std::uint32_t eos, Encoded& out) {
  const Line& line = chunk.items[index].line;
  if (line.too_long) {
    out.skipped.push_back({index, Encoded::Skipped::kBad,
                           "is longer than " + std::to_string(LineReader::kMaxLine) + " bytes"});
    return;
  }
  if (is_blank(line.bytes)) {
    out.skipped.push_back({index, Encoded::Skipped::kBlank, ""});
    return;
  }
  const DocumentText document = parse_document(line.bytes);
  if (!document.text) {
    out.skipped.push_back({index, Encoded::Skipped::kBad, document.problem});
    return;
  }
  const std::string_view text = strip(*document.text);
  if (text.empty()) {
    out.skipped.push_back({index, Encoded::Skipped::kEmpty, ""});
    return;
  }
  const std::size_t before = out.ids.size();
  tokenizer.encode(text, out.ids, Tokenizer::SpecialTokens::kAdded);
  if (out.ids.size() == before || out.ids.back() != eos) out.ids.push_back(eos);
  out.ends.push_back(out.ids.size());
  out.sources.push_back(chunk.items[index].source);
  out.text_bytes += text.size();
}

void encode_group(const Chunk& chunk, std::size_t group, const Tokenizer& tokenizer,
                  std::uint32_t eos, Encoded& out) {
  out.ids.clear();
  out.ends.clear();
  out.sources.clear();
  out.skipped.clear();
  out.text_bytes = 0;
  out.failure = nullptr;
  for (std::size_t i = chunk.groups[group].first; i < chunk.groups[group].second; ++i)
    encode_line(chunk, i, tokenizer, eos, out);
}

/// One run of `tokenize`.
class Run {
 public:
  Run(const TokenizeOptions& options, const Tokenizer& tokenizer)
      : options_(options), tokenizer_(tokenizer), reader_(expand_inputs(options.inputs)) {
    choose_eos();
    choose_dtype();
    // OpenMP may not be handed fewer than one.
    if (options.threads < 1)
      throw Error(ErrorKind::kUsage, "data tokenize: threads must be at least 1, got " +
                                         std::to_string(options.threads));
    require_threads(options.threads);
  }

  TokenizeReport run() {
    const bool folder = options_.output.extension() != ".npy";
    const std::uint64_t limit = options_.max_tokens_per_file != 0 ? options_.max_tokens_per_file
                                : folder                          ? kOlmoTokensPerFile
                                                                  : 0;
    UnfinishedOutput unfinished(options_.output.string());
    TokenWriter writer(options_.output, report_.dtype, limit, options_.overwrite);
    Chunk current;
    Chunk next;
    reader_.read(current);
    while (current.count > 0) {
      encode_chunk(current, next);
      for (std::size_t group = 0; group < current.groups.size(); ++group)
        store(current, encoded_[group], writer);
      report_progress(current);
      std::swap(current, next);
    }
    finish(writer, unfinished);
    return std::move(report_);
  }

 private:
  void choose_eos() {
    const auto end_of_text = tokenizer_.token_to_id(kEndOfText);
    if (!options_.eos_token_id && !end_of_text) {
      throw Error(ErrorKind::kUsage, options_.tokenizer_path.string() +
                                         ": has no token <|endoftext|>; give --eos-token-id");
    }
    report_.eos_token_id = options_.eos_token_id.value_or(end_of_text.value_or(0));
    const auto name = tokenizer_.id_to_token(report_.eos_token_id);
    if (!name) {
      throw Error(ErrorKind::kUsage,
                  options_.tokenizer_path.string() + ": has no token with the id " +
                      std::to_string(report_.eos_token_id) + " that was given as EOS");
    }
    if (end_of_text && *end_of_text != report_.eos_token_id) {
      report_.warnings.push_back("eos_token_id " + std::to_string(report_.eos_token_id) + " is '" +
                                 *name + "' in " + options_.tokenizer_path.string() +
                                 ", whose <|endoftext|> is " + std::to_string(*end_of_text));
    }
  }

  void choose_dtype() {
    const TokenDtype narrowest = narrowest_dtype(tokenizer_.vocab_size());
    report_.dtype = options_.dtype.value_or(narrowest);
    if (bytes_per_token(report_.dtype) < bytes_per_token(narrowest)) {
      throw Error(ErrorKind::kUsage, options_.tokenizer_path.string() + ": its vocabulary of " +
                                         std::to_string(tokenizer_.vocab_size()) +
                                         " does not fit uint16; give --dtype uint32");
    }
  }

  /// Encodes `current` while the next chunk is read: reading is the first of the units of work that
  /// the threads take.
  void encode_chunk(const Chunk& current, Chunk& next) {
    const auto groups = static_cast<std::int64_t>(current.groups.size());
    if (encoded_.size() < current.groups.size()) encoded_.resize(current.groups.size());
    std::exception_ptr read_failure;
#pragma omp parallel for schedule(dynamic, 1) num_threads(options_.threads)
    for (std::int64_t unit = 0; unit <= groups; ++unit) {
      std::exception_ptr& failure =
          unit == 0 ? read_failure : encoded_[static_cast<std::size_t>(unit - 1)].failure;
      try {  // an exception may not leave a parallel loop: it is kept and thrown after it
        if (unit == 0) {
          reader_.read(next);
        } else {
          const auto group = static_cast<std::size_t>(unit - 1);
          encode_group(current, group, tokenizer_, report_.eos_token_id, encoded_[group]);
        }
      } catch (...) {
        failure = std::current_exception();
      }
    }
    for (std::size_t group = 0; group < current.groups.size(); ++group) {
      if (encoded_[group].failure) std::rethrow_exception(encoded_[group].failure);
    }
    pending_failure_ = read_failure;
  }

  void store(const Chunk& chunk, const Encoded& group, TokenWriter& writer) {
    for (const Encoded::Skipped& skipped : group.skipped)
      count_skipped(chunk.items[skipped.item], skipped);
    std::size_t begin = 0;
    for (std::size_t i = 0; i < group.ends.size(); ++i) {
      writer.append_document(std::span(group.ids).subspan(begin, group.ends[i] - begin));
      begin = group.ends[i];
      ++reader_.sources()[group.sources[i]].documents;
    }
    report_.documents += group.ends.size();
    report_.tokens += group.ids.size();
    report_.text_bytes += group.text_bytes;
  }

  void count_skipped(const Chunk::Item& item, const Encoded::Skipped& skipped) {
    SourceReport& source = reader_.sources()[item.source];
    if (skipped.why == Encoded::Skipped::kBlank) ++source.blank_lines;
    if (skipped.why == Encoded::Skipped::kEmpty) ++source.empty_documents;
    if (skipped.why != Encoded::Skipped::kBad) return;
    if (options_.on_bad_line == BadLinePolicy::kStop) {
      throw Error(ErrorKind::kInput, source.path + ":" + std::to_string(item.line.number) +
                                         ": the line " + skipped.problem +
                                         "; repair it, or give --on-bad-line skip");
    }
    ++source.bad_lines;
    ++report_.bad_line_count;
    if (report_.bad_lines.size() < TokenizeReport::kMaxListedBadLines) {
      report_.bad_lines.push_back({source.path, item.line.number, skipped.problem});
    }
  }

  void report_progress(const Chunk& chunk) {
    // A damaged file is reported after the lines before it, so that the first fault in the order of
    // the input is named.
    if (pending_failure_) std::rethrow_exception(std::exchange(pending_failure_, nullptr));
    const auto now = std::chrono::steady_clock::now();
    if (!options_.on_progress || now - last_progress_ < std::chrono::milliseconds(200)) return;
    last_progress_ = now;
    const auto read = static_cast<double>(chunk.bytes_read);  // compressed, as the files are
    const auto total = static_cast<double>(reader_.bytes_total());
    const auto tokens = formatted("%.1f M tokens", static_cast<double>(report_.tokens) / 1e6);
    options_.on_progress(
        {.what = "tokenizing " + format_bytes(read) + " of " + format_bytes(total),
         .fraction = total > 0 ? read / total : 0,
         .tokens = static_cast<std::int64_t>(report_.tokens),
         .facts = {{counted(static_cast<std::int64_t>(report_.documents), "document"), 4},
                   {tokens, 3}}});
  }

  void finish(TokenWriter& writer, UnfinishedOutput& unfinished) {
    if (report_.documents == 0) {
      throw Error(ErrorKind::kInput,
                  "data tokenize: no document in " +
                      counted(std::ssize(reader_.sources()), "input file") + " (" +
                      counted(static_cast<std::int64_t>(report_.bad_line_count), "bad line") + ")");
    }
    writer.finish();
    report_.sources = std::move(reader_.sources());
    report_.outputs = writer.parts();
    unfinished.take_names();
    writer.publish();
    for (std::size_t part = 0; part < report_.outputs.size(); ++part) {
      write_file_atomically(sidecar_path(report_.outputs[part].path),
                            json_text(sidecar(part), 2) + "\n");
    }
  }

  [[nodiscard]] Json sidecar(std::size_t part) const {
    const TokenWriter::Part& output = report_.outputs[part];
    Json facts = to_json(report_);
    facts.erase("outputs");
    facts["format"] = "olmo-harness-tokens-1";
    facts["file"] = output.path.filename().string();
    facts["sha256"] = output.digest.hex();
    facts["total_tokens"] = report_.tokens;
    facts["total_documents"] = report_.documents;
    facts["tokens"] = output.tokens;
    facts["documents"] = output.documents;
    facts["part"] = part;
    facts["parts"] = report_.outputs.size();
    facts["on_bad_line"] = options_.on_bad_line == BadLinePolicy::kStop ? "stop" : "skip";
    facts["tokenizer"] = {{"path", options_.tokenizer_path.string()},
                          {"sha256", tokenizer_.digest().hex()},
                          {"vocab_size", tokenizer_.vocab_size()}};
    facts["eos_token"] = tokenizer_.id_to_token(report_.eos_token_id).value_or("");
    return facts;
  }

  const TokenizeOptions& options_;
  const Tokenizer& tokenizer_;
  ChunkReader reader_;
  TokenizeReport report_;
  std::vector<Encoded> encoded_;
  std::exception_ptr pending_failure_;
  std::chrono::steady_clock::time_point last_progress_{};
};

}  // namespace

TokenizeReport tokenize(const TokenizeOptions& options, const Tokenizer& tokenizer) {
  return Run(options, tokenizer).run();
}

Json to_json(const TokenizeReport& report) {
  Json json = {{"tokens", report.tokens},
               {"documents", report.documents},
               {"text_bytes", report.text_bytes},
               {"dtype", to_string(report.dtype)},
               {"eos_token_id", report.eos_token_id},
               {"warnings", report.warnings},
               {"bad_lines", {{"count", report.bad_line_count}, {"first", Json::array()}}},
               {"outputs", Json::array()},
               {"sources", Json::array()}};
  for (const BadLine& bad : report.bad_lines) {
    json["bad_lines"]["first"].push_back(
        {{"file", bad.file}, {"line", bad.line}, {"problem", bad.problem}});
  }
  for (const TokenWriter::Part& output : report.outputs) {
    json["outputs"].push_back({{"path", output.path.string()},
                               {"sha256", output.digest.hex()},
                               {"tokens", output.tokens},
                               {"documents", output.documents}});
  }
  for (const SourceReport& source : report.sources) {
    json["sources"].push_back({{"path", source.path},
                               {"bytes", source.bytes},
                               {"sha256", source.digest.hex()},
                               {"compression", to_string(source.compression)},
                               {"lines", source.lines},
                               {"documents", source.documents},
                               {"empty_documents", source.empty_documents},
                               {"blank_lines", source.blank_lines},
                               {"bad_lines", source.bad_lines}});
  }
  return json;
}

}  // namespace olmo::data

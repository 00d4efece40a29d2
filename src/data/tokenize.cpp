#include "data/tokenize.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "core/compute/policy.h"
#include "core/error.h"
#include "core/files/json.h"
#include "core/files/output_file.h"
#include "core/process/terminal.h"
#include "core/text/text.h"
#include "data/python_text.h"

namespace olmo::data {
namespace {

constexpr std::string_view kEndOfText = "<|endoftext|>";
constexpr std::uint64_t kOlmoTokensPerFile = 512ULL << 20;

/// What became of a group of lines.
struct Encoded {
  std::vector<std::uint32_t> ids;
  std::vector<std::size_t> ends;   ///< one per document, in `ids`
  std::vector<std::size_t> items;  ///< of the documents
  std::vector<std::string> names;  ///< their ids in the text
  struct Skipped {
    std::size_t item = 0;
    enum Why { kBlank, kEmpty, kBad } why = kBlank;
    std::string problem;
  };
  std::vector<Skipped> skipped;
  std::uint64_t text_bytes = 0;
};

void encode_line(const LineChunk& chunk, std::size_t index, const Tokenizer& tokenizer,
                 std::uint32_t eos, Encoded& out) {
  const Line& line = chunk.items[index].line;
  if (is_blank(line)) {
    out.skipped.push_back({index, Encoded::Skipped::kBlank, ""});
    return;
  }
  if (line.too_long) {
    out.skipped.push_back({index, Encoded::Skipped::kBad, too_long_problem()});
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
  out.items.push_back(index);
  out.names.push_back(document.id.value_or(""));
  out.text_bytes += text.size();
}

void encode_group(const LineChunk& chunk, std::size_t group, const Tokenizer& tokenizer,
                  std::uint32_t eos, Encoded& out) {
  out.ids.clear();
  out.ends.clear();
  out.items.clear();
  out.names.clear();
  out.skipped.clear();
  out.text_bytes = 0;
  for (std::size_t i = chunk.groups[group].first; i < chunk.groups[group].second; ++i)
    encode_line(chunk, i, tokenizer, eos, out);
}

/// One run of `tokenize`.
class Run {
 public:
  Run(const TokenizeOptions& options, const Tokenizer& tokenizer)
      : options_(options), tokenizer_(tokenizer), reader_(expand_inputs(options.inputs)) {
    report_.bad_lines = BadLines(options.on_bad_line);
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
    TokenWriter writer(options_.output, report_.dtype, limit, options_.overwrite, options_.threads);
    ReadingProgress reading(options_.on_progress, reader_, "tokenizing");
    process_lines<Encoded>(
        reader_, options_.threads,
        [&](const LineChunk& chunk, std::size_t group, Encoded& out) {
          encode_group(chunk, group, tokenizer_, report_.eos_token_id, out);
        },
        [&](const LineChunk& chunk, std::size_t, const Encoded& made) {
          store(chunk, made, writer);
        },
        [&](const LineChunk& chunk) { reading.tell(chunk, [&] { return progress(); }); });
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

  void store(const LineChunk& chunk, const Encoded& group, TokenWriter& writer) {
    for (const Encoded::Skipped& skipped : group.skipped)
      count_skipped(chunk.items[skipped.item], skipped);
    std::size_t begin = 0;
    for (std::size_t i = 0; i < group.ends.size(); ++i) {
      const LineChunk::Item& item = chunk.items[group.items[i]];
      writer.append_document(std::span(group.ids).subspan(begin, group.ends[i] - begin),
                             {.id = group.names[i],
                              .source = reader_.sources()[item.source].path,
                              .line = item.line.number});
      begin = group.ends[i];
      ++counts(item.source).documents;
    }
    report_.documents += group.ends.size();
    report_.tokens += group.ids.size();
    report_.text_bytes += group.text_bytes;
  }

  SourceReport& counts(std::size_t source) {
    if (report_.sources.size() <= source) report_.sources.resize(source + 1);
    return report_.sources[source];
  }

  void count_skipped(const LineChunk::Item& item, const Encoded::Skipped& skipped) {
    SourceReport& source = counts(item.source);
    if (skipped.why == Encoded::Skipped::kBlank) ++source.blank_lines;
    if (skipped.why == Encoded::Skipped::kEmpty) ++source.empty_documents;
    if (skipped.why != Encoded::Skipped::kBad) return;
    report_.bad_lines.add({reader_.sources()[item.source].path, item.line.number, skipped.problem});
    ++source.bad_lines;
  }

  [[nodiscard]] Progress progress() const {
    const auto tokens = formatted("%.1f M tokens", static_cast<double>(report_.tokens) / 1e6);
    return {.what = {},
            .tokens = static_cast<std::int64_t>(report_.tokens),
            .facts = {{counted(static_cast<std::int64_t>(report_.documents), "document"), 4},
                      {tokens, 3}}};
  }

  void finish(TokenWriter& writer, UnfinishedOutput& unfinished) {
    if (report_.documents == 0) {
      throw Error(ErrorKind::kInput,
                  "data tokenize: no document in " +
                      counted(std::ssize(reader_.sources()), "input file") + " (" +
                      counted(static_cast<std::int64_t>(report_.bad_lines.count()), "bad line") +
                      ")");
    }
    writer.finish();
    report_.sources.resize(reader_.sources().size());
    for (std::size_t i = 0; i < report_.sources.size(); ++i)
      report_.sources[i].file = reader_.sources()[i];
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
    facts["index_sha256"] = output.index_digest.hex();
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
  LineChunkReader reader_;
  TokenizeReport report_;
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
               {"bad_lines", to_json(report.bad_lines)},
               {"outputs", Json::array()},
               {"sources", Json::array()}};
  for (const TokenWriter::Part& output : report.outputs) {
    json["outputs"].push_back({{"path", output.path.string()},
                               {"sha256", output.digest.hex()},
                               {"tokens", output.tokens},
                               {"documents", output.documents}});
  }
  for (const SourceReport& source : report.sources) {
    json["sources"].push_back({{"path", source.file.path},
                               {"bytes", source.file.bytes},
                               {"sha256", source.file.digest.hex()},
                               {"compression", to_string(source.file.compression)},
                               {"lines", source.file.lines},
                               {"documents", source.documents},
                               {"empty_documents", source.empty_documents},
                               {"blank_lines", source.blank_lines},
                               {"bad_lines", source.bad_lines}});
  }
  return json;
}

}  // namespace olmo::data

#include "data/documents/mix.h"

#include <algorithm>
#include <array>
#include <memory>
#include <set>

#include <glob.h>
#include <nlohmann/json.hpp>

#include "core/compute/policy.h"
#include "core/error.h"
#include "core/files/output_file.h"
#include "core/text/text.h"
#include "data/documents/attributes.h"
#include "data/documents/line_writer.h"
#include "data/python_text.h"

namespace olmo::data {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_of(const std::string& pattern) {
  if (pattern.find_first_of("*?[") == std::string::npos) return expand_inputs({pattern});
  glob_t found{};
  const std::unique_ptr<glob_t, decltype(&::globfree)> guard(&found, &::globfree);
  if (::glob(pattern.c_str(), 0, nullptr, &found) != 0)
    throw Error(ErrorKind::kInput, pattern + ": matches no file");
  std::vector<fs::path> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  return expand_inputs(paths);
}

std::uint64_t size_of(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : size;
}

fs::path below_documents(const fs::path& path) {
  if (const auto place = split_at_documents(path)) return place->below;
  throw Error(ErrorKind::kUsage,
              path.string() + ": lies in no folder `documents`; give shuffle: true");
}

/// Lines of documents with those of their attributes.
struct MixChunk : LineChunk {
  std::vector<std::vector<Line>> attributes;  ///< of each item, unless it is blank
};

/// Reads documents, and in step with them the files of their attributes.
class MixReader {
 public:
  MixReader(const std::vector<fs::path>& inputs, const std::vector<std::string>& names)
      : inputs_(inputs), names_(names), documents_(inputs) {}

  void read(MixChunk& chunk) {
    documents_.read(chunk);
    chunk.attributes.resize(std::max(chunk.attributes.size(), chunk.count));
    for (std::size_t i = 0; i < chunk.count; ++i) {
      if (is_blank(chunk.items[i].line)) continue;
      open(chunk.items[i].source);
      chunk.attributes[i].resize(readers_.size());
      for (std::size_t k = 0; k < readers_.size(); ++k) {
        if (next(k, chunk.attributes[i][k])) continue;
        throw Error(ErrorKind::kInput, attribute_path(k).string() + ": ends before line " +
                                           std::to_string(chunk.items[i].line.number) +
                                           " of its documents " + inputs_[open_source_].string());
      }
    }
    if (chunk.count == 0) close();
  }

  [[nodiscard]] const LineChunkReader& documents() const noexcept { return documents_; }
  [[nodiscard]] const fs::path& input(std::size_t source) const { return inputs_[source]; }
  [[nodiscard]] fs::path attribute_path(std::size_t source, std::size_t name) const {
    return attribute_file(inputs_[source], names_[name]);
  }

 private:
  [[nodiscard]] fs::path attribute_path(std::size_t name) const {
    return attribute_path(open_source_, name);
  }

  bool next(std::size_t name, Line& line) {
    while (readers_[name]->next(line)) {
      if (!is_blank(line)) return true;
    }
    return false;
  }

  void open(std::size_t source) {
    if (open_source_ == source && is_open_) return;
    close();
    open_source_ = source;
    is_open_ = true;
    for (std::size_t k = 0; k < names_.size(); ++k)
      readers_.push_back(std::make_unique<LineReader>(attribute_path(k)));
  }

  /// A file of attributes ends where its documents do.
  void close() {
    Line line;
    for (std::size_t k = 0; k < readers_.size(); ++k) {
      if (next(k, line))
        throw Error(ErrorKind::kInput, attribute_path(k).string() +
                                           ": goes on behind the last line of its documents " +
                                           inputs_[open_source_].string());
    }
    readers_.clear();
    is_open_ = false;
  }

  const std::vector<fs::path>& inputs_;
  const std::vector<std::string>& names_;
  LineChunkReader documents_;
  std::vector<std::unique_ptr<LineReader>> readers_;  ///< of the names
  std::size_t open_source_ = 0;
  bool is_open_ = false;
};

/// What became of a line.
struct Mixed {
  enum class Kind { kBlank, kBad, kFiltered, kTooShort, kKept } kind = Kind::kBlank;
  std::string text;  ///< of a bad line what is wrong, of a kept document its line
  std::uint64_t text_bytes = 0;
  std::uint64_t replaced_spans = 0;
};

/// What a stream does with a document.
class StreamRules {
 public:
  StreamRules(const MixStream& stream, const MixReader& reader)
      : stream_(stream), reader_(reader) {}

  [[nodiscard]] Mixed mix(const MixChunk& chunk, std::size_t index) const {
    Mixed mixed;
    const LineChunk::Item& item = chunk.items[index];
    if (is_blank(item.line)) return mixed;
    ParsedDocument parsed = parse_whole_document(item.line);
    if (!parsed.problem.empty())
      return {.kind = Mixed::Kind::kBad, .text = std::move(parsed.problem)};
    Json& document = *parsed.document;
    if (!stream_.attributes.empty()) merge_attributes(chunk, index, document);
    if (!is_taken(document)) return {.kind = Mixed::Kind::kFiltered, .text = {}};
    auto& text = document["text"].get_ref<std::string&>();
    std::vector<Span> spans = spans_to_replace(document, item);
    mixed.replaced_spans = spans.size();
    if (!spans.empty()) text = replace_spans(text, std::move(spans));
    if (strip(text).size() < stream_.min_text_length)
      return {.kind = Mixed::Kind::kTooShort, .text = {}};
    mixed.kind = Mixed::Kind::kKept;
    mixed.text_bytes = text.size();
    for (const std::string& field : stream_.discard_fields) document.erase(field);
    Json& metadata = document["metadata"];
    if (!metadata.is_object()) metadata = Json::object();
    metadata["provenance"] =
        reader_.input(item.source).filename().string() + ":" + std::to_string(item.line.number);
    mixed.text = json_text(document);
    return mixed;
  }

 private:
  /// Not by the reader's list of sources, which grows meanwhile.
  [[nodiscard]] std::string place(const LineChunk::Item& item) const {
    return reader_.input(item.source).string() + ":" + std::to_string(item.line.number);
  }

  void merge_attributes(const MixChunk& chunk, std::size_t index, Json& document) const {
    const LineChunk::Item& item = chunk.items[index];
    Json& merged = document["attributes"];
    if (!merged.is_object()) merged = Json::object();
    for (std::size_t k = 0; k < stream_.attributes.size(); ++k) {
      const Line& line = chunk.attributes[index][k];
      const std::string where =
          reader_.attribute_path(item.source, k).string() + ":" + std::to_string(line.number);
      const Json found = parse_strict_json(line.bytes, {.where = where, .is_object = true});
      if (!found.contains("attributes") || !found["attributes"].is_object())
        throw Error(ErrorKind::kInput, where + ": has no object `attributes`");
      if (id_of(found) != id_of(document))
        throw Error(ErrorKind::kInput, where + ": belongs to the document with the id " +
                                           id_of(found) + ", but " + place(item) + " has the id " +
                                           id_of(document));
      for (const auto& [name, value] : found["attributes"].items()) merged[name] = value;
    }
  }

  static std::string id_of(const Json& line) {
    const auto id = line.find("id");
    return id == line.end() ? "null" : json_text(*id);
  }

  [[nodiscard]] bool is_taken(const Json& document) const {
    const auto matches = [&](const JsonPath& path) { return !path.find(document).empty(); };
    return (stream_.include.empty() || std::ranges::any_of(stream_.include, matches)) &&
           std::ranges::none_of(stream_.exclude, matches);
  }

  [[nodiscard]] std::vector<Span> spans_to_replace(const Json& document,
                                                   const LineChunk::Item& item) const {
    std::vector<Span> spans;
    for (const SpanReplacement& rule : stream_.span_replacement) {
      std::vector<const Json*> found = rule.span.find(document);
      if (found.size() == 1 && found.front()->is_array() &&
          (found.front()->empty() || found.front()->front().is_array())) {
        const Json& list = *found.front();
        found.clear();
        for (const Json& span : list) found.push_back(&span);
      }
      for (const Json* span : found) {
        if (span->is_null()) continue;
        const auto score = [&] { return (*span)[2].get<double>(); };
        require_span(*span, item);
        if (rule.min_score && score() < *rule.min_score) continue;
        if (rule.max_score && score() >= *rule.max_score) continue;
        spans.push_back({.begin = (*span)[0].get<std::uint64_t>(),
                         .end = (*span)[1].get<std::uint64_t>(),
                         .replacement = rule.replacement});
      }
    }
    return spans;
  }

  void require_span(const Json& span, const LineChunk::Item& item) const {
    if (span.is_array() && span.size() == 3 && span[0].is_number_unsigned() &&
        span[1].is_number_unsigned() && span[2].is_number())
      return;
    throw Error(ErrorKind::kInput, place(item) + ": expected a span [begin, end, score], got " +
                                       json_text(span).substr(0, 80));
  }

  const MixStream& stream_;
  const MixReader& reader_;
};

/// One run of `mix`.
class MixRun {
 public:
  explicit MixRun(const MixOptions& options) : options_(options) {
    if (options.threads < 1)
      throw Error(ErrorKind::kUsage,
                  "data mix: threads must be at least 1, got " + std::to_string(options.threads));
    require_threads(options.threads);
    report_.bad_lines = BadLines(options.on_bad_line);
    std::set<fs::path> outputs;
    for (const MixStream& stream : options.streams) {
      report_.streams.push_back({.name = stream.name, .shards = plan_mix(stream, options.shuffle)});
      for (const MixShard& shard : report_.streams.back().shards) {
        if (!outputs.insert(shard.output).second)
          throw Error(ErrorKind::kUsage,
                      shard.output.string() + ": two streams or inputs would have it as output");
        if (!options.overwrite) require_absent(shard.output);
      }
    }
  }

  MixReport run() {
    if (report_.streams.empty()) throw Error(ErrorKind::kUsage, "data mix: there are no streams");
    UnfinishedOutput unfinished(report_.streams.front().shards.front().output.string());
    for (std::size_t i = 0; i < options_.streams.size(); ++i)
      run_stream(options_.streams[i], report_.streams[i]);
    unfinished.take_names();
    for (const auto& writer : writers_) writer->publish();
    return std::move(report_);
  }

 private:
  void run_stream(const MixStream& stream, MixReport::Stream& report) {
    for (const MixShard& shard : report.shards) {
      folders_.push_back(std::make_unique<NewFolders>(shard.output.parent_path()));
      writers_.push_back(std::make_unique<LineWriter>(shard.output, options_.threads));
      MixReader reader(shard.inputs, stream.attributes);
      run_shard(StreamRules(stream, reader), reader, report);
      writers_.back()->finish();
    }
  }

  void run_shard(const StreamRules& rules, MixReader& reader, MixReport::Stream& report) {
    const std::string verb = "mixing " + report.name + ",";
    ReadingProgress progress(options_.on_progress, reader.documents(), verb.c_str());
    process_lines<std::vector<Mixed>, MixChunk>(
        reader, options_.threads,
        [&](const MixChunk& chunk, std::size_t group, std::vector<Mixed>& lines) {
          lines.clear();
          for (std::size_t i = chunk.groups[group].first; i < chunk.groups[group].second; ++i)
            lines.push_back(rules.mix(chunk, i));
        },
        [&](const MixChunk& chunk, std::size_t group, const std::vector<Mixed>& lines) {
          for (std::size_t i = 0; i < lines.size(); ++i) {
            const LineChunk::Item& item = chunk.items[chunk.groups[group].first + i];
            store(reader.documents().sources()[item.source].path, item.line.number, lines[i],
                  report);
          }
        },
        [&](const MixChunk& chunk) {
          progress.tell(chunk, [&]() -> Progress {
            return {
                .what = {},
                .facts = {{counted(static_cast<std::int64_t>(report.documents), "document"), 4}}};
          });
        });
  }

  void store(const std::string& path, std::uint64_t line, const Mixed& mixed,
             MixReport::Stream& report) {
    if (mixed.kind == Mixed::Kind::kBlank) return;
    if (mixed.kind == Mixed::Kind::kBad) return report_.bad_lines.add({path, line, mixed.text});
    ++report.documents;
    report.replaced_spans += mixed.replaced_spans;
    if (mixed.kind == Mixed::Kind::kFiltered) ++report.filtered;
    if (mixed.kind == Mixed::Kind::kTooShort) ++report.too_short;
    if (mixed.kind != Mixed::Kind::kKept) return;
    report.text_bytes += mixed.text_bytes;
    writers_.back()->write(mixed.text);
  }

  const MixOptions& options_;
  MixReport report_;
  std::vector<std::unique_ptr<NewFolders>> folders_;
  std::vector<std::unique_ptr<LineWriter>> writers_;
};

}  // namespace

std::vector<MixShard> plan_mix(const MixStream& stream, bool shuffle) {
  std::vector<MixShard> shards;
  std::uint64_t size = 0;
  for (const std::string& pattern : stream.documents) {
    for (const fs::path& input : files_of(pattern)) {
      if (!shuffle) {
        shards.push_back(
            {.output = stream.output / "documents" / below_documents(input), .inputs = {input}});
        continue;
      }
      size += size_of(input);
      if (shards.empty() || size > stream.max_size_in_bytes) {
        if (!shards.empty()) size = size_of(input);
        const std::string name =
            stream.name + formatted("-%04zu.jsonl", shards.size()) + stream.ending;
        shards.push_back({.output = stream.output / name, .inputs = {}});
      }
      shards.back().inputs.push_back(input);
    }
  }
  if (shards.empty())
    throw Error(ErrorKind::kUsage, "data mix: the stream " + stream.name + " has no documents");
  return shards;
}

MixReport mix(const MixOptions& options) { return MixRun(options).run(); }

Json to_json(const MixReport& report) {
  Json json = {{"bad_lines", to_json(report.bad_lines)}, {"streams", Json::array()}};
  for (const MixReport::Stream& stream : report.streams) {
    Json outputs = Json::array();
    for (const MixShard& shard : stream.shards) outputs.push_back(shard.output.string());
    json["streams"].push_back({{"name", stream.name},
                               {"documents", stream.documents},
                               {"filtered", stream.filtered},
                               {"too_short", stream.too_short},
                               {"written", stream.written()},
                               {"text_bytes", stream.text_bytes},
                               {"replaced_spans", stream.replaced_spans},
                               {"outputs", std::move(outputs)}});
  }
  return json;
}

}  // namespace olmo::data

#include "data/documents/dedup.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/compute/policy.h"
#include "core/error.h"
#include "core/files/output_file.h"
#include "core/text/text.h"
#include "data/documents/attributes.h"
#include "data/documents/key_set.h"
#include "data/documents/line_writer.h"
#include "data/documents/word_index.h"
#include "data/python_text.h"

namespace olmo::data {
namespace {

namespace fs = std::filesystem;

/// Something of a document that is compared.
struct Part {
  Key key;
  Span span;  ///< of a paragraph
  std::uint64_t bytes = 0;
};

/// What is known of a line before it is compared with others.
struct Prepared {
  enum class Kind { kDocument, kBlank, kBad } kind = Kind::kBlank;
  std::string problem;  ///< of a bad line
  JsonValue document;
  std::vector<Part> parts;  ///< of kWords: only what was found
  bool lacks_field = false;
};

/// The value at `a.b.c`; null if there is none.
const Json* find_field(const Json& document, std::string_view path) {
  const Json* value = &document;
  while (value != nullptr && !path.empty()) {
    const auto dot = path.find('.');
    const std::string name(path.substr(0, dot));
    path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
    const auto member = value->is_object() ? value->find(name) : value->end();
    value = value->is_object() && member != value->end() ? &*member : nullptr;
  }
  return value;
}

/// Calls use(line, span) for each line of a text that is not blank.
template <class Use>
void for_each_paragraph(std::string_view text, const Use& use) {
  std::uint64_t begin = 0;
  while (!text.empty()) {
    const auto newline = text.find('\n');
    const std::string_view line = text.substr(0, newline);
    const bool ends = newline != std::string_view::npos;
    const std::uint64_t end = begin + count_characters(line) + (ends ? 1 : 0);
    if (!strip(line).empty()) use(line, Span{.begin = begin, .end = end});
    text.remove_prefix(line.size() + (ends ? 1 : 0));
    begin = end;
  }
}

/// One run of `dedup`.
class DedupRun {
 public:
  explicit DedupRun(DedupOptions options)
      : options_(std::move(options)), words_(std::move(options_.words)) {
    if (options_.threads < 1)
      throw Error(ErrorKind::kUsage, "data dedup: threads must be at least 1, got " +
                                         std::to_string(options_.threads));
    require_threads(options_.threads);
    if (options_.by == DedupBy::kWords && !compares_with_others())
      throw Error(ErrorKind::kUsage,
                  "data dedup: --by words needs texts to compare with: --against");
    if (options_.by != DedupBy::kWords && options_.words_texts > 0)
      throw Error(ErrorKind::kUsage,
                  "data dedup: evaluation records are compared with by their words: --by words");
    report_.bad_lines = BadLines(options_.on_bad_line);
    report_.compared_with = options_.words_texts;
  }

  DedupReport run() {
    const std::vector<fs::path> inputs = expand_inputs(options_.inputs);
    report_.outputs = outputs_for(inputs);
    learn();
    UnfinishedOutput unfinished(report_.outputs.front().string());
    LineChunkReader reader(inputs);
    for (const fs::path& input : inputs) report_.sources.push_back({.path = input.string()});
    read(reader, "comparing", [&](const LineChunk::Item& item, Prepared& line) {
      store(reader.sources()[item.source].path, item, line);
    });
    require_field();
    writer_for(inputs.size() - 1).finish();
    unfinished.take_names();
    for (const auto& writer : writers_) writer->publish();
    return std::move(report_);
  }

 private:
  [[nodiscard]] std::vector<fs::path> outputs_for(const std::vector<fs::path>& inputs) const {
    std::vector<fs::path> targets;
    if (!options_.output.empty()) {
      targets = {options_.output};
    } else {
      for (const fs::path& input : inputs)
        targets.push_back(attribute_file(input, options_.attributes));
    }
    std::set<fs::path> seen;
    for (const fs::path& target : targets) {
      if (!seen.insert(target).second)
        throw Error(ErrorKind::kUsage, target.string() + ": two inputs would have it as output");
      if (!options_.overwrite) require_absent(target);
    }
    return targets;
  }

  /// A field that none has is most likely misspelt, or another word of `--by` was meant.
  void require_field() const {
    const DedupSource all = total(report_);
    if (all.documents > 0 && all.without_field == all.documents)
      throw Error(ErrorKind::kInput, options_.inputs.front().string() +
                                         ": no document has the field `" + options_.field +
                                         "`; --by takes document, paragraph, words, or a field");
  }

  [[nodiscard]] bool compares_with_others() const {
    return !options_.against.empty() || options_.words_texts > 0;
  }

  /// Reads what the inputs are compared with.
  void learn() {
    if (!options_.against.empty()) {
      LineChunkReader reader(expand_inputs(options_.against));
      read(reader, "reading", [&](const LineChunk::Item& item, const Prepared& line) {
        if (line.kind == Prepared::Kind::kBad)
          report_.bad_lines.add(
              {reader.sources()[item.source].path, item.line.number, line.problem});
        if (line.kind != Prepared::Kind::kDocument) return;
        ++report_.compared_with;
        for (const Part& part : line.parts) keys_.insert(part.key);
        if (options_.by == DedupBy::kWords)
          words_.add((*line.document)["text"].get_ref<const std::string&>());
      });
    }
    words_.sort();
    has_learnt_ = true;
  }

  /// Calls use(item, prepared) for each line in its order.
  template <class Use>
  void read(LineChunkReader& reader, const char* verb, const Use& use) const {
    ReadingProgress progress(options_.on_progress, reader, verb);
    std::uint64_t documents = 0;
    process_lines<std::vector<Prepared>>(
        reader, options_.threads,
        [&](const LineChunk& chunk, std::size_t group, std::vector<Prepared>& lines) {
          lines.clear();
          for (std::size_t i = chunk.groups[group].first; i < chunk.groups[group].second; ++i)
            lines.push_back(prepare(chunk.items[i].line));
        },
        [&](const LineChunk& chunk, std::size_t group, std::vector<Prepared>& lines) {
          for (std::size_t i = 0; i < lines.size(); ++i)
            use(chunk.items[chunk.groups[group].first + i], lines[i]);
          documents += lines.size();
        },
        [&](const LineChunk& chunk) {
          progress.tell(chunk, [&]() -> Progress {
            return {.what = {},
                    .facts = {{counted(static_cast<std::int64_t>(documents), "document"), 4}}};
          });
        });
  }

  [[nodiscard]] Prepared prepare(const Line& line) const {
    Prepared prepared;
    if (is_blank(line)) return prepared;
    ParsedDocument parsed = parse_whole_document(line);
    if (!parsed.problem.empty()) {
      prepared.kind = Prepared::Kind::kBad;
      prepared.problem = std::move(parsed.problem);
      return prepared;
    }
    prepared.kind = Prepared::Kind::kDocument;
    prepared.document = std::move(parsed.document);
    const auto& text = (*prepared.document)["text"].get_ref<const std::string&>();
    if (options_.by == DedupBy::kWords) {
      if (has_learnt_ && (words_.is_text(text) || words_.shares_run(text)))
        prepared.parts.push_back({.key = {}, .span = {}, .bytes = text.size()});
    } else if (options_.by == DedupBy::kParagraph) {
      for_each_paragraph(text, [&](std::string_view paragraph, const Span& span) {
        prepared.parts.push_back(
            {.key = key_of(paragraph), .span = span, .bytes = paragraph.size()});
      });
    } else {
      prepare_whole(text, prepared);
    }
    return prepared;
  }

  void prepare_whole(const std::string& text, Prepared& prepared) const {
    std::optional<Key> key;
    if (options_.by == DedupBy::kField) {
      const Json* value = find_field(*prepared.document, options_.field);
      prepared.lacks_field = value == nullptr || value->is_null() || value->is_structured();
      if (!prepared.lacks_field) key = key_of(json_text(*value));
    } else if (!strip(text).empty()) {
      key = key_of(text);
    }
    if (key) prepared.parts.push_back({.key = *key, .span = {}, .bytes = text.size()});
  }

  /// Whether the part was there before.
  bool is_found(const Part& part) {
    if (options_.by == DedupBy::kWords) return true;
    return compares_with_others() ? keys_.contains(part.key) : !keys_.insert(part.key);
  }

  /// Files are opened one after the other: there may be more inputs than a process may have open.
  LineWriter& writer_for(std::size_t source) {
    const std::size_t index = options_.output.empty() ? source : 0;
    while (writers_.size() <= index) {
      if (!writers_.empty()) writers_.back()->finish();
      const fs::path& target = report_.outputs[writers_.size()];
      folders_.push_back(std::make_unique<NewFolders>(target.parent_path()));
      writers_.push_back(std::make_unique<LineWriter>(target, options_.threads));
    }
    return *writers_[index];
  }

  void store(const std::string& path, const LineChunk::Item& item, Prepared& line) {
    if (line.kind == Prepared::Kind::kBad)
      report_.bad_lines.add({path, item.line.number, line.problem});
    if (line.kind != Prepared::Kind::kDocument) {
      // Lines of attributes are found by their number among those that are not blank.
      if (options_.output.empty() && line.kind == Prepared::Kind::kBad)
        writer_for(item.source).write(R"({"attributes":{},"id":null})");
      return;
    }
    const auto& text = (*line.document)["text"].get_ref<const std::string&>();
    std::vector<Part> found;
    std::ranges::copy_if(line.parts, std::back_inserter(found),
                         [&](const Part& part) { return is_found(part); });
    count(report_.sources[item.source], text, line, found);
    if (options_.output.empty()) {
      write_attributes(writer_for(item.source), line, found);
    } else {
      write_document(item.line, line, found);
    }
  }

  void count(DedupSource& source, const std::string& text, const Prepared& line,
             const std::vector<Part>& found) {
    ++source.documents;
    report_.text_bytes += text.size();
    for (const Part& part : found) report_.duplicate_bytes += part.bytes;
    if (line.lacks_field) ++source.without_field;
    if (options_.by == DedupBy::kParagraph) {
      source.paragraphs += line.parts.size();
      source.duplicate_paragraphs += found.size();
      if (!found.empty() && found.size() == line.parts.size()) ++source.duplicates;
    } else {
      source.duplicates += found.size();
    }
  }

  static Span whole_text(const Prepared& line) {
    const auto& text = (*line.document)["text"].get_ref<const std::string&>();
    return {.begin = 0, .end = count_characters(text)};
  }

  void write_attributes(LineWriter& writer, const Prepared& line,
                        const std::vector<Part>& found) const {
    Json spans = Json::array();
    for (const Part& part : found) {
      const Span span = options_.by == DedupBy::kParagraph ? part.span : whole_text(line);
      spans.push_back({span.begin, span.end, 1.0});
    }
    const auto id = line.document->find("id");
    writer.write(json_text(Json{{"attributes", {{options_.attributes, std::move(spans)}}},
                                {"id", id == line.document->end() ? Json() : *id}}));
  }

  void write_document(const Line& line, Prepared& prepared, const std::vector<Part>& found) {
    LineWriter& writer = writer_for(0);
    if (found.empty()) return writer.write(line.bytes);
    if (options_.by != DedupBy::kParagraph || found.size() == prepared.parts.size()) return;
    std::vector<Span> spans;
    for (const Part& part : found) spans.push_back(part.span);
    Json& text = (*prepared.document)["text"];
    text = replace_spans(text.get_ref<const std::string&>(), std::move(spans));
    writer.write(json_text(*prepared.document));
  }

  DedupOptions options_;
  DedupReport report_;
  KeySet keys_;
  WordIndex words_;
  bool has_learnt_ = false;  ///< words_ can be asked
  std::vector<std::unique_ptr<NewFolders>> folders_;
  std::vector<std::unique_ptr<LineWriter>> writers_;  ///< one, or one for each input
};

}  // namespace

DedupSource total(const DedupReport& report) {
  DedupSource total;
  for (const DedupSource& source : report.sources) {
    total.documents += source.documents;
    total.duplicates += source.duplicates;
    total.paragraphs += source.paragraphs;
    total.duplicate_paragraphs += source.duplicate_paragraphs;
    total.without_field += source.without_field;
  }
  return total;
}

DedupReport dedup(DedupOptions options) { return DedupRun(std::move(options)).run(); }

Json to_json(const DedupReport& report) {
  Json json = {{"compared_with", report.compared_with},
               {"text_bytes", report.text_bytes},
               {"duplicate_bytes", report.duplicate_bytes},
               {"bad_lines", to_json(report.bad_lines)},
               {"outputs", Json::array()},
               {"sources", Json::array()}};
  for (const DedupSource& source : report.sources) {
    json["sources"].push_back({{"path", source.path},
                               {"documents", source.documents},
                               {"duplicates", source.duplicates},
                               {"paragraphs", source.paragraphs},
                               {"duplicate_paragraphs", source.duplicate_paragraphs},
                               {"without_field", source.without_field}});
  }
  const DedupSource all = total(report);
  json["documents"] = all.documents;
  json["duplicates"] = all.duplicates;
  for (const fs::path& output : report.outputs) json["outputs"].push_back(output.string());
  return json;
}

}  // namespace olmo::data

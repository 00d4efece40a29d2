#include "eval/document_reader.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/text/text.h"
#include "data/text_reader.h"

namespace olmo::eval {
namespace {

constexpr std::size_t kMaxDocument = data::LineReader::kMaxLine;

[[noreturn]] void input_error(const std::string& place, const std::string& what) {
  throw Error(ErrorKind::kInput, place + ": " + what);
}

void check_utf8(std::string_view text, const std::string& place) {
  std::size_t at = 0;
  while (at < text.size()) {
    const CodePoint point = decode_utf8(text.substr(at));
    if (point.code == kBadUtf8)
      input_error(place, "is not UTF-8 at byte " + std::to_string(at) + ", expected a text");
    at += point.size;
  }
}

std::string read_text(const std::filesystem::path& path) {
  data::ByteSource source(path);
  std::string text;
  std::string block(std::size_t{1} << 18, '\0');
  while (const std::size_t size = source.read(block.data(), block.size())) {
    text.append(block, 0, size);
    if (text.size() > kMaxDocument)
      input_error(path.string(), "is longer than " + std::to_string(kMaxDocument >> 20) +
                                     " MiB, which is the most that one document may have");
  }
  check_utf8(text, path.string());
  return text;
}

std::uint64_t size_on_disk(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) input_error(path.string(), "cannot be read: " + error.message());
  return size;
}

}  // namespace

TextCounts count_text(std::string_view text) {
  TextCounts counts{.bytes = std::ssize(text), .chars = 0, .words = 1};
  bool in_space = false;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_valid_utf8(text.data() + at);
    const bool space = is_python_space(point.code);
    if (space && !in_space) ++counts.words;
    in_space = space;
    ++counts.chars;
    at += point.size;
  }
  return counts;
}

struct DocumentReader::State {
  const std::vector<SuiteSource>& sources;
  std::optional<std::int64_t> limit;
  std::size_t source = 0;
  std::size_t file = 0;
  std::int64_t taken = 0;  ///< documents of this source
  std::optional<data::LineReader> lines;
  data::Line line;
  std::vector<std::vector<std::uint64_t>> sizes;
  std::uint64_t finished = 0;  ///< bytes of the files before this one
  std::uint64_t total = 0;

  State(const std::vector<SuiteSource>& all, std::optional<std::int64_t> most)
      : sources(all), limit(most) {
    for (const SuiteSource& one : sources) {
      auto& of_source = sizes.emplace_back();
      for (const SuiteFile& each : one.files) {
        of_source.push_back(size_on_disk(each.path));
        total += of_source.back();
      }
    }
  }

  void finish_file() {
    finished += sizes[source][file];
    ++file;
    lines.reset();
  }

  void finish_source() {
    while (file < sources[source].files.size()) finish_file();
    ++source;
    file = 0;
    taken = 0;
  }

  /// A document of the current file, false at its end.
  bool read_from_file(Document& document) {
    const SuiteFile& from = sources[source].files[file];
    const std::string name = from.path.filename().string();
    if (file_kind(from.path) == FileKind::kText) {
      document = {.text = read_text(from.path),
                  .source = sources[source].name,
                  .subdomain = from.subdomain,
                  .id = name,
                  .place = from.path.string()};
      finish_file();
      return true;
    }
    if (!lines) lines.emplace(from.path);
    while (lines->next(line)) {
      if (line.bytes.empty()) continue;
      parse_line(from, name, document);
      return true;
    }
    finish_file();
    return false;
  }

  void parse_line(const SuiteFile& from, const std::string& name, Document& document) {
    const std::string number = std::to_string(line.number);
    document.place = from.path.string() + ":" + number;
    if (line.too_long)
      input_error(document.place, "is longer than " + std::to_string(kMaxDocument >> 20) + " MiB");
    data::DocumentText parsed = data::parse_document(line.bytes);
    if (!parsed.text) input_error(document.place, parsed.problem);
    document.text = std::move(*parsed.text);
    const SuiteSource& of = sources[source];
    document.source = of.named_by_documents ? parsed.source.value_or(of.name) : of.name;
    document.subdomain = parsed.subdomain.value_or(from.subdomain);
    document.id = parsed.id && !parsed.id->empty() ? *parsed.id : name + "#" + number;
  }
};

DocumentReader::DocumentReader(const std::vector<SuiteSource>& sources,
                               std::optional<std::int64_t> limit)
    : state_(std::make_unique<State>(sources, limit)) {}
DocumentReader::~DocumentReader() = default;

bool DocumentReader::next(Document& document) {
  State& state = *state_;
  while (state.source < state.sources.size()) {
    if (state.file == state.sources[state.source].files.size() ||
        (state.limit && state.taken >= *state.limit)) {
      state.finish_source();
    } else if (state.read_from_file(document)) {
      ++state.taken;
      return true;
    }
  }
  return false;
}

double DocumentReader::fraction_read() const {
  State& state = *state_;
  const auto share = [](std::uint64_t done, std::uint64_t of) {
    return of == 0 ? 1.0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(of));
  };
  const std::uint64_t here = state.lines ? state.lines->source().file_position() : 0;
  if (!state.limit || state.sources.empty()) return share(state.finished + here, state.total);
  // So many documents of each source, whatever their files weigh.
  double sources_done = static_cast<double>(state.source);
  if (state.source < state.sources.size()) {
    const auto& sizes = state.sizes[state.source];
    const auto file = static_cast<std::ptrdiff_t>(state.file);
    const auto before = std::accumulate(sizes.begin(), sizes.begin() + file, std::uint64_t{0});
    const auto whole = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
    sources_done += std::max(
        share(before + here, whole),
        share(static_cast<std::uint64_t>(state.taken), static_cast<std::uint64_t>(*state.limit)));
  }
  return std::min(1.0, sources_done / static_cast<double>(state.sources.size()));
}

}  // namespace olmo::eval

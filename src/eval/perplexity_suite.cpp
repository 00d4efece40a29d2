#include "eval/perplexity_suite.h"

#include <algorithm>
#include <array>
#include <set>

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace olmo::eval {
namespace {

namespace fs = std::filesystem;

/// Reads the keys of one JSON object of a definition; what is wrong is named with its place.
class Fields {
 public:
  Fields(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json_.is_object()) fail("expected a JSON object");
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::kUsage, where_ + ": " + what);
  }

  const Json* find(const char* key) {
    known_.insert(key);
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }

  std::string text(const char* key, std::string otherwise = {}) {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_string()) fail("`" + std::string(key) + "` must be a string");
    return value->get<std::string>();
  }

  std::string required(const char* key) {
    std::string value = text(key);
    if (value.empty()) fail("has no `" + std::string(key) + "`");
    return value;
  }

  /// One of two words.
  std::string word(const char* key, const std::array<std::string, 2>& words,
                   const std::string& otherwise) {
    std::string value = text(key, otherwise);
    if (value != words[0] && value != words[1])
      fail("`" + std::string(key) + "` must be " + words[0] + " or " + words[1] + ", got '" +
           value + "'");
    return value;
  }

  /// A path that stays below the folder it is joined to.
  std::string path_below(const char* key, std::string otherwise) {
    std::string value = text(key, std::move(otherwise));
    const fs::path path = fs::path(value).lexically_normal();
    if (path.is_absolute() || (!path.empty() && *path.begin() == ".."))
      fail("`" + std::string(key) + "` must be a path below the data folder, got " + value);
    return value;
  }

  bool flag(const char* key, bool otherwise) {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) fail("`" + std::string(key) + "` must be true or false");
    return value->get<bool>();
  }

  std::int64_t count(const char* key) {
    const Json* value = find(key);
    if (value == nullptr) return 0;
    if (!value->is_number_unsigned() || value->get<std::uint64_t>() > 1'000'000'000)
      fail("`" + std::string(key) + "` must be a count");
    return value->get<std::int64_t>();
  }

  /// After all keys were asked for.
  void refuse_others() const {
    for (const auto& [key, value] : json_.items())
      if (!known_.contains(key)) fail("unknown key `" + key + "`");
  }

 private:
  const Json& json_;
  std::string where_;
  std::set<std::string> known_;
};

SourceDefinition parse_source(const Json& json, const std::string& split,
                              const std::string& where) {
  Fields fields(json, where);
  SourceDefinition source;
  source.name = fields.required("name");
  source.path = fields.path_below("path", source.name + "/" + split);
  source.get = fields.text("get");
  fields.text("description");
  source.domains = fields.count("domains");
  source.is_public = fields.flag("public", true);
  source.in_olmo_paper = fields.flag("olmo_paper", false);
  fields.refuse_others();
  return source;
}

void parse_sources(Fields& fields, const std::string& where, SuiteDefinition& definition) {
  const Json* sources = fields.find("sources");
  if (sources == nullptr || !sources->is_array() || sources->empty())
    fields.fail("`sources` must be a list with at least one source");
  std::set<std::string> names;
  for (std::size_t i = 0; i < sources->size(); ++i) {
    const std::string place = where + ": sources[" + std::to_string(i) + "]";
    definition.sources.push_back(parse_source((*sources)[i], definition.split, place));
    const std::string& source = definition.sources.back().name;
    if (!names.insert(source).second) fields.fail("source `" + source + "` is listed twice");
  }
}

/// `text` with every `name` replaced.
std::string replace_all(std::string text, std::string_view name, const std::string& value) {
  for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += value.size())
    text.replace(at, name.size(), value);
  return text;
}

/// A line for each way to get some of them.
std::string describe(const std::vector<MissingSource>& missing) {
  std::map<std::string, std::string> sources;
  for (const MissingSource& source : missing) {
    std::string& names = sources[source.get];
    names += (names.empty() ? "" : ", ") + source.name;
  }
  std::string text;
  for (const auto& [get, names] : sources) text += "\n  " + names + ": " + get;
  return text;
}

/// The first folder that holds the suite's; if none does, the first one.
fs::path data_folder(const SuiteDefinition& definition, std::span<const fs::path> data_folders) {
  for (const fs::path& folder : data_folders)
    if (fs::exists(folder / definition.folder)) return folder;
  return data_folders.empty() ? fs::path(".") : data_folders.front();
}

SuiteSource find_source(const SourceDefinition& definition, const fs::path& path,
                        const std::string& split) {
  // `path` leads to the split itself; files below it are of this source, in whatever folders.
  SuiteSource source{.name = definition.name, .named_by_documents = false, .files = {}};
  for (SuiteSource& part : find_sources(definition.name, path, split))
    std::move(part.files.begin(), part.files.end(), std::back_inserter(source.files));
  return source;
}

void set_convention(PerplexitySuite& suite, std::optional<DocumentConvention> convention) {
  const auto is_tokens = [](const SuiteSource& source) {
    return file_kind(source.files.front().path) == FileKind::kTokens;
  };
  const bool tokens = is_tokens(suite.sources.front());
  for (const SuiteSource& source : suite.sources) {
    if (is_tokens(source) != tokens)
      throw Error(ErrorKind::kInput, "suite " + suite.name +
                                         ": some of its sources are token files, others text (" +
                                         source.name + "); evaluate them as two suites");
  }
  suite.convention =
      convention.value_or(tokens ? DocumentConvention::kOlmo : DocumentConvention::kCatwalk);
  if (tokens && suite.convention == DocumentConvention::kCatwalk)
    throw Error(ErrorKind::kUsage, "suite " + suite.name +
                                       ": token files have no documents, so convention catwalk "
                                       "does not apply to them; use olmo");
}

}  // namespace

DocumentConvention parse_document_convention(std::string_view name) {
  if (name == "catwalk") return DocumentConvention::kCatwalk;
  if (name == "olmo") return DocumentConvention::kOlmo;
  throw Error(ErrorKind::kUsage,
              "convention of a perplexity suite: expected catwalk or olmo, got '" +
                  std::string(name) + "'");
}

std::string to_string(DocumentConvention convention) {
  return convention == DocumentConvention::kCatwalk ? "catwalk" : "olmo";
}

PerplexitySuite open_perplexity_suite(const std::string& name, const fs::path& path,
                                      std::optional<DocumentConvention> convention,
                                      const std::string& split) {
  PerplexitySuite suite;
  suite.name = name;
  suite.sources = find_sources(name, path, split);
  set_convention(suite, convention);
  return suite;
}

SuiteDefinition parse_suite_definition(const std::string& name, const Json& json,
                                       const std::string& where) {
  Fields fields(json, where);
  if (const std::string kind = fields.text("kind"); kind != "perplexity")
    fields.fail("`kind` must be perplexity, got '" + kind + "'");
  SuiteDefinition definition;
  definition.name = name;
  for (const char* for_readers : {"description", "reference"}) fields.text(for_readers);
  definition.convention =
      parse_document_convention(fields.word("convention", {"catwalk", "olmo"}, "catwalk"));
  definition.folder = fields.path_below("folder", definition.name);
  definition.split = fields.text("split", "val");
  if (fields.find("dtype") != nullptr)
    definition.dtype = data::parse_token_dtype(fields.word("dtype", {"uint16", "uint32"}, ""));
  definition.refuse_missing = fields.word("missing", {"skip", "refuse"}, "skip") == "refuse";
  definition.get = fields.text("get", "put it at {data}/" + definition.folder + "/{file}");
  parse_sources(fields, where, definition);
  fields.refuse_others();
  return definition;
}

ResolvedSuite resolve_suite(const SuiteDefinition& definition,
                            std::span<const fs::path> data_folders, bool refuse_missing) {
  const fs::path data = data_folder(definition, data_folders);
  ResolvedSuite resolved;
  resolved.suite.name = definition.name;
  resolved.suite.dtype = definition.dtype;
  for (const SourceDefinition& source : definition.sources) {
    const fs::path path = data / definition.folder / source.path;
    if (fs::exists(path)) {
      resolved.suite.sources.push_back(find_source(source, path, definition.split));
      continue;
    }
    const std::string& get = source.get.empty() ? definition.get : source.get;
    resolved.missing.push_back(
        {.name = source.name,
         .path = path.string(),
         .get = replace_all(replace_all(get, "{data}", data.string()), "{file}", source.path)});
  }
  if (resolved.suite.sources.empty() || (refuse_missing && !resolved.missing.empty()))
    throw Error(ErrorKind::kInput, "suite " + definition.name + ": " +
                                       std::to_string(resolved.missing.size()) + " of its " +
                                       std::to_string(definition.sources.size()) +
                                       " sources are not on disk:" + describe(resolved.missing));
  set_convention(resolved.suite, definition.convention);
  return resolved;
}

ResolvedSuite suite_of_token_files(const std::string& name,
                                   const std::map<std::string, std::vector<std::string>>& files,
                                   data::TokenDtype dtype) {
  ResolvedSuite resolved;
  resolved.suite = {
      .name = name, .convention = DocumentConvention::kOlmo, .dtype = dtype, .sources = {}};
  for (const auto& [label, paths] : files) {
    SuiteSource source{.name = label, .named_by_documents = false, .files = {}};
    const auto missing = std::find_if(paths.begin(), paths.end(),
                                      [](const auto& path) { return !fs::exists(path); });
    if (missing != paths.end()) {
      resolved.missing.push_back({.name = label, .path = *missing, .get = {}});
      continue;
    }
    for (const auto& path : paths) source.files.push_back({path, ""});
    if (!paths.empty()) resolved.suite.sources.push_back(std::move(source));
  }
  return resolved;
}

}  // namespace olmo::eval

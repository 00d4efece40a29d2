#include "config/mix.h"

#include "config/file.h"
#include "config/group_reader.h"
#include "core/compute/policy.h"
#include "core/error.h"
#include "core/text/text.h"

namespace olmo::config {
namespace {

/// Reads the parts of a mixer's config. What is wrong is collected.
class MixReader {
 public:
  explicit MixReader(Findings& findings) : findings_(findings) {}

  MixConfig read(const ConfigNode& root) {
    MixConfig config;
    findings_.require_keys(root, "", "streams processes work_dir shuffle dryrun");
    GroupReader reader(findings_, root, "", "");
    std::int64_t processes = 0;
    reader.read_key("processes", processes);
    reader.read_key("shuffle", config.options.shuffle);
    reader.read_key("dryrun", config.dry_run);
    if (processes < 0) complain(root.find("processes"), "processes", "must be at least 0");
    if (processes > kMostThreads)
      complain(root.find("processes"), "processes",
               "must be at most " + std::to_string(kMostThreads));
    config.options.threads = static_cast<int>(processes);
    if (root.find("work_dir") != nullptr)
      config.notes.push_back("`work_dir` has no effect: files are read where they lie");
    for_each(root, "", "streams", [&](const ConfigNode& node, const std::string& path) {
      config.options.streams.push_back(read_stream(node, path));
    });
    if (config.options.streams.empty())
      complain(root.find("streams"), "streams", "must list what is mixed");
    return config;
  }

 private:
  void complain(const ConfigNode* node, const std::string& path, const std::string& what) {
    findings_.errors.push_back(findings_.line(node, path, what));
  }

  /// Calls read(map, "PREFIX" "NAME.0") for the maps in a list that may be absent.
  template <class Read>
  void for_each(const ConfigNode& map, const std::string& prefix, const char* name,
                const Read& read) {
    const std::string path = prefix + name;
    const ConfigNode* list = map.find(name);
    if (list == nullptr || list->kind == ConfigNode::Kind::kNull) return;
    if (list->kind != ConfigNode::Kind::kList) return complain(list, path, "must be a list");
    for (std::size_t i = 0; i < list->children.size(); ++i) {
      const std::string place = path + "." + std::to_string(i);
      if (list->children[i].kind == ConfigNode::Kind::kMap) {
        read(list->children[i], place);
      } else {
        complain(&list->children[i], place, "must be a map of keys");
      }
    }
  }

  data::MixStream read_stream(const ConfigNode& node, const std::string& path) {
    findings_.require_keys(node, path,
                           "name documents attributes output filter span_replacement compression");
    data::MixStream stream;
    GroupReader reader(findings_, node, path + ".", "");
    reader.read_key("name", stream.name);
    reader.read_key("documents", stream.documents);
    reader.read_key("attributes", stream.attributes);
    if (stream.name.empty() || stream.name.find('/') != std::string::npos)
      complain(node.find("name"), path + ".name", "must be a name without `/`");
    if (stream.documents.empty())
      complain(node.find("documents"), path + ".documents", "must name files of documents");
    read_output(group(node, path, "output"), path + ".output", stream);
    read_filter(group(node, path, "filter"), path + ".filter", stream);
    read_compression(group(node, path, "compression"), path + ".compression", stream);
    for_each(node, path + ".", "span_replacement",
             [&](const ConfigNode& span, const std::string& at) { read_span(span, at, stream); });
    return stream;
  }

  /// A map of keys; an empty one if it is absent.
  const ConfigNode& group(const ConfigNode& map, const std::string& path, const char* name) {
    static const ConfigNode kEmpty{
        .kind = ConfigNode::Kind::kMap, .text = {}, .keys = {}, .children = {}};
    const ConfigNode* node = map.find(name);
    if (node == nullptr || node->kind == ConfigNode::Kind::kNull) return kEmpty;
    if (node->kind == ConfigNode::Kind::kMap) return *node;
    complain(node, path + "." + name, "must be a map of keys");
    return kEmpty;
  }

  void read_output(const ConfigNode& node, const std::string& path, data::MixStream& stream) {
    findings_.require_keys(node, path, "path max_size_in_bytes min_text_length discard_fields");
    GroupReader reader(findings_, node, path + ".", "");
    std::string folder;
    std::optional<std::uint64_t> min_text_length;
    reader.read_key("path", folder);
    reader.read_key("max_size_in_bytes", stream.max_size_in_bytes);
    reader.read_key("min_text_length", min_text_length);
    reader.read_key("discard_fields", stream.discard_fields);
    stream.min_text_length = min_text_length.value_or(0);
    stream.output = folder;
    if (folder.empty()) complain(node.find("path"), path + ".path", "must name a folder");
    for (const std::string& field : stream.discard_fields) {
      if (field == "text")
        complain(node.find("discard_fields"), path + ".discard_fields",
                 "names `text`, without which there is no document");
    }
  }

  void read_filter(const ConfigNode& node, const std::string& path, data::MixStream& stream) {
    findings_.require_keys(node, path, "include exclude syntax");
    require_jsonpath(node, path);
    std::vector<std::string> include, exclude;
    GroupReader reader(findings_, node, path + ".", "");
    reader.read_key("include", include);
    reader.read_key("exclude", exclude);
    for (const std::string& text : include)
      add_path(node.find("include"), path + ".include", text, stream.include);
    for (const std::string& text : exclude)
      add_path(node.find("exclude"), path + ".exclude", text, stream.exclude);
  }

  void read_span(const ConfigNode& node, const std::string& path, data::MixStream& stream) {
    findings_.require_keys(node, path, "span min_score max_score replacement syntax");
    require_jsonpath(node, path);
    GroupReader reader(findings_, node, path + ".", "");
    std::string span, replacement;
    std::optional<double> min_score, max_score;
    reader.read_key("span", span);
    reader.read_key("min_score", min_score);
    reader.read_key("max_score", max_score);
    reader.read_key("replacement", replacement);
    if (replacement.starts_with('$'))
      complain(node.find("replacement"), path + ".replacement",
               "begins with `$`, which asks for a selector of jq; those are not understood here");
    std::vector<data::JsonPath> paths;
    add_path(node.find("span"), path + ".span", span, paths);
    if (paths.empty()) return;
    stream.span_replacement.push_back({.span = paths.front(),
                                       .min_score = min_score,
                                       .max_score = max_score,
                                       .replacement = replacement});
  }

  void read_compression(const ConfigNode& node, const std::string& path, data::MixStream& stream) {
    findings_.require_keys(node, path, "input output");
    // The first bytes of an input say how it is compressed.
    std::optional<std::string> output;
    GroupReader reader(findings_, node, path + ".", "");
    reader.read_key("output", output);
    if (!output) return;
    if (*output != "gz" && *output != "zst" && !output->empty())
      complain(node.find("output"), path + ".output", "must be gz, zst or empty");
    stream.ending = output->empty() ? "" : "." + *output;
  }

  void require_jsonpath(const ConfigNode& node, const std::string& path) {
    std::string syntax = "jsonpath";
    GroupReader(findings_, node, path + ".", "").read_key("syntax", syntax);
    if (syntax != "jsonpath")
      complain(node.find("syntax"), path + ".syntax",
               "must be jsonpath, is " + syntax + ", which is not understood here");
  }

  void add_path(const ConfigNode* node, const std::string& path, const std::string& text,
                std::vector<data::JsonPath>& paths) {
    try {
      paths.emplace_back(text);
    } catch (const Error& error) {
      complain(node, path, "has \"" + text + "\", no JSONPath: " + error.what());
    }
  }

  Findings& findings_;
};

}  // namespace

MixConfig read_mix_config(const std::string& file, const std::vector<std::string>& overrides) {
  ConfigDocument document = read_config_file(file);
  Findings findings{document, apply_overrides(document, overrides)};
  const ConfigNode no_defaults{
      .kind = ConfigNode::Kind::kMap, .text = {}, .keys = {}, .children = {}};
  for (ConfigMessage& message : resolve_references(document, no_defaults))
    findings.errors.push_back(std::move(message));
  MixConfig config = MixReader(findings).read(document.root);
  std::vector<ConfigMessage> wrong = std::move(findings.errors);
  for (const Misread& misread : findings.misread)
    wrong.push_back({misread.line, document.where(misread.line) + ": `" + misread.path +
                                       "` expects " + misread.expected + ", got " + misread.got});
  for (ConfigMessage& blocker : findings.blockers) wrong.push_back(std::move(blocker));
  if (!wrong.empty()) throw Error(ErrorKind::kUsage, joined(sorted_texts(std::move(wrong)), "\n"));
  return config;
}

}  // namespace olmo::config

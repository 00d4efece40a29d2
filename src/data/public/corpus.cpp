#include "data/public/corpus.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/output_file.h"
#include "core/files/recorded_json.h"
#include "data/documents/line_writer.h"
#include "data/text_reader.h"

namespace olmo::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTrainingSet = "train_rc_5shot";
constexpr std::string_view kQuestionMark = "\nQuestion:";

/// The `doc` object of a request line. It comes before the request, whose few-shot context is most
/// of the line and is not parsed. Nothing if the line has no such object.
std::optional<std::string_view> doc_of(std::string_view line) {
  constexpr std::string_view kKey = "\"doc\": {";
  const auto key = line.find(kKey);
  if (key == std::string_view::npos) return std::nullopt;
  const auto begin = key + kKey.size() - 1;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = begin; i < line.size(); ++i) {
    const char c = line[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '{') ++depth;
    if (c == '}' && --depth == 0) return line.substr(begin, i - begin + 1);
  }
  return std::nullopt;
}

/// Calls use(doc) for each doc of a request file that is not in `seen`, in order.
template <typename Use>
void for_each_doc(const fs::path& path, std::unordered_set<std::string>& seen, const Use& use) {
  LineReader reader(path);
  for (Line line; reader.next(line);) {
    if (line.bytes.empty()) continue;
    const auto text = line.too_long ? std::nullopt : doc_of(line.bytes);
    if (!text)
      throw Error(ErrorKind::kInput, path.string() + ":" + std::to_string(line.number) +
                                         ": expected a request with a `doc`");
    if (!seen.insert(std::string(*text)).second) continue;
    const Json doc = recorded_json(*text);
    if (!doc.is_object())
      throw Error(ErrorKind::kInput,
                  path.string() + ":" + std::to_string(line.number) + ": `doc` is not valid JSON");
    use(doc);
  }
}

std::string text_field(const Json& doc, const char* key) {
  return doc.contains(key) && doc[key].is_string() ? doc[key].get<std::string>() : std::string();
}

std::string fill_blank(std::string sentence, const std::string& option) {
  const auto blank = sentence.find('_');
  return blank == std::string::npos ? sentence : sentence.replace(blank, 1, option);
}

/// A training document: the text that it gives, and its question alone.
struct TrainingText {
  std::string text;
  std::string question;
};

std::optional<TrainingText> training_text(const std::string& task, const Json& doc) {
  const std::string query = text_field(doc, "query");
  if (task == "boolq") {
    const auto end = query.rfind(kQuestionMark);
    if (end == std::string::npos) return std::nullopt;
    return TrainingText{.text = query.substr(0, end), .question = query};
  }
  if (query.empty()) {
    const std::string sentence = text_field(doc, "sentence");
    const std::string answer = text_field(doc, "answer");
    if (sentence.empty() || (answer != "1" && answer != "2")) return std::nullopt;
    return TrainingText{
        .text = fill_blank(sentence, text_field(doc, answer == "1" ? "option1" : "option2")),
        .question = sentence};
  }
  if (!doc.contains("choices") || !doc["choices"].is_array() || !doc.contains("gold") ||
      !doc["gold"].is_number_unsigned())
    return std::nullopt;
  const auto gold = doc["gold"].get<std::size_t>();
  if (gold >= doc["choices"].size() || !doc["choices"][gold].is_string()) return std::nullopt;
  return TrainingText{.text = query + " " + doc["choices"][gold].get<std::string>(),
                      .question = query};
}

void add_strings(const Json& value, WordIndex& index) {
  if (value.is_string()) index.add(value.get<std::string>());
  if (!value.is_structured()) return;
  for (const Json& part : value) add_strings(part, index);
}

/// Every string of an evaluation doc, and what a model would read: the question with each answer,
/// the passage alone.
void add_evaluation_doc(const Json& doc, WordIndex& index) {
  add_strings(doc, index);
  const std::string query = text_field(doc, "query");
  if (const auto end = query.rfind(kQuestionMark); end != std::string::npos)
    index.add(std::string_view(query).substr(0, end));
  if (doc.contains("choices") && doc["choices"].is_array()) {
    for (const Json& choice : doc["choices"]) {
      if (choice.is_string()) index.add(query + " " + choice.get<std::string>());
    }
  }
  const std::string sentence = text_field(doc, "sentence");
  for (const char* option : {"option1", "option2"}) {
    if (!sentence.empty()) index.add(fill_blank(sentence, text_field(doc, option)));
  }
}

/// The request files below `folder`, sorted by path.
std::vector<fs::path> request_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder / "oe_eval_tasks", error)) {
    if (entry.path().filename() == "requests.jsonl.gz") files.push_back(entry.path());
  }
  if (error || files.empty()) {
    throw Error(
        ErrorKind::kInput,
        folder.string() +
            ": holds no oe_eval_tasks/*/*/requests.jsonl.gz; run `olmo-harness data fetch`");
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool is_training_set(const fs::path& file) {
  return file.parent_path().filename().string().rfind("train", 0) == 0;
}

}  // namespace

std::uint64_t add_evaluation_records(const fs::path& training_folder,
                                     const fs::path& evaluation_folder, WordIndex& index) {
  std::uint64_t documents = 0;
  std::unordered_set<std::string>
      seen_docs;  // the same doc is in several files: other shots, other splits of the same set
  for (const fs::path& folder : {evaluation_folder, training_folder}) {
    for (const fs::path& file : request_files(folder)) {
      if (is_training_set(file)) continue;
      for_each_doc(file, seen_docs, [&](const Json& doc) {
        add_evaluation_doc(doc, index);
        ++documents;
      });
    }
  }
  return documents;
}

CorpusReport make_corpus(const fs::path& training_folder, const fs::path& evaluation_folder,
                         const fs::path& output) {
  CorpusReport report;
  WordIndex index;
  const auto training_files = request_files(training_folder);
  report.evaluation_documents = add_evaluation_records(training_folder, evaluation_folder, index);
  index.sort();
  std::unordered_set<std::string> seen_docs;
  const NewFolders folders(output.parent_path());
  LineWriter writer(output);
  std::unordered_set<std::string> seen_texts;
  for (const fs::path& file : training_files) {
    if (file.parent_path().filename() != kTrainingSet) continue;
    CorpusSource& source = report.sources.emplace_back();
    source.task = file.parent_path().parent_path().filename().string();
    std::uint64_t number = 0;
    seen_docs.clear();
    for_each_doc(file, seen_docs, [&](const Json& doc) {
      const auto found = training_text(source.task, doc);
      if (!found)
        throw Error(ErrorKind::kInput, file.string() + ": document " + std::to_string(number) +
                                           " has another form than " + source.task + "'s");
      const std::uint64_t id = number++;
      if (!seen_texts.insert(found->text).second) {
        ++source.repeated;
      } else if (index.is_text(found->text) || index.is_text(found->question) ||
                 index.shares_run(found->text)) {
        ++source.evaluation;
      } else {
        ++source.documents;
        source.text_bytes += found->text.size();
        writer.write(Json{{"id", source.task + "-train-" + std::to_string(id)},
                          {"text", found->text},
                          {"source", source.task}}
                         .dump());
      }
    });
  }
  writer.finish();
  writer.publish();
  return report;
}

Json to_json(const CorpusReport& report) {
  Json sources = Json::array();
  std::uint64_t documents = 0;
  std::uint64_t text_bytes = 0;
  for (const CorpusSource& source : report.sources) {
    documents += source.documents;
    text_bytes += source.text_bytes;
    sources.push_back({{"task", source.task},
                       {"documents", source.documents},
                       {"text_bytes", source.text_bytes},
                       {"repeated", source.repeated},
                       {"dropped_as_evaluation_text", source.evaluation}});
  }
  return {{"documents", documents},
          {"text_bytes", text_bytes},
          {"evaluation_documents", report.evaluation_documents},
          {"sources", std::move(sources)}};
}

}  // namespace olmo::data

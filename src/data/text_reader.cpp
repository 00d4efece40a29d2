#include "data/text_reader.h"

#include <algorithm>
#include <cstring>
#include <set>

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace olmo::data {
namespace {

constexpr std::size_t kBlock = 1 << 18;

/// Keeps the strings at the top level that DocumentText names and nothing else. The last one of a
/// name wins, as with every JSON reader of Python.
class TextHandler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return scalar(); }
  bool boolean(bool) override { return scalar(); }
  bool number_integer(number_integer_t) override { return scalar(); }
  bool number_unsigned(number_unsigned_t) override { return scalar(); }
  bool number_float(number_float_t, const string_t&) override { return scalar(); }
  bool binary(binary_t&) override { return scalar(); }
  bool string(string_t& value) override {
    if (wanted_ == nullptr) return scalar();
    if (wanted_ == &result.text) result.problem.clear();
    *wanted_ = std::move(value);
    wanted_ = nullptr;
    return true;
  }
  bool start_object(std::size_t) override { return open(true); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(false); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (depth_ == 1 && !keys_.insert(name).second) return fail("has the key `" + name + "` twice");
    wanted_ = depth_ != 1           ? nullptr
              : name == "text"      ? &result.text
              : name == "id"        ? &result.id
              : name == "source"    ? &result.source
              : name == "subdomain" ? &result.subdomain
                                    : nullptr;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // The library's sentence repeats the place and the text read so far; the last part says what is
    // wrong.
    const std::string_view whole = error.what();
    const auto reason = whole.rfind("syntax error");
    fail("is not valid JSON at byte " + std::to_string(position) +
         (reason == std::string_view::npos ? ""
                                           : " (" + std::string(whole.substr(reason, 120)) + ")"));
    return false;
  }

  DocumentText result{
      .text = {}, .problem = "has no field `text`", .id = {}, .source = {}, .subdomain = {}};

 private:
  bool open(bool object) {
    if (depth_ == 0 && !object) return fail("is not a JSON object");
    if (wanted_ != nullptr) scalar();
    ++depth_;
    return true;
  }
  bool close() {
    --depth_;
    return true;
  }
  bool scalar() {
    if (depth_ == 0) return fail("is not a JSON object");
    if (wanted_ == &result.text) fail("has a `text` that is not a string");
    if (wanted_ != nullptr) wanted_->reset();
    wanted_ = nullptr;
    return true;
  }
  bool fail(std::string problem) {
    result.text.reset();
    result.problem = std::move(problem);
    return false;
  }

  std::uint64_t depth_ = 0;
  std::set<std::string> keys_;                    ///< of the document
  std::optional<std::string>* wanted_ = nullptr;  ///< where the next value goes
};

bool is_text_file(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  constexpr std::string_view kEndings[] = {".jsonl", ".jsonl.gz", ".jsonl.zst", ".json.gz",
                                           ".json.zst"};
  return std::any_of(std::begin(kEndings), std::end(kEndings), [&](std::string_view ending) {
    return name.size() > ending.size() &&
           std::string_view(name).substr(name.size() - ending.size()) == ending;
  });
}

}  // namespace

LineReader::LineReader(const std::filesystem::path& path, std::size_t max_line)
    : source_(path), max_line_(max_line), block_(kBlock) {}

bool LineReader::refill() {
  begin_ = 0;
  end_ = source_.read(block_.data(), block_.size());
  return end_ > 0;
}

bool LineReader::next(Line& line) {
  line.bytes.clear();
  line.too_long = false;
  line.number = ++number_;
  bool any = false;
  while (begin_ < end_ || refill()) {
    any = true;
    const char* from = block_.data() + begin_;
    const void* newline = std::memchr(from, '\n', end_ - begin_);
    const std::size_t length =
        newline == nullptr ? end_ - begin_
                           : static_cast<std::size_t>(static_cast<const char*>(newline) - from);
    const std::size_t room = max_line_ - line.bytes.size();
    line.bytes.append(from, std::min(length, room));
    line.too_long = line.too_long || length > room;
    begin_ += length + (newline == nullptr ? 0 : 1);
    if (newline != nullptr) return true;
  }
  return any;
}

DocumentText parse_document(std::string_view line) {
  TextHandler handler;
  // The library takes a zero byte for the end of the text.
  if (const auto zero = line.find('\0'); zero != std::string_view::npos) {
    handler.result.problem =
        "is not valid JSON at byte " + std::to_string(zero + 1) + " (a zero byte)";
    return std::move(handler.result);
  }
  nlohmann::json::sax_parse(line.begin(), line.end(), &handler);
  return std::move(handler.result);
}

std::vector<std::filesystem::path> expand_inputs(const std::vector<std::filesystem::path>& inputs) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  for (const fs::path& given : inputs) {
    const fs::path input = given == "-" ? fs::path("/dev/stdin") : given;
    std::error_code error;
    const auto status = fs::status(input, error);
    if (!fs::exists(status))
      throw Error(ErrorKind::kInput, input.string() + ": does not exist or cannot be reached");
    if (!fs::is_directory(status)) {
      files.push_back(input);
      continue;
    }
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(
             input, fs::directory_options::follow_directory_symlink, error)) {
      if (entry.is_regular_file() && is_text_file(entry.path())) found.push_back(entry.path());
    }
    if (error)
      throw Error(ErrorKind::kInput, input.string() + ": cannot be listed: " + error.message());
    if (found.empty())
      throw Error(ErrorKind::kInput,
                  input.string() + ": holds no .jsonl, .jsonl.gz, .jsonl.zst or .json.gz file");
    std::sort(found.begin(), found.end());
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

}  // namespace olmo::data

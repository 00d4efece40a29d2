#include "cli/data_lines.h"

#include "core/text/safe_text.h"
#include "core/text/text.h"
#include "data/public/fetch.h"

namespace olmo::cli {

void add_on_bad_line(const Command& command, std::string& value) {
  command
      .option("--on-bad-line", value, "What to do with a line that gives no document: stop or skip")
      .one_of({"stop", "skip"});
}

data::BadLinePolicy bad_line_policy(const std::string& word) {
  return word == "skip" ? data::BadLinePolicy::kSkip : data::BadLinePolicy::kStop;
}

void add_data_folder(const Command& command, std::string& value) {
  command.option("--data DIR", value,
                 "Folder of `data fetch` (default: data/ in the cache folder)");
}

std::filesystem::path data_folder(const std::string& given) {
  return given.empty() ? data::default_data_folder() : std::filesystem::path(given);
}

void add_line_threads(const Command& command, int& value) {
  command.number("--threads", value, kThreads,
                 "Number of threads; 0: every core that the process may use. The result does not "
                 "depend on it");
}

std::string number_of(std::uint64_t count, std::string_view what) {
  return counted(static_cast<std::int64_t>(count), what);
}

NextStep after_documents(const std::string& path) {
  return {{"data", "tokenize", path, "--tokenizer", "dolma-v1_5", "--output", "NAME.npy"}, ""};
}

std::string bad_lines_text(const data::BadLines& lines) {
  if (lines.count() == 0) return "";
  const data::BadLine& first = lines.first().front();
  return number_of(lines.count(), "bad line") +
         (lines.count() == 1 ? " was skipped: " : " were skipped; the first: ") +
         safe_line(first.file) + ":" + std::to_string(first.line) + ": " +
         safe_line(first.problem) + "\n";
}

}  // namespace olmo::cli

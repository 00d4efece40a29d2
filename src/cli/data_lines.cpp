#include "cli/data_lines.h"

#include "core/text/safe_text.h"
#include "core/text/text.h"

namespace olmo::cli {

void add_on_bad_line(const Command& command, std::string& value) {
  command
      .option("--on-bad-line", value, "What to do with a line that gives no document: stop or skip")
      .one_of({"stop", "skip"});
}

data::BadLinePolicy bad_line_policy(const std::string& word) {
  return word == "skip" ? data::BadLinePolicy::kSkip : data::BadLinePolicy::kStop;
}

std::string bad_lines_text(const data::BadLines& lines) {
  if (lines.count() == 0) return "";
  const data::BadLine& first = lines.first().front();
  return counted(static_cast<std::int64_t>(lines.count()), "bad line") +
         (lines.count() == 1 ? " was skipped: " : " were skipped; the first: ") +
         safe_line(first.file) + ":" + std::to_string(first.line) + ": " +
         safe_line(first.problem) + "\n";
}

}  // namespace olmo::cli

#include "cli/data_lines.h"

#include "support/catch.h"

using olmo::cli::bad_line_policy;
using olmo::cli::bad_lines_text;
using olmo::data::BadLinePolicy;
using olmo::data::BadLines;

TEST_CASE("bad lines are told by their number and the first of them", "[cli]") {
  BadLines lines(BadLinePolicy::kSkip);
  CHECK(bad_lines_text(lines).empty());
  lines.add({"a.jsonl", 7, "is not valid JSON"});
  CHECK(bad_lines_text(lines) == "1 bad line was skipped: a.jsonl:7: is not valid JSON\n");
  lines.add({"b\x1b.jsonl", 9, "has no field `text`"});
  CHECK(bad_lines_text(lines) ==
        "2 bad lines were skipped; the first: a.jsonl:7: is not valid JSON\n");
}

TEST_CASE("bad lines stop unless they are to be skipped", "[cli]") {
  CHECK(bad_line_policy("stop") == BadLinePolicy::kStop);
  CHECK(bad_line_policy("skip") == BadLinePolicy::kSkip);
}

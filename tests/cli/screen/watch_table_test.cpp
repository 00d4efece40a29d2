#include "cli/screen/watch_table.h"

#include <algorithm>

#include "cli/followed_runs.h"
#include "support/catch.h"

using namespace olmo;

namespace {

std::vector<const monitor::FollowedRun*> pointers(const std::vector<monitor::FollowedRun>& runs) {
  std::vector<const monitor::FollowedRun*> list;
  for (const auto& run : runs) list.push_back(&run);
  return list;
}

}  // namespace

TEST_CASE("two runs beside each other have their difference", "[cli]") {
  test::RecordedCurve a, b;
  a.steps(1, 50);
  b.steps(1, 40, 12);
  const auto runs = test::followed({&a, &b});
  std::string text;
  for (const auto& line : cli::comparison_of(pointers(runs), 120).numbers) text += line + "\n";
  INFO(text);
  CHECK(text.find("second minus first") != std::string::npos);
  CHECK(text.find("+0.05 at step 40") != std::string::npos);
}

TEST_CASE("a run with a mark on its record has it before its state, which is cut", "[cli]") {
  test::RecordedCurve a;
  auto runs = test::followed({&a});
  CHECK(cli::state_of(runs[0]).find(',') == std::string::npos);
  runs[0].set_mark("damaged");
  CHECK(cli::state_of(runs[0]).starts_with("damaged, "));
}

TEST_CASE("in a narrow terminal the evaluations of two runs are lines with both numbers", "[cli]") {
  test::RecordedCurve a, b;
  for (auto* run : {&a, &b}) {
    run->steps(1, 50);
    test::evaluate(*run, 3);
  }
  const auto runs = test::followed({&a, &b});
  const auto wide = cli::comparison_of(pointers(runs), 100);
  REQUIRE(wide.evaluations.size() == 3);
  CHECK(wide.evaluations[0].find("task_10 acc") == 0);
  const auto narrow = cli::comparison_of(pointers(runs), 40);
  CHECK(narrow.evaluations == std::vector<std::string>{"0.5, 0.5 (0) task_10 acc",
                                                       "0.5, 0.5 (0) task_11 acc",
                                                       "0.5, 0.5 (0) task_12 acc"});
  const auto says = [&](const std::string& part) {
    return std::ranges::any_of(narrow.numbers, [&](const std::string& line) {
      return line.find(part) != std::string::npos;
    });
  };
  CHECK(says("second minu"));
  CHECK_FALSE(says("task_10"));
}

TEST_CASE("more than two runs are a table of a line each", "[cli]") {
  test::RecordedCurve a, b, c;
  a.steps(1, 50);
  b.steps(1, 7);
  const auto runs = test::followed({&a, &b, &c});
  const auto lines = cli::table_of(pointers(runs), 120);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0].find("grad norm") != std::string::npos);
  CHECK(lines[1].find("50") != std::string::npos);
  CHECK(lines[2].find('7') != std::string::npos);
}

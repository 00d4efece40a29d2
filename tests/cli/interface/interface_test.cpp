#include "cli/interface/interface.h"

#include "cli/interface/command.h"
#include "support/catch.h"

namespace olmo::cli {

TEST_CASE("the word for a value says what can stand there", "[cli]") {
  CHECK(value_named("FILE").kind == Takes::kFile);
  CHECK(value_named("FILE.html").kind == Takes::kFile);
  CHECK(value_named("DIR").kind == Takes::kFolder);
  CHECK(value_named("DB").kind == Takes::kRun);
  CHECK(value_named("N").kind == Takes::kText);
  CHECK(value_named("NAME=PATH").kind == Takes::kText);
  const auto either = value_named("latest|DIR");
  CHECK(either.kind == Takes::kFolder);
  CHECK(either.words == std::vector<std::string>{"latest"});
}

TEST_CASE("what commands declare can be read as data", "[cli]") {
  const Program program("tool", "A tool", "tool 1");
  const Command runs = program.command().add("runs", "Runs");
  const Command show = runs.add("show", "Show a run");
  std::string run, format;
  bool json = false;
  show.run(run);
  show.option("--format", format, "How").one_of({"csv", "md"});
  show.json(json);
  show.action([] {});
  const CommandFacts facts = program.facts();
  const auto all = all_commands(facts);
  REQUIRE(all.size() == 3);
  CHECK(all[2]->path == "runs show");
  CHECK(all[2]->usage == "tool runs show RUN [OPTIONS]");
  REQUIRE(all[2]->arguments.size() == 1);
  CHECK(all[2]->arguments[0].value.kind == Takes::kRun);
  REQUIRE(all[2]->options.size() == 3);
  CHECK(all[2]->options[0].names == std::vector<std::string>{"--help", "-h"});
  CHECK(all[2]->options[1].value.words == std::vector<std::string>{"csv", "md"});
  CHECK(all[2]->options[2].value.kind == Takes::kNothing);
}

}  // namespace olmo::cli

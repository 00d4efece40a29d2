#include "cli/interface/completion_scene.h"

namespace olmo::test {

TEST_CASE("fish completes commands, values, files and keys", "[cli]") {
  if (!shell_is_installed("fish")) return;
  CompletionScene scene("fish");
  const Words lines = {"olmo-harness tr",
                       "olmo-harness runs ",
                       "olmo-harness runs export run.db --fo",
                       "olmo-harness runs export run.db --format c",
                       "olmo-harness train mi",
                       "olmo-harness train mine.json data.pa",
                       "olmo-harness train mine.json model.init_fn=mi",
                       "olmo-harness train mine.json data.paths=[corpus.npy,co",
                       "olmo-harness eval x --suite paloma-",
                       "olmo-harness eval x --tasks boolq,sciq"};
  std::string program = "source $argv[1]\n";
  for (const auto& line : lines)
    program += "for each in (complete -C '" + line + "' | string replace -r '\\t.*' '')\n  echo '" +
               line + ">'$each\nend\n";
  const auto found = candidates_in(scene.print(program, "--no-config"));
  CHECK(found.at("olmo-harness tr") == Words{"train"});
  CHECK(offers(found, "olmo-harness runs ", "export"));
  CHECK_FALSE(offers(found, "olmo-harness runs ", "corpus.npy"));
  CHECK(found.at("olmo-harness runs export run.db --fo") == Words{"--format"});
  CHECK(found.at("olmo-harness runs export run.db --format c") == Words{"csv"});
  CHECK(found.at("olmo-harness train mi") == Words{"mine.json"});
  CHECK(found.at("olmo-harness train mine.json data.pa") == Words{"data.paths="});
  CHECK(found.at("olmo-harness train mine.json model.init_fn=mi") ==
        Words{"model.init_fn=mitchell"});
  CHECK(found.at("olmo-harness train mine.json data.paths=[corpus.npy,co") ==
        Words{"data.paths=[corpus.npy,corpus.npy"});
  CHECK(found.at("olmo-harness eval x --suite paloma-") == Words{"paloma-olmo-paper"});
  CHECK(offers(found, "olmo-harness eval x --tasks boolq,sciq", "boolq,sciq"));
}

}  // namespace olmo::test

#include "cli/interface/completion_scene.h"

namespace olmo::test {

TEST_CASE("zsh completes commands, values, files and keys", "[cli]") {
  if (!shell_is_installed("zsh")) return;
  CompletionScene scene("zsh");
  // A real zsh on a terminal of its own: what is typed ends in a tab, what it makes of it is read.
  const auto shown = scene.print(R"zsh(
zmodload zsh/zpty
zpty shell "TERM=dumb zsh -f -i"
zpty -w shell "PS1='> '; autoload -Uz compinit; compinit -u -D; source $1; print REA''DY"
zpty -r shell shown '*READY*> '
try() {
  zpty -w -n shell $1$'\t'
  zpty -r shell shown "*$2*" && print "$1>$2"
  zpty -w -n shell $'\C-u'
}
try 'olmo-harness tr' 'train '
try 'olmo-harness runs ex' 'export '
try 'olmo-harness runs export run.db --form' '--format='
try 'olmo-harness runs export run.db --format c' 'csv '
try 'olmo-harness train mi' 'mine.json '
try 'olmo-harness train mine.json data.pa' 'data.paths='
try 'olmo-harness train mine.json model.init_fn=mi' 'mitchell '
try 'olmo-harness train mine.json data.paths=corp' 'corpus.npy '
try 'olmo-harness eval x --suite paloma-' 'paloma-olmo-paper'
try 'olmo-harness eval x --tasks boolq,sciq_r' 'sciq_rc_5shot'
zpty -d shell
)zsh",
                                 "-f");
  CHECK(std::ranges::count(shown, '>') == 10);
}

}  // namespace olmo::test

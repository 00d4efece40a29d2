#include "cli/training.h"
#include "serve/client.h"
#include "store/run_fixture.h"
#include "support/catch.h"
#include "support/happens.h"

namespace olmo::test {
namespace {

/// The port of the address that the program printed; 0: none yet.
int port_in(const fs::path& output) {
  const auto text = read_file(output);
  const std::string begin = "http://127.0.0.1:";
  if (!text.starts_with(begin) || !text.ends_with("\n")) return 0;
  return std::atoi(text.c_str() + begin.size());
}

}  // namespace

TEST_CASE("serve prints its address, shows runs, and ends with 0 when it is told to", "[cli]") {
  const TemporaryDirectory folder;
  RecordedCurve run;
  run.steps(1, 3);
  Child child({OLMO_BINARY, "serve", run.path().parent_path().string(), "--port", "0"},
              folder / "serve");
  REQUIRE(happens([&] { return port_in(folder / "serve.out") != 0 || !child.running(); }));
  const int port = port_in(folder / "serve.out");
  CHECK(ask(port, "/").status == 200);
  // The first pages may come before the runs were looked through.
  CHECK(happens([&] { return ask(port, "/").body.find(">curve</a>") != std::string::npos; }));
  child.signal(SIGTERM);
  const auto ended = child.wait();
  CHECK(ended.code == 0);
  CHECK(ended.says("stopped by SIGTERM"));
}

TEST_CASE("serve refuses a folder that is not there in one sentence", "[cli]") {
  const TemporaryDirectory folder;
  const auto ended = harness(folder / "serve", {"serve", "/no/such/folder"});
  CHECK(ended.code == 2);
  CHECK(ended.says("serve: /no/such/folder is not there: expected a folder of runs, or a FILE.db"));
}

}  // namespace olmo::test

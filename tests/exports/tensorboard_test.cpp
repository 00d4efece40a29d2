#include "core/files/input_file.h"
#include "exports/export_fixture.h"
#include "exports/tools.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::exports;
using namespace olmo::test;
namespace fs = std::filesystem;

TEST_CASE("an event file begins with the record that TensorFlow writes for its version",
          "[exports]") {
  const TemporaryDirectory folder;
  const auto written = write_tensorboard(a_source(), folder.path());
  CHECK(written.steps == 2);
  CHECK(written.numbers == 3);
  const auto files = files_of(folder.path());
  CHECK(files == std::vector<std::string>{"tiny-20260102T030405-0badcafe/"
                                          "events.out.tfevents.1767323045.olmo-harness"});
  const std::string bytes = read_file(folder.path() / files.at(0));
  CHECK(little_endian(bytes, 0, 8) == 24);
  CHECK(bytes.substr(12, 24) ==
        std::string("\x09\0\0\x40\x69\xcd\x55\xda\x41\x1a\x0d", 11) + "brain.Event:2");
}

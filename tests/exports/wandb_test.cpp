#include "core/crc32.h"
#include "core/files/input_file.h"
#include "exports/export_fixture.h"
#include "exports/tools.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::exports;
using namespace olmo::test;
namespace fs = std::filesystem;

TEST_CASE("W&B's record has its header, and each block begins with a sound piece", "[exports]") {
  const TemporaryDirectory folder;
  Source source = a_source();
  source.facts.config = R"({"long":")" + std::string(70'000, 'x') + R"("})";
  const auto written = write_wandb(source, folder.path(), "project");
  CHECK(written.path.filename() == "offline-run-20260102_030405-20260102T030405-0badcafe");
  const std::string bytes = read_file(written.path / "run-20260102T030405-0badcafe.wandb");
  REQUIRE(bytes.size() > 65'543);
  CHECK(bytes.substr(0, 7) == std::string(":W&B\xE1\xBE\0", 7));
  for (std::size_t at = 32768; at + 7 < bytes.size(); at += 32768) {
    const auto length = little_endian(bytes, at + 4, 2);
    const auto piece = std::string_view(bytes).substr(at + 6, 1 + length);
    CHECK(crc32_after(0, std::as_bytes(std::span(piece))) == little_endian(bytes, at, 4));
  }
}

#include "data/zip_file.h"

#include "core/files/input_file.h"
#include "data/scratch.h"
#include "support/catch.h"
#include "support/happens.h"
#include "support/zip.h"

using namespace olmo::data;
using olmo::ErrorKind;
using olmo::test::ScratchFolder;
using olmo::test::thrown_by;

namespace {

std::filesystem::path write_zip(const ScratchFolder& folder,
                                const std::vector<std::pair<std::string, std::string>>& entries) {
  auto path = folder / "some.zip";
  olmo::test::write_zip(path, entries);
  return path;
}

std::string keep_all(std::string_view entry) { return std::string(entry); }

}  // namespace

TEST_CASE("a zip file is unpacked under new names, and only what is wanted", "[data]") {
  const ScratchFolder folder;
  const std::string text(300000, 'x');
  const auto file =
      write_zip(folder, {{"pkg/a.txt", text}, {"pkg/b.txt", "b"}, {"other/c.txt", "c"}});
  const auto count = unpack_zip(file, folder / "out", [](std::string_view entry) {
    return entry.substr(0, 4) == "pkg/" ? "data/" + std::string(entry.substr(4)) : std::string();
  });
  CHECK(count == 2);
  CHECK(olmo::read_file(folder / "out/data/a.txt") == text);
  CHECK_FALSE(std::filesystem::exists(folder / "out/other"));
}

TEST_CASE("an entry that leads out of the folder is refused", "[data]") {
  const ScratchFolder folder;
  for (const char* name : {"../evil.txt", "/tmp/evil.txt", "a/../../evil.txt"}) {
    const auto file = write_zip(folder, {{name, "x"}});
    const auto error = thrown_by([&] { unpack_zip(file, folder / "out", keep_all); });
    REQUIRE(error);
    CHECK((error->kind == ErrorKind::kInput && error->says("outside of its folder")));
  }
}

TEST_CASE("a damaged zip file is refused by name", "[data]") {
  const ScratchFolder folder;
  std::string text;
  for (std::uint64_t i = 0; i < 10000; ++i) text += std::to_string(i * 2654435761U);
  std::string bytes = olmo::read_file(write_zip(folder, {{"a.txt", text}}));
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x55);
  const auto damaged = folder.write("damaged.zip", bytes);
  const auto error = thrown_by([&] { unpack_zip(damaged, folder / "out", keep_all); });
  REQUIRE(error);
  CHECK((error->kind == ErrorKind::kInput && error->says("damaged.zip")));
  const auto cut = folder.write("cut.zip", bytes.substr(0, 100));
  CHECK(thrown_by([&] {
          unpack_zip(cut, folder / "out", keep_all);
        })->says("is not a readable zip file"));
}

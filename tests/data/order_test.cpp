#include "data/order.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "core/hash.h"
#include "data/scratch.h"
#include "support/catch.h"

using namespace olmo::data;
using olmo::ErrorKind;
using olmo::Json;
using olmo::test::ScratchFolder;
using olmo::test::thrown_by;

namespace fs = std::filesystem;

namespace {

std::string digest_of(const std::vector<std::uint32_t>& order) {
  return olmo::sha256(std::as_bytes(std::span(order))).hex();
}

constexpr OrderConfig kConfig{.instances = 1000, .seed = 6198, .shuffle = true};

std::vector<std::uint32_t> content_of(const ScratchFolder& folder, const OrderConfig& config,
                                      std::uint64_t epoch) {
  const auto file = open_order_file(folder.path(), config, epoch);
  if (!file) return {};
  std::vector<std::uint32_t> numbers(file->size());
  file->read(0, numbers);
  return numbers;
}

std::string read(const fs::path& path) { return olmo::read_file(path); }

/// What lies there is not trusted: the file is made again, and is then as it should be.
void check_made_again(const ScratchFolder& folder) {
  CHECK(make_order_file(folder.path(), kConfig, 0));
  CHECK(content_of(folder, kConfig, 0) == build_order(kConfig, 0));
  CHECK_FALSE(make_order_file(folder.path(), kConfig, 0));
}

}  // namespace

TEST_CASE("the order of an epoch equals OLMo's IterableDataset", "[data]") {
  const Json golden =
      olmo::read_json_file(std::string(OLMO_TEST_DATA) + "/data/data_order.json").at("orders");
  for (const Json& row : golden) {
    INFO(row.dump());
    const auto order = build_order(
        {.instances = row.at("n"), .seed = row.at("seed"), .shuffle = row.at("shuffle")},
        row.at("epoch"));
    CHECK(digest_of(order) == row.at("order").at("sha256").get<std::string>());
  }
}

TEST_CASE("more instances than 32-bit numbers are refused before they are allocated", "[data]") {
  const auto error = thrown_by([] { build_order({.instances = 0xFFFFFFFFULL}, 0); });
  REQUIRE(error);
  CHECK((error->kind == olmo::ErrorKind::kInput && error->says("2^32 - 1")));
}

TEST_CASE("an order file holds the order as OLMo writes it: numbers of 32 bits and no header",
          "[data]") {
  const ScratchFolder folder;
  const auto why = make_order_file(folder.path(), kConfig, 2);
  REQUIRE(why);
  CHECK(why->ends_with("global_indices.epoch2.npy was not there"));
  const auto order = build_order(kConfig, 2);
  CHECK(read(order_path(folder.path(), 2)) ==
        std::string(reinterpret_cast<const char*>(order.data()), 4 * order.size()));
  CHECK(content_of(folder, kConfig, 2) == order);
  std::vector<std::uint32_t> part(10);
  open_order_file(folder.path(), kConfig, 2)->read(990, part);
  CHECK(std::equal(part.begin(), part.end(), order.end() - 10));
}

TEST_CASE("a sound order file is taken as it is, and none of another order is", "[data]") {
  const ScratchFolder folder;
  CHECK_FALSE(open_order_file(folder.path(), kConfig, 0));
  make_order_file(folder.path(), kConfig, 0);
  CHECK_FALSE(make_order_file(folder.path(), kConfig, 0));
  CHECK_FALSE(open_order_file(folder.path(), kConfig, 1));
  CHECK_FALSE(open_order_file(folder.path(), {.instances = 1000, .seed = 6199}, 0));
  CHECK_FALSE(open_order_file(folder.path(), {.instances = 999, .seed = 6198}, 0));
  CHECK_FALSE(
      open_order_file(folder.path(), {.instances = 1000, .seed = 6198, .shuffle = false}, 0));
  fs::rename(order_path(folder.path(), 0), order_path(folder.path(), 1));
  fs::rename(order_path(folder.path(), 0) += ".json", order_path(folder.path(), 1) += ".json");
  CHECK_FALSE(open_order_file(folder.path(), kConfig, 1));
  CHECK(make_order_file(folder.path(), kConfig, 1));
  CHECK(content_of(folder, kConfig, 1) == build_order(kConfig, 1));
}

TEST_CASE("an order file that is cut, altered, a link, or anybody's to write is made again",
          "[data]") {
  const ScratchFolder folder;
  make_order_file(folder.path(), kConfig, 0);
  const fs::path path = order_path(folder.path(), 0), sidecar = fs::path(path) += ".json";
  const std::string sound = read(path);
  SECTION("cut") { fs::resize_file(path, 3996); }
  SECTION("longer") { fs::resize_file(path, 4004); }
  SECTION("two numbers swapped") {
    std::string altered = sound;
    std::swap_ranges(altered.begin(), altered.begin() + 4, altered.begin() + 400);
    folder.write(path.filename().string(), altered);
  }
  SECTION("no sidecar") { fs::remove(sidecar); }
  SECTION("a sidecar that is no JSON") { folder.write(sidecar.filename().string(), "{"); }
  SECTION("a sidecar that is a list") { folder.write(sidecar.filename().string(), "[]"); }
  SECTION("a sidecar that never ends") {
    folder.write(sidecar.filename().string(), std::string(5000, ' '));
  }
  SECTION("anybody may write to it") {
    fs::permissions(path, fs::perms::others_write, fs::perm_options::add);
  }
  SECTION("a link") {
    const fs::path other = folder.write("other", sound);
    fs::remove(path);
    fs::create_symlink(other, path);
  }
  check_made_again(folder);
  CHECK_FALSE(fs::is_symlink(path));
  if (fs::exists(folder / "other")) CHECK(read(folder / "other") == sound);  // left alone
}

TEST_CASE("a number that no instance has is refused when it is read", "[data]") {
  const ScratchFolder folder;
  make_order_file(folder.path(), kConfig, 0);
  std::string altered = read(order_path(folder.path(), 0));
  altered[3] = '\x7f';
  folder.write(order_path(folder.path(), 0).filename().string(), altered);
  const auto file = open_order_file(folder.path(), kConfig, 0);  // looks at no content
  REQUIRE(file);
  std::vector<std::uint32_t> numbers(4);
  CHECK_NOTHROW(file->read(1, numbers));
  const auto error = thrown_by([&] { file->read(0, numbers); });
  REQUIRE(error);
  CHECK((error->kind == ErrorKind::kInput && error->says("number 0 is") &&
         error->says("the file was altered")));
}

TEST_CASE("numbers that were cut off within a page while the order was in use are not read as 0",
          "[data]") {
  const ScratchFolder folder;
  make_order_file(folder.path(), kConfig, 0);
  const fs::path path = order_path(folder.path(), 0);
  const auto file = open_order_file(folder.path(), kConfig, 0);
  REQUIRE(file);
  fs::resize_file(path, fs::file_size(path) - 4);
  std::vector<std::uint32_t> numbers(4);
  const auto error = thrown_by([&] { file->read(0, numbers); });
  REQUIRE(error);
  CHECK((error->kind == ErrorKind::kInput && error->says("was cut while it was in use")));
}

TEST_CASE("making an order file ends when it is no longer wanted, and leaves nothing", "[data]") {
  const ScratchFolder folder;
  std::stop_source stop;
  stop.request_stop();
  CHECK(thrown_by([&] { make_order_file(folder.path(), kConfig, 0, stop.get_token()); }));
  CHECK(fs::is_empty(folder.path()));
}

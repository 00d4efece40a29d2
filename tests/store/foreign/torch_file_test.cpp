#include "store/foreign/torch_file.h"

#include <algorithm>
#include <fstream>

#include <ATen/ATen.h>

#include "core/error.h"
#include "store/foreign/safetensors.h"
#include "support/catch.h"
#include "support/flips.h"
#include "support/temporary_directory.h"
#include "support/zip.h"

namespace olmo::store {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using namespace std::string_literals;

const fs::path kFolder = OLMO_TEST_DATA "/store/torch";

std::vector<std::string> names_of(const TorchFile& file) {
  std::vector<std::string> names;
  for (const auto& entry : file.entries()) names.push_back(entry.name);
  std::ranges::sort(names);
  return names;
}

void write_file(const fs::path& path,
                const std::vector<std::pair<std::string, std::string>>& records) {
  test::write_zip(path, records, ZIP_CM_STORE);
}

}  // namespace

TEST_CASE("a state_dict that torch saved is read in every dtype", "[store]") {
  const TorchFile file(kFolder / "reference.pt");
  const SafetensorsFile reference(OLMO_TEST_DATA "/store/reference.safetensors");
  REQUIRE(file.entries().size() == reference.entries().size());
  for (const auto& entry : reference.entries()) {
    INFO(entry.name);
    const at::Tensor tensor = file.tensor(entry.name);
    CHECK(tensor.scalar_type() == reference.tensor(entry.name).scalar_type());
    CHECK(at::equal(tensor, reference.tensor(entry.name)));
  }
  CHECK(std::ranges::all_of(file.entries(),
                            [](const auto& entry) { return entry.bytes == 0 || entry.crc32; }));
}

TEST_CASE("tensors in dicts and lists are named by the way to them", "[store]") {
  const TorchFile file(kFolder / "views.pt");
  CHECK(names_of(file) == std::vector<std::string>{"groups/1", "state/0/first", "state/0/last",
                                                   "state/a.weight/parameter"});
  const at::Tensor whole = at::arange(12, at::kFloat);
  CHECK(at::equal(file.tensor("groups/1"), whole));
  CHECK(at::equal(file.tensor("state/0/first"), whole.narrow(0, 0, 4)));
  CHECK(at::equal(file.tensor("state/0/last"), whole.narrow(0, 4, 8).reshape({2, 4})));
  CHECK(at::equal(file.tensor("state/a.weight/parameter"), at::ones({2})));
  CHECK(file.root().integers() == std::map<std::string, std::int64_t>{{"step", 7}});
}

TEST_CASE("what is no plain tensor, or not of torch's zip format, is refused by name", "[store]") {
  const auto refused = [](const char* name, const char* says) {
    INFO(name);
    CHECK_THROWS_WITH(TorchFile(kFolder / name), Contains(name) && Contains(says));
  };
  refused("transposed.pt", "tensor x: its values do not lie one after the other");
  refused("sparse.pt", "tensor x: is made by _rebuild_sparse_tensor, expected a plain tensor");
  refused("complex.pt", "tensor x: has a dtype that is not known");
  refused("list.pt", "the pickle holds no dict");
  refused("before_1_6.pt", "is no zip file, as torch.save writes it from version 1.6 on");
  CHECK_THROWS_WITH(TorchFile("/no/such/file.pt"), Contains("/no/such/file.pt"));
}

TEST_CASE("a tensor outside of its storage, or without one, is refused by name", "[store]") {
  const test::TemporaryDirectory folder;
  // {"x": _rebuild_tensor_v2(("storage", FloatStorage, "0", "cpu", 2), OFFSET, (SIZE,), (1,), …)}
  const auto pickle = [](char offset, char size) {
    return "\x80\x02}X\x01\0\0\0xctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storage"
           "ctorch\nFloatStorage\nX\x01\0\0\0"
           "0X\x03\0\0\0cpuK\x02tQK"s +
           offset + "K" + size + "\x85K\x01\x85tRs.";
  };
  const auto open = [&](const std::string& text, const std::string& storage) {
    write_file(folder / "x.pt", {{"a/data.pkl", text}, {"a/data/" + storage, "12345678"}});
    return TorchFile(folder / "x.pt");
  };
  CHECK(open(pickle(0, 2), "0").tensor("x").numel() == 2);
  CHECK(open(pickle(1, 1), "0").tensor("x").numel() == 1);
  CHECK_THROWS_WITH(open(pickle(1, 2), "0"), Contains("tensor x: lies outside of its storage"));
  CHECK_THROWS_WITH(open(pickle(3, 0), "0"), Contains("tensor x: lies outside of its storage"));
  CHECK_THROWS_WITH(open(pickle(0, 2), "1"), Contains("tensor x: its storage is missing"));
  write_file(folder / "x.pt", {{"a/data/0", "1"}});
  CHECK_THROWS_WITH(TorchFile(folder / "x.pt"), Contains("holds no data.pkl"));
}

TEST_CASE("a small pickle that would become very much is refused", "[store]") {
  const test::TemporaryDirectory folder;
  // Lists of lists, each twice the one before.
  std::string pickle = "\x80\x02}X\x01\0\0\0x(]q\0"s;
  for (char i = 1; i < 40; ++i) pickle += "]q"s + i + "(h" + char(i - 1) + "h" + char(i - 1) + "e";
  write_file(folder / "x.pt", {{"a/data.pkl", pickle + "ts."}});
  CHECK_THROWS_WITH(TorchFile(folder / "x.pt"), Contains("holds more than any checkpoint"));
  // A list that holds itself.
  write_file(folder / "x.pt", {{"a/data.pkl", "\x80\x02}X\x01\0\0\0x]q\0h\0as."s}});
  CHECK_THROWS_WITH(TorchFile(folder / "x.pt"), Contains("holds more than any checkpoint"));
}

TEST_CASE("what is written is read again, and is a function of the tensors", "[store]") {
  const test::TemporaryDirectory folder;
  const NamedTensors tensors = {{"b.weight", at::arange(12, at::kFloat).reshape({3, 4})},
                                {"a", at::full({2}, 0.5, at::kBFloat16)},
                                {"none", at::zeros({0, 3})}};
  write_torch_file(folder / "x.pt", tensors);
  const TorchFile file(folder / "x.pt");
  REQUIRE(file.entries().size() == tensors.size());
  for (const auto& [name, tensor] : tensors) {
    CHECK(file.tensor(name).scalar_type() == tensor.scalar_type());
    CHECK(at::equal(file.tensor(name), tensor));
  }
  write_torch_file(folder / "y.pt", tensors);
  CHECK(read_file(folder / "x.pt") == read_file(folder / "y.pt"));
  CHECK_THROWS_AS(write_torch_file(folder / "absent/x.pt", tensors), Error);
}

TEST_CASE("random flips in a torch file give its tensors or an error, never a crash", "[store]") {
  const test::TemporaryDirectory folder;
  test::Flips flips(read_file(kFolder / "views.pt"));
  int refused = 0;
  constexpr int kRounds = 1000;
  for (int round = 0; round < kRounds; ++round) {
    std::ofstream(folder / "x.pt", std::ios::binary) << flips.next();
    try {
      const TorchFile file(folder / "x.pt");
      for (const auto& entry : file.entries()) static_cast<void>(file.tensor(entry.name));
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > kRounds / 3);
}

}  // namespace olmo::store

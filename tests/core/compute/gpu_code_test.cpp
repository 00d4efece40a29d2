#include "core/compute/gpu_code.h"

#include <algorithm>
#include <fstream>

#include "core/error.h"
#include "core/files/input_file.h"
#include "core/hash.h"
#include "support/catch.h"
#include "support/environment.h"
#include "support/faults.h"
#include "support/processes.h"
#include "support/temporary_directory.h"

namespace olmo {
namespace {

namespace fs = std::filesystem;

std::string key_of(int number) { return sha256(std::to_string(number)).hex(); }
std::string code_of(int number) { return "code of " + std::to_string(number) + std::string(5, 0); }

void write(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

std::ptrdiff_t files_in(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

void make_older(const fs::path& file, std::chrono::minutes by) {
  fs::last_write_time(file, fs::file_time_type::clock::now() - by);
}

TEST_CASE("code of a GPU that was kept is found by its key, and by no other", "[core]") {
  const test::TemporaryDirectory folder;
  const KeptGpuCode kept(folder / "new/kernels");
  CHECK_FALSE(kept.find(key_of(1)));
  kept.keep(key_of(1), code_of(1));
  kept.keep(key_of(2), code_of(2));
  CHECK(kept.find(key_of(1)) == code_of(1));
  CHECK(kept.find(key_of(2)) == code_of(2));
  CHECK_FALSE(kept.find(key_of(3)));
}

TEST_CASE("kept code that was cut short, altered or renamed is not found", "[core]") {
  const test::TemporaryDirectory folder;
  const KeptGpuCode kept(folder.path());
  kept.keep(key_of(1), code_of(1));
  const fs::path file = folder / key_of(1);
  const std::string whole = read_file(file);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO(size);
    write(file, whole.substr(0, size));
    CHECK_FALSE(kept.find(key_of(1)));
    std::string altered = whole;
    altered[size] = static_cast<char>(altered[size] ^ 1);
    write(file, altered);
    CHECK_FALSE(kept.find(key_of(1)));
  }
  write(folder / key_of(2), whole);
  CHECK_FALSE(kept.find(key_of(2)));
  kept.keep(key_of(1), code_of(1));
  CHECK(kept.find(key_of(1)) == code_of(1));
}

TEST_CASE("of kept code the sixteen that were used last stay", "[core]") {
  const test::TemporaryDirectory folder;
  const KeptGpuCode kept(folder.path());
  for (int i = 0; i < 16; ++i) {
    kept.keep(key_of(i), code_of(i));
    make_older(folder / key_of(i), std::chrono::minutes(100 - i));
  }
  CHECK(kept.find(key_of(0)));  // which is used now
  kept.keep(key_of(16), code_of(16));
  CHECK(files_in(folder.path()) == 16);
  CHECK(kept.find(key_of(0)));
  CHECK_FALSE(kept.find(key_of(1)));
  CHECK(kept.find(key_of(2)));
  CHECK(kept.find(key_of(16)));
}

TEST_CASE("what a killed process has left among kept code is removed after an hour", "[core]") {
  const test::TemporaryDirectory folder;
  const fs::path old = folder / (key_of(1) + ".tmp-old"), fresh = folder / (key_of(1) + ".tmp-new");
  write(old, "half");
  write(fresh, "half");
  make_older(old, std::chrono::minutes(61));
  KeptGpuCode(folder.path()).keep(key_of(2), code_of(2));
  CHECK_FALSE(fs::exists(old));
  CHECK(fs::exists(fresh));  // another process may still write it
}

TEST_CASE("where no folder can be made, and for a user who has none, no code is kept", "[core]") {
  const test::TemporaryDirectory folder;
  write(folder / "file", "");
  for (const fs::path& place : {fs::path(), folder / "file", folder / "file/kernels"}) {
    const KeptGpuCode kept(place);
    kept.keep(key_of(1), code_of(1));
    CHECK_FALSE(kept.find(key_of(1)));
  }
}

TEST_CASE("whatever call fails while code is kept, it is whole or not there", "[core]") {
  if (!test::FaultShim().loaded()) return test::repeat_with_fault_shim();
  const test::FaultShim shim;
  int kept_in_spite = 0, lost = 0;
  for (const int fault : {EIO, ENOSPC, test::kFaultShort}) {
    for (long n = 1;; ++n) {
      const test::TemporaryDirectory folder;
      const KeptGpuCode kept(folder / "kernels");
      shim.arm(folder.path().c_str(), "", n, fault, 0);
      kept.keep(key_of(1), code_of(1));
      const bool past_the_end = shim.disarm() < n;
      const auto found = kept.find(key_of(1));
      INFO("call " << n << ", fault " << fault);
      CHECK((!found || found == code_of(1)));
      ++(found ? kept_in_spite : lost);
      if (past_the_end) {
        CHECK(found);
        break;
      }
    }
  }
  CHECK(lost > 5);
  CHECK(kept_in_spite >= 3);
}

TEST_CASE("processes that keep and find code at the same time do not fail each other", "[core]") {
  const test::TemporaryDirectory folder;
  constexpr int kProcesses = 4, kTurns = 40;
  test::Processes processes(kProcesses, [&](int process) {
    const KeptGpuCode kept(folder / "kernels");
    for (int turn = 0; turn < kTurns; ++turn) {
      const int number = (turn + process) % 20;  // more than are kept
      const auto found = kept.find(key_of(number));
      if (found && *found != code_of(number)) return 1;
      kept.keep(key_of(number), code_of(number));
    }
    return 0;
  });
  for (int process = 0; process < kProcesses; ++process) {
    const auto ended = processes.wait(process);
    INFO(ended.err);
    CHECK(ended.code == 0);
  }
  // Two that clean up at once may each remove a file that the other keeps; one alone leaves the
  // most.
  const KeptGpuCode kept(folder / "kernels");
  for (int number = 19; number >= 0; --number) kept.keep(key_of(number), code_of(number));
  CHECK(files_in(folder / "kernels") == 16);  // and nothing half written
  CHECK(kept.find(key_of(0)) == code_of(0));
}

TEST_CASE("whatever compiled code depends on is in its key", "[core]") {
  const GpuProgram::File files[] = {{"a", "text"}, {"b", ""}}, other_text[] = {{"a", "texts"}},
                         other_header[] = {{"a", "text"}, {"b", " "}},
                         moved[] = {{"a", "tex"}, {"tb", ""}};
  const char *const none[] = {"-DX"}, *const one[] = {"-DX=1"};
  const GpuProgram program{files, none};
  const auto key = [&](const GpuProgram& source, Device device = Device::kCuda,
                       const std::string& architecture = "sm_90",
                       const std::string& made_by = "NVRTC 13.0") {
    return gpu_code_key(device, source, architecture, made_by);
  };
  std::vector<std::string> keys = {key(program),
                                   key({other_text, none}),
                                   key({other_header, none}),
                                   key({moved, none}),
                                   key({files, one}),
                                   key(program, Device::kRocm),
                                   key(program, Device::kCuda, "sm_100"),
                                   key(program, Device::kCuda, "sm_90", "NVRTC 13.1")};
  CHECK(key(program) == keys[0]);
  CHECK(keys[0].size() == 64);
  std::ranges::sort(keys);
  CHECK(std::ranges::adjacent_find(keys) == keys.end());
}

TEST_CASE("kept code lies in the cache of the user", "[core]") {
  const test::TemporaryDirectory folder;
  const test::Environment cache("OLMO_HARNESS_CACHE", folder.path().string());
  KeptGpuCode::of_user().keep(key_of(1), code_of(1));
  CHECK(fs::exists(folder / "kernels" / key_of(1)));
}

}  // namespace
}  // namespace olmo

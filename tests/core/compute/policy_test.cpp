#include "core/compute/policy.h"

#include <sys/resource.h>

#include "core/compute/machine.h"
#include "core/error.h"
#include "support/catch.h"

using namespace olmo;

TEST_CASE("every precision is found by its own name and by no other word", "[core]") {
  for (const Precision precision :
       {Precision::kFp32, Precision::kAmpBf16, Precision::kAmpFp16, Precision::kPureBf16})
    CHECK(precision_named(to_string(precision)) == precision);
  CHECK_FALSE(precision_named("bf16").has_value());
  CHECK(precision_names() == "fp32, amp_bf16, amp_fp16, pure_bf16");
}

TEST_CASE("instruction sets and devices are found by their own names and by no other word",
          "[core]") {
  for (const Isa isa : {Isa::kPlain, Isa::kAvx2, Isa::kAvx512})
    CHECK(isa_named(to_string(isa)) == isa);
  for (const Device device : {Device::kCpu, Device::kCuda, Device::kRocm})
    CHECK(device_named(to_string(device)) == device);
  CHECK_FALSE(isa_named("sse").has_value());
  CHECK_FALSE(device_named("tpu").has_value());
}

TEST_CASE("0 threads are as many as there are by default, and impossible numbers are refused",
          "[core]") {
  CHECK(resolve_threads(0) == default_threads().count);
  CHECK(resolve_threads(3) == 3);
  CHECK_THROWS_AS(resolve_threads(-1), Error);
  CHECK_THROWS_AS(resolve_threads(kMostThreads + 1), Error);
}

TEST_CASE("threads that the system does not give are told before they are needed",
          "[core][not-sanitized]") {
  require_threads(3);
  rlimit before{};
  ::getrlimit(RLIMIT_AS, &before);
  // Each thread has a stack of some megabytes; this leaves room for none of so many.
  const rlimit narrow{.rlim_cur = rlim_t{8} << 30, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_AS, &narrow);
  std::string said;
  try {
    require_threads(kMostThreads);
  } catch (const Error& error) {
    said = error.what();
    CHECK(error.kind() == ErrorKind::kFailure);
  }
  ::setrlimit(RLIMIT_AS, &before);
  CHECK_THAT(said, Catch::Matchers::Contains("of 4096 threads"));
}

#include "report/training/reference_distance.h"

#include "report/run_of_six.h"
#include "report/training/identity.h"
#include "support/catch.h"

using namespace olmo;
using namespace olmo::report;
using olmo::test::kFastPolicy;
using olmo::test::kPortablePolicy;
using olmo::test::run_under;

namespace {

store::AuditRecord audit(std::int64_t first, std::int64_t last, const std::string& verdict,
                         std::optional<double> ce_loss = {}, std::optional<double> norm = {}) {
  return {.created_utc = {},
          .command_line = {},
          .policy = kPortablePolicy,
          .build = "{}",
          .environment = R"({"host":"node-7","cpu":"Xeon"})",
          .started_from = {},
          .first_step = first,
          .last_step = last,
          .verdict = verdict,
          .difference_step = {},
          .difference = {},
          .operation = {},
          .ce_loss_distance = ce_loss,
          .grad_norm_distance = norm};
}

}  // namespace

TEST_CASE("a portable run whose audit gave the same bits is the reference", "[report]") {
  store::RecordedRun run = run_under(kPortablePolicy);
  CHECK(reference_distance(run).numerics == "portable");
  CHECK(!reference_distance(run).ce_loss);
  run.audits = {audit(1, 4, "identical")};
  const ReferenceDistance found = reference_distance(run);
  CHECK(found.ce_loss == 0.0);
  CHECK(found.grad_norm == 0.0);
  REQUIRE(found.audits.size() == 1);
  CHECK(found.audits[0].machine == "node-7, Xeon, avx2");
}

TEST_CASE("another run is as far from the reference as its audits measured", "[report]") {
  store::RecordedRun run = run_under(kFastPolicy);
  run.audits = {audit(1, 2, "within_envelope", 2e-6, 1e-5), audit(4, 6, "different", 1e-6, 3e-5)};
  run.audits[1].difference_step = 5;
  run.audits[1].difference = "ce_loss";
  ReferenceDistance found = reference_distance(run);
  CHECK(found.numerics == "fast");
  CHECK(found.ce_loss == 2e-6);
  CHECK(found.grad_norm == 3e-5);
  CHECK(found.audits[1].difference_step == 5);

  // The same bits as the same libraries gave say nothing about the reference.
  run.audits = {audit(1, 2, "identical")};
  run.audits[0].policy = kFastPolicy;
  CHECK(!reference_distance(run).ce_loss);
  run.audits[0].policy = kPortablePolicy;
  CHECK(reference_distance(run).ce_loss == 0.0);
}

TEST_CASE("a policy or an environment that is no JSON object is not recorded", "[report]") {
  store::RecordedRun run = run_under("[");
  run.audits = {audit(1, 2, "different")};
  run.audits[0].environment = R"({"host":7})";
  run.audits[0].policy = "[1]";
  const ReferenceDistance found = reference_distance(run);
  CHECK(found.numerics.empty());
  CHECK(found.audits[0].machine.empty());
  run.attempts.push_back(run.attempts[0]);
  run.attempts[0].policy = kFastPolicy;
  run.attempts[1].policy = kPortablePolicy;
  CHECK(reference_distance(run).numerics == "fast, portable");
}

TEST_CASE("the distance between the sides is set against that from the reference", "[report]") {
  store::RecordedRun a = run_under(kFastPolicy), b = a;
  b.steps.loss[1] += 2e-6;
  b.steps.loss[4] += 1;  // not audited on both sides
  b.steps.grad_norm[2] = 0.75;
  CHECK(!find_identity(a, b).between);
  a.audits = {audit(1, 4, "within_envelope", 1.5e-6, 1e-5)};
  CHECK(!find_identity(a, b).between);
  b.audits = {audit(2, 3, "within_envelope", 1e-6, 1e-5), audit(6, 6, "different")};
  const auto between = find_identity(a, b).between;
  REQUIRE(between);
  CHECK(between->steps == 2);
  CHECK(between->ce_loss == Approx(2e-6));
  CHECK(between->grad_norm == 0.5);
  CHECK(between->explained);
  b.steps.loss[2] += 1e-3;
  CHECK(!find_identity(a, b).between->explained);
  b.audits[0].first_step = b.audits[0].last_step = 5;
  CHECK(find_identity(a, b).between->steps == 0);
}

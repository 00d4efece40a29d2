#include "store/database/value_hash.h"

#include <limits>
#include <set>

#include "support/catch.h"

using namespace olmo;
using namespace olmo::store;

namespace {

std::string digest_of(const std::vector<SqlValue>& values) {
  Sha256 hash;
  for (const SqlValue& value : values) add_to(hash, value);
  return hash.finish().hex();
}

}  // namespace

TEST_CASE("values of other types or bits, and cut otherwise, have other digests", "[store]") {
  const std::set<std::string> digests = {
      digest_of({SqlValue{}}),
      digest_of({SqlValue{std::int64_t{1}}}),
      digest_of({SqlValue{1.0}}),
      digest_of({SqlValue{std::nextafter(1.0, 2.0)}}),
      digest_of({SqlValue{std::string("1")}}),
      digest_of({SqlValue{std::string("ab")}, SqlValue{std::string("c")}}),
      digest_of({SqlValue{std::string("a")}, SqlValue{std::string("bc")}}),
  };
  CHECK(digests.size() == 7);
}

TEST_CASE("NaN is NULL, as the database stores it", "[store]") {
  CHECK(digest_of({SqlValue{std::numeric_limits<double>::quiet_NaN()}}) == digest_of({SqlValue{}}));
}

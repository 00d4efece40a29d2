#include "core/text/csv.h"

#include "core/error.h"
#include "support/catch.h"

namespace olmo {
namespace {

using Record = std::vector<std::string>;

std::vector<Record> records(const std::string& text) {
  const std::string file = "a.csv";
  CsvReader reader(text, file);
  std::vector<Record> all;
  for (Record fields; reader.next(fields);) all.push_back(fields);
  return all;
}

}  // namespace

TEST_CASE("records end with their line, whatever ends it", "[core]") {
  CHECK(records("a,b\r\nc,\n\n,d") == std::vector<Record>{{"a", "b"}, {"c", ""}, {"", "d"}});
  CHECK(records("").empty());
}

TEST_CASE("quotes enclose commas, line ends and quotes", "[core]") {
  CHECK(records("\"a,b\",\"c\nd\",\"e\"\"f\"\ng") ==
        std::vector<Record>{{"a,b", "c\nd", "e\"f"}, {"g"}});
}

TEST_CASE("a record knows its line behind those that quotes enclose", "[core]") {
  const std::string file = "a.csv";
  CsvReader reader("\"x\ny\"\nz", file);
  Record fields;
  REQUIRE(reader.next(fields));
  CHECK(reader.line() == 1);
  REQUIRE(reader.next(fields));
  CHECK(reader.line() == 3);
}

TEST_CASE("a quote that is never closed is named with its line", "[core]") {
  try {
    records("a\nb,\"c\nd");
    FAIL("read");
  } catch (const Error& error) {
    CHECK(error.what() == std::string("a.csv:2: has a quote that is never closed"));
  }
}

}  // namespace olmo

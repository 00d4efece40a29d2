#include "data/foreign_format.h"

#include <string>

#include "support/catch.h"

using namespace olmo::data;
using namespace std::string_literals;

TEST_CASE("formats of other programs are told by their first bytes", "[data]") {
  CHECK(foreign_format("PAR1\x15\x04")->name == "a Parquet file");
  CHECK_FALSE(foreign_format("PAR1")->is_packed);
  CHECK(foreign_format("BZh91AY&SY")->is_packed);
  CHECK(foreign_format(std::string(257, '\0') + "ustar")->name == "a tar archive");
  CHECK(foreign_to_json_lines("ARROW1\0\0"s)->name == "an Arrow file");
}

TEST_CASE("what only JSON lines cannot begin with is no sign for other files", "[data]") {
  CHECK(foreign_to_json_lines("\xff\xff\xff\xff\x10")->name == "an Arrow stream");
  CHECK_FALSE(foreign_format("\xff\xff\xff\xff\x10"));
  for (const auto text : {"{\"text\": \"PAR1\"}", "", " ", "\n", "PAR"})
    CHECK_FALSE(foreign_to_json_lines(text));
}

#include "data/python_text.h"

#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "support/catch.h"

using namespace olmo::data;

TEST_CASE("string methods give what Python's give", "[data]") {
  for (const auto& row :
       olmo::read_json_file(std::string(OLMO_TEST_DATA) + "/data/python_text.json")) {
    const auto text = row.at("text").get<std::string>();
    INFO(text);
    CHECK(row.at("strip") == strip(text));
    CHECK(row.at("lstrip") == lstrip(text));
    CHECK(row.at("rstrip") == rstrip(text));
    CHECK(row.at("lower") == lower(text));
    CHECK(row.at("capitalize") == capitalize(text));
    CHECK(row.at("remove_brackets") == remove_brackets(text));
    CHECK(row.at("replace") == replace(text, "  ", " "));
  }
}

TEST_CASE("white space is Python's, zero width space is none", "[data]") {
  CHECK(strip(" \t\n\r\f\v\x1c\x1f\u00a0\u3000x\u2003 ") == "x");
  CHECK(strip("\u200b x") == "\u200b x");
  CHECK(strip(" \u2028 ").empty());
}

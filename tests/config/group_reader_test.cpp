#include "config/group_reader.h"

#include "config/file.h"
#include "support/catch.h"

namespace olmo::config {
namespace {

/// What a group of data keys at `here.` is read as, by the rows of `data.`.
struct Reading {
  explicit Reading(const std::string& text, OnMisread on_misread = OnMisread::kDefault)
      : document(parse_json_config(text, "c.json")) {
    GroupReader reader(findings, document.root, "", "", on_misread);
    reader.read_group("here", "data", data);
  }

  ConfigDocument document;
  Findings findings{document};
  data::DataConfig data;
};

}  // namespace

TEST_CASE("a group is read by rows that stand elsewhere, and named by its own place", "[config]") {
  const Reading reading(R"({"here": {"paths": ["a"], "seed": 5,
    "memmap_dtyp": "uint32", "num_workers": 4, "generate_attention_mask": true,
    "instance_filter": {"repetition_max_perio": 2}}})");
  CHECK(reading.data.paths == std::vector<std::string>{"a"});
  CHECK(reading.data.seed == 5);
  CHECK(sorted_texts(reading.findings.errors) ==
        std::vector<std::string>{
            "c.json:2: `here.memmap_dtyp` is not a key; did you mean `memmap_dtype`?",
            "c.json:3: `here.instance_filter.repetition_max_perio` is not a key; did you mean "
            "`repetition_max_period`?"});
  CHECK(
      reading.findings.unread ==
      std::vector<std::string>{"here.instance_filter.repetition_max_period", "here.memmap_dtype"});
  REQUIRE(reading.findings.notes.size() == 1);
  CHECK(reading.findings.notes[0].text.find("c.json:2: `here.num_workers` is not honoured") == 0);
  REQUIRE(reading.findings.blockers.size() == 1);
  CHECK(reading.findings.blockers[0].text.find("c.json:2: `here.generate_attention_mask` is") == 0);
}

TEST_CASE("a number that cannot be read keeps its default, or is beyond any range", "[config]") {
  const std::string text = R"({"here": {"seed": "five"}})";
  const Reading reading(text);
  CHECK_FALSE(reading.data.seed.value_or(0) != 0);
  REQUIRE(reading.findings.misread.size() == 1);
  CHECK(reading.findings.misread[0].path == "here.seed");
  CHECK(reading.findings.misread[0].got == "the text \"five\"");
  CHECK(Reading(text, OnMisread::kBeyondAnyRange).data.seed ==
        std::numeric_limits<std::uint64_t>::max());
}

}  // namespace olmo::config

#include "data/inspect.h"

#include <nlohmann/json.hpp>

#include "data/scratch.h"
#include "support/catch.h"

using namespace olmo::data;
using olmo::test::ScratchFolder;

namespace {

/// Two instances of five tokens; EOS is 9.
BatchConfig config_of(const ScratchFolder& folder) {
  BatchConfig config;
  config.data.paths = {
      folder.write_ids("a.npy", std::vector<std::uint16_t>{1, 2, 9, 3, 4, 5, 9, 6, 7, 9, 8})};
  config.data.shuffle = false;
  config.sequence_length = 5;
  config.global_batch_size = 2;
  return config;
}

}  // namespace

TEST_CASE("an inspected step shows where its instances lie and where documents begin and end",
          "[data]") {
  const ScratchFolder folder;
  BatchSource source(config_of(folder));
  const InspectedStep step = inspect_step(source, 1, nullptr, 9);
  REQUIRE(step.instances.size() == 2);
  const InspectedInstance& second = step.instances[1];
  CHECK((second.first_token == 5 && second.byte_offset == 10 && second.labels == 4));
  REQUIRE(step.instances[0].documents.size() == 2);
  const auto& documents = step.instances[0].documents;
  CHECK((documents[0].begins_here && documents[0].ends_here && documents[0].end == 3));
  CHECK((documents[1].begins_here && !documents[1].ends_here && documents[1].end == 5));
  CHECK_FALSE(second.documents[0].begins_here);
  CHECK(second.documents.back().ends_here);
  CHECK(step.digest == source.batch(1).digest);
}

TEST_CASE("documents are named where an index lies beside their token file", "[data]") {
  const ScratchFolder folder;
  BatchSource source(config_of(folder));
  CHECK_FALSE(inspect_step(source, 1, nullptr, 9).instances[0].documents[0].origin);
  DocumentIndexWriter index(folder / "a.npy");
  index.add({.tokens = {.begin = 0, .end = 3}, .origin = {.id = "x", .source = "t", .line = 1}});
  index.add({.tokens = {.begin = 3, .end = 7}, .origin = {.id = "y", .source = "t", .line = 4}});
  index.add({.tokens = {.begin = 7, .end = 11}, .origin = {.id = "", .source = "u", .line = 1}});
  index.finish();
  index.publish();
  const InspectedStep step = inspect_step(source, 1, nullptr, 9);
  const auto origin = [&](std::size_t instance, std::size_t document) {
    return step.instances[instance].documents[document].origin.value();
  };
  CHECK((origin(0, 0).id == "x" && origin(0, 1).id == "y"));
  CHECK((origin(1, 0).id == "y" && origin(1, 0).line == 4));
  CHECK((origin(1, 1).id.empty() && origin(1, 1).source == "u"));
  const std::string text = to_text(step);
  CHECK(text.find("tokens 3 to 4, continues after, t:4 (y)\n") != std::string::npos);
  CHECK(text.find(", u:1\n") != std::string::npos);
  CHECK(to_json(step)["instances"][1]["documents"][0]["origin"] ==
        olmo::Json{{"id", "y"}, {"source", "t"}, {"line", 4}});
}

TEST_CASE("an instance is masked in the inspection as in training", "[data]") {
  const ScratchFolder folder;
  BatchConfig config = config_of(folder);
  config.data.paths = {
      folder.write_ids("b.npy", std::vector<std::uint16_t>{1, 2, 9, 3, 4, 5, 5, 5, 5, 5})};
  config.data.instance_filter = InstanceFilterConfig{.repetition_max_count = 4};
  BatchSource source(config);
  const InspectedStep step = inspect_step(source, 1, nullptr, std::nullopt);
  CHECK((!step.instances[0].masked && step.instances[1].masked));
  CHECK(step.instances[1].labels == 0);
}

TEST_CASE("a token file's name with a line end stays on its line", "[data]") {
  const ScratchFolder folder;
  BatchConfig config = config_of(folder);
  config.data.paths = {folder.write_ids("a\nerror: b", std::vector<std::uint16_t>{1, 2, 3, 4, 5})};
  config.global_batch_size = 1;
  BatchSource source(config);
  const std::string text = to_text(inspect_step(source, 1, nullptr, 9));
  CHECK_THAT(text, Catch::Contains("a error: b, tokens 0 to 4, byte 0, 4 labels"));
  CHECK_THAT(text, Catch::Contains("(1 step an epoch, 1 instance in the data)"));
}

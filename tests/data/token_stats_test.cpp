#include "data/token_stats.h"

#include <nlohmann/json.hpp>

#include "data/scratch.h"
#include "support/catch.h"

using namespace olmo::data;
using olmo::test::ScratchFolder;

namespace {

/// Four documents; EOS is 9.
std::string write_tokens(const ScratchFolder& folder, const char* name = "a.npy") {
  return folder.write_ids(name, std::vector<std::uint16_t>{1, 2, 9, 3, 4, 5, 9, 6, 7, 9, 8});
}

}  // namespace

TEST_CASE("statistics tell the sources of a token file with an index", "[data]") {
  const ScratchFolder folder;
  const auto path = write_tokens(folder);
  const TokenFile file(path, TokenDtype::kUint16);
  CHECK(to_json(token_stats(file, 9, 5))["sources"].is_null());
  DocumentIndexWriter index(path);
  index.add({.tokens = {.begin = 0, .end = 3}, .origin = {.id = "x", .source = "t", .line = 1}});
  index.add({.tokens = {.begin = 3, .end = 11}, .origin = {.id = "y", .source = "u", .line = 4}});
  index.finish();
  index.publish();
  const TokenStats stats = token_stats(file, 9, 5);
  CHECK(to_text(stats).find("  u: 8 tokens, 1 document\n  t: 3 tokens, 1 document\n") !=
        std::string::npos);
  CHECK(to_json(sum({stats, stats}))["sources"][0] ==
        olmo::Json{{"source", "u"}, {"documents", 2}, {"tokens", 16}});
}

TEST_CASE("statistics of a token file count documents by EOS", "[data]") {
  const ScratchFolder folder;
  const TokenFile file(write_tokens(folder), TokenDtype::kUint16);
  const TokenStats stats = token_stats(file, 9, 5);
  CHECK((stats.tokens == 11 && stats.documents == 4 && !stats.ends_with_eos && stats.max_id == 9));
  CHECK((stats.shortest == 1 && stats.longest == 4 && stats.sequences == 2 && stats.tail == 1));
  CHECK(stats.lengths == std::vector<std::uint64_t>{1, 2, 1});
  CHECK(sum({stats, stats}).documents == 8);
}

TEST_CASE("statistics of a file whose name has a line end stay on its line", "[data]") {
  const ScratchFolder folder;
  const TokenFile file(write_tokens(folder, "a\nerror: b"), TokenDtype::kUint16);
  CHECK_THAT(to_text(token_stats(file, 9, 5)), Catch::Contains("a error: b\n  tokens"));
}

#include "dist/agreement.h"

#include "dist/thread_ranks.h"
#include "support/catch.h"
#include "support/says.h"

namespace olmo::dist {
namespace {

using test::says;

/// What the ranks throw, by rank; empty: nothing. `facts_of`: a rank's.
std::vector<std::string> thrown(int size,
                                const std::function<std::vector<Fact>(int rank)>& facts_of) {
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  run_ranks(size, [&](Communicator& ranks) {
    const auto rank = static_cast<std::size_t>(ranks.rank());
    try {
      require_same(ranks, facts_of(ranks.rank()), "nid" + std::to_string(rank / 2));
    } catch (const AgreedError& error) {
      if (error.kind() == ErrorKind::kUsage) errors[rank] = error.what();
    }
  });
  return errors;
}

}  // namespace

TEST_CASE("ranks with the same facts go on", "[dist]") {
  const auto errors = thrown(3, [](int) { return std::vector<Fact>{{"build", "1"}, {"a", "b"}}; });
  CHECK(errors == std::vector<std::string>(3));
}

TEST_CASE("a rank with another config is named on every rank, with the key and both values",
          "[dist]") {
  const auto errors = thrown(4, [](int rank) {
    return std::vector<Fact>{
        {"config", std::string(R"({"model":{"d_model":64},"seed":)") + (rank == 3 ? "7}" : "6}")}};
  });
  for (const auto& error : errors) CHECK(error == errors[0]);
  CHECK(says(errors[0], "rank 3 (on nid1): config: seed is 7 there and 6 on rank 0"));
  CHECK_FALSE(says(errors[0], "d_model"));
}

TEST_CASE("ranks that differ in the same way are told in one line", "[dist]") {
  const auto errors = thrown(6, [](int rank) {
    return std::vector<Fact>{{"build", rank == 0 ? "aa" : "bb"}};
  });
  CHECK(says(errors[0], "ranks 1 to 5 (on 3 machines): build is bb there and aa on rank 0"));
}

TEST_CASE("a fact that one rank lacks, or has too many of, is a difference", "[dist]") {
  const auto errors = thrown(3, [](int rank) {
    std::vector<Fact> facts = {{"token file 0", "aa"}};
    if (rank != 1) facts.push_back({"token file 1", "bb"});
    if (rank == 2) facts.push_back({"token file 2", "cc"});
    return facts;
  });
  CHECK(says(errors[1], "rank 1 (on nid0): token file 1 is missing there and bb on rank 0"));
  CHECK(says(errors[1], "rank 2 (on nid1): token file 2 is cc there and missing on rank 0"));
}

TEST_CASE("many differences are counted, and long values cut", "[dist]") {
  const auto errors = thrown(2, [](int rank) {
    std::vector<Fact> facts;
    for (int i = 0; i < 8; ++i)
      facts.push_back({"f" + std::to_string(i), std::string(1000, rank == 0 ? 'a' : 'b')});
    return facts;
  });
  CHECK(says(errors[0], "and 3 more"));
  CHECK(errors[0].size() < 2000);
}

TEST_CASE("where all differences are shown, no more are told", "[dist]") {
  const auto errors = thrown(2, [](int rank) {
    std::vector<Fact> facts;
    for (int i = 0; i < 5; ++i) facts.push_back({"f" + std::to_string(i), std::to_string(rank)});
    return facts;
  });
  CHECK(says(errors[0], "f4 is 1 there and 0 on rank 0"));
  CHECK_FALSE(says(errors[0], "more"));
}

TEST_CASE("values that differ beyond what is shown still differ", "[dist]") {
  const auto errors = thrown(2, [](int rank) {
    return std::vector<Fact>{{"list", std::string(1000, 'a') + std::to_string(rank)}};
  });
  CHECK(says(errors[0], "list is aaa"));
}

TEST_CASE("ranks are listed as people write them", "[dist]") {
  CHECK(rank_list({3}) == "rank 3");
  CHECK(rank_list({1, 2}) == "ranks 1 and 2");
  CHECK(rank_list({1, 4, 5, 6, 7, 9}) == "ranks 1, 4 to 7 and 9");
}

}  // namespace olmo::dist

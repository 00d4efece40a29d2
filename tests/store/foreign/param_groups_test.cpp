#include "store/foreign/param_groups.h"

#include "support/catch.h"

namespace olmo::store {

TEST_CASE("a parameter's name is found by its number, in whatever group it is", "[store]") {
  using namespace std::string_literals;
  // [{"params": [1], "param_names": ["b"]}, {"params": [0, 7], "param_names": ["a"]}, {"lr": 2}]
  const Pickle pickle(
      "\x80\x02](}(X\x06\0\0\0params]K\x01"
      "aX\x0b\0\0\0param_names]X\x01\0\0\0"
      "bau}(X\x06\0\0\0params](K\0K\x07"
      "eX\x0b\0\0\0param_names]X\x01\0\0\0"
      "aau}X\x02\0\0\0lrK\x02se."s,
      "x.pt");
  const std::map<std::string, std::string> expected = {{"0", "a"}, {"1", "b"}};
  CHECK(names_of_numbers(pickle.root()) == expected);
}

}  // namespace olmo::store

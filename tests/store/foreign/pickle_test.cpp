#include "store/foreign/pickle.h"

#include "core/error.h"
#include "support/catch.h"

namespace olmo::store {
namespace {

using namespace std::string_literals;
using Catch::Matchers::Contains;
using Integers = std::map<std::string, std::int64_t>;

Integers read(const std::string& pickle) { return Pickle(pickle, "x.pt").root().integers(); }

/// As CPython pickles {"a": 1, "b": -70000, "c": 2**40, "d": [300], "e": "a", "f": {"g": 5}} at
/// protocol 2.
const std::string kProtocol2 =
    "\x80\x02}q\0("
    "X\x01\0\0\0aq\x01K\x01X\x01\0\0\0bq\x02J\x90\xee\xfe\xffX\x01\0\0\0cq\x03\x8a\x06\0\0\0\0\0"
    "\x01"
    "X\x01\0\0\0dq\x04]q\x05M,\x01"
    "aX\x01\0\0\0eq\x06h\x01X\x01\0\0\0fq\x07}q\x08X\x01\0\0\0gq\tK\x05su."s;

}  // namespace

TEST_CASE("the whole numbers of a pickled dict are read by name, and nothing else of it",
          "[store]") {
  const Integers expected = {{"a", 1}, {"b", -70000}, {"c", std::int64_t{1} << 40}};
  CHECK(read(kProtocol2) == expected);
  // {"n": 2} at protocol 4, and os.system("x") as the value of "m", which is not run.
  CHECK(read("\x80\x04\x95\x1f\0\0\0\0\0\0\0}\x94("
             "\x8c\x01m\x94\x8c\x02os\x94\x8c\x06system\x94\x93\x8c\x01x\x85R"
             "\x8c\x01n\x94K\x02u."s) == Integers{{"n", 2}});
}

TEST_CASE("what a pickle would call stays a name with arguments", "[store]") {
  const Pickle pickle(
      "\x80\x02}(X\x01\0\0\0acos\nsystem\nX\x01\0\0\0x\x85R"
      "X\x01\0\0\0bccollections\nOrderedDict\n)RK\x03K\x04su."s,
      "x.pt");
  const PickleValue* call = pickle.root().find("a");
  REQUIRE(call != nullptr);
  CHECK(call->kind == PickleValue::Kind::kCall);
  CHECK(call->items[0]->is_name("os", "system"));
  CHECK(call->items[1]->items[0]->text == "x");
  const PickleValue* dict = pickle.root().find("b");
  REQUIRE(dict != nullptr);
  CHECK(dict->kind == PickleValue::Kind::kDict);
  REQUIRE(dict->items.size() == 2);
  CHECK(dict->items[1]->integer == 4);
  CHECK(pickle.root().find("c") == nullptr);
  CHECK(call->find("a") == nullptr);
}

TEST_CASE("an object's attributes are those of its state, with slots or without", "[store]") {
  // m.A() with the state {"x": 1}; m.A() with the state (None, {"x": 2}); m.A().
  const Pickle pickle(
      "\x80\x02](cm\nA\nq\0)\x81}X\x01\0\0\0xK\x01sb"
      "h\0)\x81N}X\x01\0\0\0xK\x02s\x86"
      "bh\0)\x81"
      "e."s,
      "x.pt");
  const auto& objects = pickle.root().items;
  REQUIRE(objects.size() == 3);
  CHECK(objects[0]->attribute("x")->integer == 1);
  CHECK(objects[0]->attribute("y") == nullptr);
  CHECK(objects[1]->attribute("x")->integer == 2);
  CHECK(objects[2]->attribute("x") == nullptr);
}

TEST_CASE("whole numbers are read from a tuple, and from a torch.Size of one", "[store]") {
  using Numbers = std::vector<std::int64_t>;
  const auto numbers = [](const std::string& pickle) {
    return Pickle("\x80\x02" + pickle + ".", "x.pt").root().whole_numbers();
  };
  CHECK(numbers("K\x03K\x04\x86") == Numbers{3, 4});
  CHECK(numbers("ctorch\nSize\nK\x03K\x04\x86\x85R") == Numbers{3, 4});
  CHECK(numbers(")") == Numbers{});
  CHECK_FALSE(numbers("K\x03N\x86"));
  CHECK_FALSE(numbers("K\x03"));
  CHECK_FALSE(numbers("ctorch\nSize\n)R"));
}

TEST_CASE("of a key that a pickle sets twice the last value counts", "[store]") {
  const Pickle pickle("\x80\x02}(X\x01\0\0\0aK\x01X\x01\0\0\0aK\x02u."s, "x.pt");
  CHECK(pickle.root().find("a")->integer == 2);
  CHECK(pickle.root().integers() == Integers{{"a", 2}});
}

TEST_CASE("a pickle that ends early is refused", "[store]") {
  for (std::size_t size = 0; size < kProtocol2.size(); ++size) {
    INFO(size);
    CHECK_THROWS_AS(read(kProtocol2.substr(0, size)), Error);
  }
  CHECK_THROWS_WITH(read("\x80\x02(."s), Contains("x.pt: the pickle takes what is not there"));
  CHECK_THROWS_WITH(read("\x80\x02h\x05."s), Contains("takes what is not there"));
  CHECK_THROWS_WITH(read("\x80\x02}(K\x01u."s), Contains("a key without a value"));
  CHECK_THROWS_WITH(read("\x80\x02\x7f."s), Contains("has an unknown operation"));
}

}  // namespace olmo::store

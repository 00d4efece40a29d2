#include "store/foreign/safetensors.h"
#include "support/catch.h"

using namespace olmo::store;

namespace {

const std::string kKey = "gASVHwAAAAAAAACMFnRyYW5zZm9ybWVyLnd0ZS53ZWlnaHSUhZSJhpQu";

}  // namespace

TEST_CASE("keys of OLMo's safetensors are those of its Python code", "[store]") {
  CHECK(decode_olmo_key(kKey) == "transformer.wte.weight");
  CHECK(decode_olmo_path(kKey) == std::vector<std::string>{"transformer.wte.weight"});
}

TEST_CASE("keys of OLMo's optim.safetensors are three texts", "[store]") {
  const std::string key =
      "gASVLgAAAAAAAACMBXN0YXRllIwWdHJhbnNmb3JtZXIud3RlLndlaWdodJSMBHN0ZXCUh5SJhpQu";
  CHECK(decode_olmo_path(key) ==
        std::vector<std::string>{"state", "transformer.wte.weight", "step"});
  CHECK(decode_olmo_key(key) == key);
  CHECK(decode_olmo_path("transformer.wte.weight").empty());
  for (std::size_t size = 0; size < key.size(); ++size)
    CHECK(decode_olmo_path(key.substr(0, size)).empty());
}

TEST_CASE("any other text is no key and stays as it is", "[store]") {
  for (const std::string text : {"", "model.embed_tokens.weight", "abcd", "====", "gASV",
                                 // a pickle that would call a function
                                 "gASVHgAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjAJpZJSFlFKULg=="}) {
    CHECK(decode_olmo_key(text) == text);
  }
  for (std::size_t size = 0; size < kKey.size(); ++size)
    CHECK(decode_olmo_key(kKey.substr(0, size)) == kKey.substr(0, size));
}

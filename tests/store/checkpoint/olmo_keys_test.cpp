#include "store/checkpoint/safetensors.h"
#include "support/catch.h"

using namespace olmo::store;

TEST_CASE("keys of OLMo's safetensors are those of its Python code", "[store]") {
  const std::string name = "transformer.wte.weight";
  const std::string key = "gASVHwAAAAAAAACMFnRyYW5zZm9ybWVyLnd0ZS53ZWlnaHSUhZSJhpQu";
  CHECK(encode_olmo_key(name) == key);
  CHECK(decode_olmo_key(key) == name);
  for (const std::size_t length : std::vector<std::size_t>{0, 1, 2, 3, 255, 256, 300}) {
    const std::string any(length, 'x');
    CHECK(decode_olmo_key(encode_olmo_key(any)) == any);
  }
}

TEST_CASE("keys of OLMo's optim.safetensors are three texts", "[store]") {
  const std::string key =
      "gASVLgAAAAAAAACMBXN0YXRllIwWdHJhbnNmb3JtZXIud3RlLndlaWdodJSMBHN0ZXCUh5SJhpQu";
  CHECK(decode_olmo_path(key) ==
        std::vector<std::string>{"state", "transformer.wte.weight", "step"});
  CHECK(decode_olmo_key(key) == key);
  CHECK(decode_olmo_path(encode_olmo_key("one")) == std::vector<std::string>{"one"});
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
  const std::string key = encode_olmo_key("transformer.ln_f.weight");
  for (std::size_t size = 0; size < key.size(); ++size)
    CHECK(decode_olmo_key(key.substr(0, size)) == key.substr(0, size));
}

#include "models/read_config.h"

#include <nlohmann/json.hpp>

#include "config/file.h"
#include "core/error.h"
#include "support/catch.h"
#include "support/model_config_json.h"

namespace olmo::models {
namespace {

model::ModelConfig read(const Json& json) {
  return model_of_config(config::parse_config_document(json.dump(), "config.json"));
}

}  // namespace

TEST_CASE("a model told in OLMo's keys comes back from them", "[models]") {
  const auto config = test::tiny_config();
  const Json keys = model_json(config);
  CHECK(model_json(read({{"model", keys}})) == keys);
  // hf_olmo has the same keys among transformers' own.
  Json flat = keys;
  flat["architectures"] = {"OLMoForCausalLM"};
  CHECK(model_json(read(flat)) == keys);
}

TEST_CASE("a config that tells no model is a bad input", "[models]") {
  for (const Json& json : {Json{{"a", 1}}, Json{{"model", Json::object({{"d_model", -1}})}}}) {
    CAPTURE(json);
    try {
      read(json);
      FAIL_CHECK("was read");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kInput);
    }
  }
}

}  // namespace olmo::models

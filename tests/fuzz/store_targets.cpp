#include <fstream>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/event_file_format.h"
#include "core/files/input_file.h"
#include "core/files/protobuf.h"
#include "core/files/wandb_format.h"
#include "core/hash.h"
#include "fuzz/target.h"
#include "import/instances.h"
#include "import/steps.h"
#include "import/tensorboard.h"
#include "import/wandb.h"
#include "store/checkpoint/checkpoint.h"
#include "store/checkpoint/checkpoint_manifest.h"
#include "store/foreign/olmo_shards.h"
#include "store/foreign/safetensors.h"
#include "store/foreign/torch_file.h"
#include "store/runs/run_db.h"

namespace olmo::fuzz {
namespace {

/// The text as it is, and with a digest of itself that is right, as an attacker would write it.
void parse_manifest(const std::string& input) {
  try {
    (void)store::parse_manifest(input, "manifest.json");
  } catch (const Error&) {  // most often its digest
  }
  Json json = store::parse_untrusted(input, "manifest.json");
  if (!json.is_object()) return;
  json.erase("sha256");
  json["sha256"] = sha256(json.dump()).hex();
  const auto manifest = store::parse_manifest(json.dump(), "manifest.json");
  (void)store::to_text(manifest);
  (void)store::tensors_digest(manifest.datasets);
}

/// A small checkpoint.
store::SavedCheckpoint saved_checkpoint() {
  store::CheckpointContents contents;
  contents.trainer =
      Json{{"step", 1}, {"tokens_seen", 8}, {"run_id", "r"}, {"data", {{"seed", 1}}}};
  contents.model = {{"transformer.wte.weight", at::ones({3, 2})},
                    {"transformer.ln_f.weight", at::zeros({})}};
  contents.optim = {{"step/transformer.wte.weight", at::full({}, 1, at::kLong)}};
  return store::save_checkpoint(scratch_folder() / "run", contents, {.overwrite = true});
}

std::vector<std::string> manifest_seeds() {
  return {read_file(saved_checkpoint().path / store::kManifestName)};
}

/// The data file of a checkpoint whose manifest is another one's. Whatever differs must be found.
void parse_checkpoint(const std::string& input) {
  static const auto saved = saved_checkpoint();
  static const std::string sound = read_file(saved.path / store::kDataFileName);
  std::ofstream(saved.path / store::kDataFileName, std::ios::binary | std::ios::trunc) << input;
  const store::CheckpointReader reader(saved.path);
  (void)store::read_checkpoint(saved.path);
  if (input != sound) std::abort();
}

std::vector<std::string> checkpoint_seeds() {
  return {read_file(saved_checkpoint().path / store::kDataFileName)};
}

void parse_safetensors(const std::string& input) {
  const store::SafetensorsFile file(file_of(input, "model.safetensors"));
  for (const auto& entry : file.entries()) {
    try {
      (void)file.tensor(entry.name);
    } catch (const Error&) {  // of another dtype
    }
  }
}

std::vector<std::string> safetensors_seeds() {
  auto seeds = files_below("tests/data/store", ".safetensors");
  const auto path = scratch_folder() / "seed.safetensors";
  store::write_safetensors(path, {{"a", at::ones({2, 3})}, {"b", at::zeros({})}}, {{"k", "v"}});
  seeds.push_back(read_file(path));
  return seeds;
}

/// The first byte says what the file is called, for the name and the contents choose the format.
void parse_log(const std::string& input) {
  constexpr const char* kNames[] = {"log.csv", "log.jsonl", "log.txt", "log.log", "tfevents"};
  const std::size_t kind =
      input.empty() ? 0 : static_cast<unsigned char>(input[0]) % std::size(kNames);
  const auto path = file_of(input.substr(input.empty() ? 0 : 1), kNames[kind]);
  (void)import::read_step_log(path, {});
}

std::vector<std::string> log_seeds() {
  return {"\4" + files_below("tests/data/import", ".golden").front(),
          std::string("\0", 1) +
              "\xEF\xBB\xBF\"Step\",\"r - train/CrossEntropyLoss\",lr,note\r\n1,11.2,1e-4,\"a, "
              "\"\"b\"\"\"\r\n2,NaN,,\r\n",
          "\1{\"_step\": 0, \"train/CrossEntropyLoss\": 10.5, \"x\": {\"y\": [1]}}\n{\"_step\": 1, "
          "\"train/CrossEntropyLoss\": NaN}\n",
          "\2# a comment\n1 8.04\n2\t7.75  0.5\n",
          "\3[rank0]: INFO - \x1b[31mstep:  1  \x1b[32mloss: 12.2713  grad_norm:  1.3  tps: 1,234  "
          "mfu: 0.03%\x1b[39m\n",
          "\3I\t[step=10/739328,epoch=0]\n    train/CrossEntropyLoss=11.20\n    "
          "throughput/total_tokens=41,943,040\n"};
}

/// What a checksum vouches for is no better than who wrote it: the input is the data of a record.
void parse_event(const std::string& data) {
  (void)import::read_event_file(event_file::record_of(data), "events", [](auto, const auto&) {});
}

std::vector<std::string> event_seeds() {
  namespace tensor = event_file::tensor;
  const auto numbers = ProtobufMessage()
                           .text(event_file::value::kTag, "loss")
                           .single(event_file::value::kSimpleValue, 2.5F);
  const auto of_tensor =
      ProtobufMessage()
          .text(event_file::value::kTag, "lr")
          .message(event_file::value::kTensor, ProtobufMessage()
                                                   .integer(tensor::kType, tensor::kDouble)
                                                   .text(tensor::kContent, "12345678"));
  const auto event = [](const ProtobufMessage& value) {
    return ProtobufMessage()
        .real(event_file::event::kWallTime, 1.5)
        .integer(event_file::event::kStep, 3)
        .message(event_file::event::kSummary,
                 ProtobufMessage().message(event_file::kValueOfSummary, value))
        .bytes();
  };
  return {event(numbers), event(of_tensor)};
}

void parse_wandb_entry(const std::string& data) {
  const std::string file =
      wandb_format::file_head() + wandb_format::piece_of(wandb_format::kFull, data);
  (void)import::read_wandb_record(file, "run.wandb", [](auto, const auto&) {});
  (void)import::read_wandb_run(file, "run.wandb");
}

std::vector<std::string> wandb_seeds() {
  namespace item = wandb_format::item;
  namespace record = wandb_format::record;
  const auto one = ProtobufMessage()
                       .text(item::kNestedKey, "eval")
                       .text(item::kNestedKey, "loss")
                       .text(item::kJson, "NaN");
  const auto history =
      ProtobufMessage()
          .message(item::kInHistory, one)
          .message(item::kInHistory,
                   ProtobufMessage().text(item::kKey, "t").text(item::kJson, "\"x\\n\""))
          .message(item::kStepOfHistory, ProtobufMessage().integer(item::kNumberOfStep, 4));
  const auto run =
      ProtobufMessage()
          .text(wandb_format::run::kHost, "n")
          .message(wandb_format::run::kConfig, ProtobufMessage().message(item::kInUpdate, one));
  return {ProtobufMessage().message(record::kHistory, history).bytes(),
          ProtobufMessage().message(record::kRun, run).message(record::kConfig, run).bytes()};
}

void parse_instances(const std::string& input) {
  auto file = import::read_instance_file(file_of(input, "samples_piqa_2024-01-01.jsonl"));
  import::rank_instances(file, import::ImportMetric::kAcc);
  (void)import::read_instance_file(file_of(input, "task-001-piqa-predictions.jsonl"));
}

std::vector<std::string> instance_seeds() {
  return {
      "{\"doc_id\": 0, \"doc\": {\"goal\": \"g\"}, \"target\": \"1\", \"arguments\": "
      "{\"gen_args_0\": {\"arg_0\": \"q\", \"arg_1\": \" a\"}, \"gen_args_1\": {\"arg_0\": \"q\", "
      "\"arg_1\": \" b\"}}, \"resps\": [[[\"-1.5\", \"False\"]], [[\"-2.5\", \"True\"]]], "
      "\"filtered_resps\": [[\"-1.5\", \"False\"], [\"-2.5\", \"True\"]], \"acc\": 0.0}\n",
      "{\"doc_id\": 0, \"doc\": {}, \"target\": 0, \"arguments\": [[\"q\", \" a\"], [\"q\", \" "
      "b\"]], \"resps\": [[[-1.5, false]], [[-2.5, true]]], \"acc\": 1.0}\n",
      "{\"doc_id\": 0, \"native_id\": \"n\", \"metrics\": {\"predicted_index_raw\": 0, "
      "\"acc_raw\": 1}, \"label\": 0, \"model_output\": [{\"sum_logits\": -1.5, \"num_tokens\": "
      "2, \"num_chars\": 4, \"num_bytes\": 4, \"is_greedy\": true}, {\"sum_logits\": -3, "
      "\"num_tokens\": 1, \"num_chars\": 2, \"num_bytes\": 2, \"is_greedy\": false}]}\n"};
}

void parse_pickle(const std::string& input) { (void)store::Pickle(input, "x.pt"); }

std::vector<std::string> pickle_seeds() {
  using namespace std::string_literals;
  return {
      "\x80\x02}q\0(X\x01\0\0\0aq\x01K\x01X\x01\0\0\0bq\x02J\x90\xee\xfe\xffX\x01\0\0\0cq\x03]"
      "q\x04M,\x01"
      "aX\x01\0\0\0dq\x05h\x01"
      "cnumpy\nx\nq\x06(K\x01\x8a\x01\x02tRbu."s,
      "\x80\x04\x95\x09\0\0\0\0\0\0\0}\x94\x8c\x01n\x94K\x02\x85Q\x86s."s};
}

void parse_torch_file(const std::string& input) {
  const store::TorchFile file(file_of(input, "model.pt"));
  for (const auto& entry : file.entries()) {
    try {
      (void)file.tensor(entry.name);
    } catch (const Error&) {  // of another dtype, or changed
    }
  }
}

/// Reads every tensor; some may be of another dtype, or changed.
void read_all(const store::StoredTensors& stored) {
  for (const auto& tensor : stored.tensors()) {
    try {
      (void)store::read_tensor(tensor);
    } catch (const Error&) {
    }
  }
}

const std::filesystem::path kShards =
    std::filesystem::path(OLMO_SOURCE_DIR) / "tests/data/train/olmo_shards";
const std::filesystem::path kDcp = "torch_new/model_and_optim/.metadata";
const std::filesystem::path kFlat = "local/model/rank1.pt";
const std::filesystem::path kLegacy = "torch_legacy/rank1.pt";
const std::filesystem::path kOlmoCore = "olmo_core/optim/metadata.json";

/// A sharded checkpoint of the tests, of which `file` is the input.
void parse_shards(const std::filesystem::path& file, const std::string& input) {
  const auto name = *file.begin(), folder = scratch_folder() / name;
  if (!std::filesystem::exists(folder))
    std::filesystem::copy(kShards / name, folder, std::filesystem::copy_options::recursive);
  std::ofstream(scratch_folder() / file, std::ios::binary | std::ios::trunc) << input;
  const auto format = *store::shard_format_of(folder);
  read_all(store::open_model_shards(folder, format));
  read_all(store::open_optimizer_shards(folder, format));
}

void parse_dcp(const std::string& input) { parse_shards(kDcp, input); }
void parse_flat(const std::string& input) { parse_shards(kFlat, input); }
void parse_legacy(const std::string& input) { parse_shards(kLegacy, input); }
void parse_olmo_core(const std::string& input) { parse_shards(kOlmoCore, input); }

template <const std::filesystem::path& kFile>
std::vector<std::string> shard_seeds() {
  return {read_file(kShards / kFile)};
}

void parse_name(const std::string& input) { (void)store::parse_run_name(input); }

}  // namespace

std::vector<Target> store_targets() {
  return {
      {"manifest", 1 << 13, parse_manifest, manifest_seeds},
      {"checkpoint", 1 << 16, parse_checkpoint, checkpoint_seeds},
      {"safetensors", 1 << 13, parse_safetensors, safetensors_seeds},
      {"log", 1 << 12, parse_log, log_seeds},
      {"event", 1 << 12, parse_event, event_seeds},
      {"wandb_entry", 1 << 12, parse_wandb_entry, wandb_seeds},
      {"instances", 1 << 12, parse_instances, instance_seeds},
      {"pickle", 1 << 9, parse_pickle, pickle_seeds},
      {"torch_file", 1 << 13, parse_torch_file,
       [] { return files_below("tests/data/store/torch", ".pt"); }},
      {"dcp", 1 << 16, parse_dcp, shard_seeds<kDcp>},
      {"flat_parameters", 1 << 14, parse_flat, shard_seeds<kFlat>},
      {"sharded_tensors", 1 << 17, parse_legacy, shard_seeds<kLegacy>},
      {"olmo_core", 1 << 14, parse_olmo_core, shard_seeds<kOlmoCore>},
      {"run_name", 256, parse_name, [] {
         return std::vector<std::string>{"run.db", "a/run.db:20260131T2", "/runs/x", ":", "a:b:c"};
       }}};
}

}  // namespace olmo::fuzz

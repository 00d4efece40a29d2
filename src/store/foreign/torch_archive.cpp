#include "store/foreign/torch_archive.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/text/safe_text.h"

namespace olmo::store {
namespace {

using Kind = PickleValue::Kind;
using Records = std::map<std::string, ZipRecord>;

constexpr std::string_view kPickleName = "data.pkl";
constexpr std::uint64_t kLargestPickle = 16 << 20;
constexpr int kDeepest = 8;                   // a dict's dict's … tensor
constexpr std::size_t kMostValues = 1 << 18;  // a small file can name one value many times
constexpr std::size_t kLongestName = 1 << 10;

/// Classes of torch's storages, and safetensors' words for what lies in them.
constexpr std::array<std::pair<const char*, const char*>, 10> kStorages = {{
    {"FloatStorage", "F32"},
    {"BFloat16Storage", "BF16"},
    {"HalfStorage", "F16"},
    {"DoubleStorage", "F64"},
    {"LongStorage", "I64"},
    {"IntStorage", "I32"},
    {"ShortStorage", "I16"},
    {"CharStorage", "I8"},
    {"ByteStorage", "U8"},
    {"BoolStorage", "BOOL"},
}};

/// A file of torch before 1.6 begins as a pickle does.
void refuse_unzipped(const MappedFile& file, const FilePart& part) {
  constexpr std::string_view kBegin = "\x80\x02";
  std::string begin(std::min<std::uint64_t>(kBegin.size(), part.bytes), '\0');
  copy_mapped(file, part.offset, std::as_writable_bytes(std::span(begin)));
  if (begin != kBegin) return;
  throw Error(ErrorKind::kInput,
              file.path().string() +
                  ": is no zip file, as torch.save writes it from version 1.6 on; save it again: "
                  "`torch.save(torch.load(FILE, weights_only=True), FILE)`");
}

Records read_records(const MappedFile& file, const FilePart& part) {
  refuse_unzipped(file, part);
  return read_zip_directory(file, part);
}

/// What the names of all records begin with: `archive/`.
std::string folder_of(const Records& records, const std::string& where) {
  for (const auto& [name, record] : records) {
    const auto slash = name.find('/');
    if (slash != std::string::npos && name.substr(slash + 1) == kPickleName)
      return name.substr(0, slash + 1);
  }
  throw_damaged(where, "holds no " + std::string(kPickleName) + ", as torch.save writes it");
}

std::string read_pickle(const MappedFile& file, const Records& records, const std::string& folder) {
  const std::string where = file.path().string();
  const auto order = records.find(folder + "byteorder");
  if (order != records.end() && read_zip_record(file, order->first, order->second) == "big")
    throw Error(ErrorKind::kInput, where + ": was saved on a big-endian machine");
  const auto& [name, record] = *records.find(folder + std::string(kPickleName));
  if (record.bytes <= kLargestPickle) return read_zip_record(file, name, record);
  throw Error(ErrorKind::kInput, where + ": its " + std::string(kPickleName) + " has " +
                                     std::to_string(record.bytes) + " bytes, expected at most " +
                                     std::to_string(kLargestPickle));
}

/// Finds the tensors below a value.
class TensorFinder {
 public:
  TensorFinder(std::string where, const Records& records, const std::string& folder)
      : where_(std::move(where)), records_(records), folder_(folder + "data/") {}

  std::vector<TensorEntry> find(const PickleValue& root, const std::string& name) {
    visit(root, name, 0);
    return std::move(found_);
  }

 private:
  [[noreturn]] void refuse(const std::string& name, const std::string& what) const {
    throw Error(ErrorKind::kInput, safe_line(where_ + ": tensor " + name + ": " + what));
  }
  [[noreturn]] void damaged(const std::string& name, const std::string& what) const {
    throw_damaged(where_ + ": tensor " + name, what);
  }

  void visit(const PickleValue& value, const std::string& name, int depth) {
    if (++visited_ > kMostValues || depth > kDeepest || name.size() > kLongestName)
      throw Error(ErrorKind::kInput, where_ + ": the pickle holds more than any checkpoint");
    const auto visit_item = [&](const PickleValue& item, const std::string& key) {
      visit(item, name.empty() ? key : name + "/" + key, depth + 1);
    };
    const auto& items = value.items;
    if (value.kind == Kind::kCall) {
      visit_object(*items[0], items[1]->items, name, depth);
    } else if (value.kind == Kind::kList) {
      for (std::size_t i = 0; i < items.size(); ++i) visit_item(*items[i], std::to_string(i));
    } else if (value.kind == Kind::kDict) {
      for (std::size_t i = 0; i < items.size(); i += 2) {
        const PickleValue& key = *items[i];
        if (key.kind == Kind::kText) visit_item(*items[i + 1], std::string(key.text));
        if (key.kind == Kind::kInteger) visit_item(*items[i + 1], std::to_string(key.integer));
      }
    }
  }

  using Arguments = std::vector<const PickleValue*>;
  static constexpr std::string_view kShards = "torch.distributed._shard.sharded_tensor.api";

  void visit_object(const PickleValue& maker, const Arguments& arguments, const std::string& name,
                    int depth) {
    if (maker.kind != Kind::kName) return;
    const auto& module = maker.items[0]->text;
    if (module != "torch._utils" && module != "torch._tensor") return;
    if (is_parameter(maker, arguments)) {
      visit(*arguments[0], name, depth + 1);
    } else if (is_plain_tensor(maker, arguments)) {
      found_.push_back(entry_of(name, arguments));
    } else if (has_type(maker, arguments, "torch", "Tensor")) {  // with attributes, as FSDP sets
      visit_object(*arguments[0], arguments[2]->items, name, depth);
    } else if (has_type(maker, arguments, kShards, "ShardedTensor")) {
      add_shards(name, *arguments[3]);
    } else {
      refuse(name, "is made by " + std::string(maker.items[1]->text) +
                       ", expected a plain tensor (_rebuild_tensor_v2)");
    }
  }

  static bool is_plain_tensor(const PickleValue& maker, const Arguments& arguments) {
    return maker.is_name("torch._utils", "_rebuild_tensor_v2") && arguments.size() >= 4;
  }

  static bool is_parameter(const PickleValue& maker, const Arguments& arguments) {
    return !arguments.empty() && (maker.is_name("torch._utils", "_rebuild_parameter") ||
                                  maker.is_name("torch._utils", "_rebuild_parameter_with_state"));
  }

  /// Of _rebuild_from_type_v2(function, class, its arguments, state).
  static bool has_type(const PickleValue& maker, const Arguments& arguments,
                       std::string_view module, std::string_view name) {
    return maker.is_name("torch._tensor", "_rebuild_from_type_v2") && arguments.size() == 4 &&
           arguments[1]->is_name(module, name);
  }

  /// The shards that a rank has of a ShardedTensor, whose state is (its shards here, metadata of
  /// the whole, …) (torch/distributed/_shard/sharded_tensor/api.py).
  void add_shards(const std::string& name, const PickleValue& state) {
    if (state.items.size() < 2) damaged(name, "has no shards");
    for (const PickleValue* shard : state.items[0]->items) {
      const PickleValue *tensor = shard->attribute("tensor"),
                        *metadata = shard->attribute("metadata"),
                        *shape = state.items[1]->attribute("size");
      if (tensor == nullptr || metadata == nullptr || shape == nullptr)
        damaged(name, "has a shard that does not say where it lies");
      if (tensor->kind != Kind::kCall ||
          !is_plain_tensor(*tensor->items[0], tensor->items[1]->items))
        refuse(name, "has a shard that is no plain tensor");
      TensorEntry entry = entry_of(name, tensor->items[1]->items);
      entry.shard_of = place_of(name, *shape, *metadata, entry.shape);
      found_.push_back(std::move(entry));
    }
  }

  [[nodiscard]] ShardPlace place_of(const std::string& name, const PickleValue& shape,
                                    const PickleValue& metadata,
                                    const std::vector<std::int64_t>& sizes) const {
    const PickleValue* offsets = metadata.attribute("shard_offsets");
    const auto whole = shape.whole_numbers(),
               begin = offsets == nullptr ? std::nullopt : offsets->whole_numbers();
    if (!whole || !begin) damaged(name, "has a shard that does not say where it lies");
    return required_shard_place(where_ + ": tensor " + name, *whole, *begin, sizes);
  }

  std::vector<std::uint64_t> sizes(const std::string& name, const PickleValue& list) const {
    const auto numbers = list.whole_numbers();
    if (!numbers || std::ranges::any_of(*numbers, [](std::int64_t size) { return size < 0; }))
      damaged(name, "its shape holds something else than whole numbers");
    return {numbers->begin(), numbers->end()};
  }

  /// From (storage, offset, shape, strides, …).
  [[nodiscard]] TensorEntry entry_of(const std::string& name, const Arguments& arguments) const {
    const auto [dtype, record] = storage_of(name, *arguments[0]);
    const auto shape = sizes(name, *arguments[2]), strides = sizes(name, *arguments[3]);
    const std::size_t bytes = checked_tensor_bytes(where_ + ": tensor " + name, *dtype, shape);
    check_order(name, shape, strides);
    const PickleValue& begin = *arguments[1];
    const auto values = record->bytes / dtype->bytes;
    const auto offset = static_cast<std::uint64_t>(begin.integer);
    if (begin.kind != Kind::kInteger || offset > values ||
        bytes > record->bytes - offset * dtype->bytes)
      damaged(name, "lies outside of its storage");
    TensorEntry entry{.name = name,
                      .dtype = dtype->word,
                      .shape = std::vector<std::int64_t>(shape.begin(), shape.end()),
                      .offset = record->offset + offset * dtype->bytes,
                      .bytes = bytes};
    if (bytes == record->bytes) entry.crc32 = record->crc32;
    return entry;
  }

  /// From ("storage", class, key, device, number of values), as the saver calls it.
  [[nodiscard]] std::pair<const TensorDtype*, const ZipRecord*> storage_of(
      const std::string& name, const PickleValue& storage) const {
    const bool is_kept = storage.kind == Kind::kPersistent && storage.items[0]->items.size() == 5;
    if (!is_kept) damaged(name, "has no storage");
    const auto& facts = storage.items[0]->items;
    const auto found = std::ranges::find_if(
        kStorages, [&](const auto& known) { return facts[1]->is_name("torch", known.first); });
    if (found == kStorages.end()) refuse(name, "has a dtype that is not known");
    const auto record = records_.find(folder_ + std::string(facts[2]->text));
    if (record == records_.end()) damaged(name, "its storage is missing");
    return {find_tensor_dtype(found->second), &record->second};
  }

  /// The values are to lie as those of a new tensor.
  void check_order(const std::string& name, const std::vector<std::uint64_t>& shape,
                   const std::vector<std::uint64_t>& strides) const {
    if (shape.size() != strides.size()) damaged(name, "has another number of strides than sizes");
    std::uint64_t expected = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
      if (shape[i] > 1 && strides[i] != expected)
        refuse(name, "its values do not lie one after the other; save it `.contiguous()`");
      expected *= std::max<std::uint64_t>(shape[i], 1);  // as torch does
    }
  }

  std::string where_;
  const Records& records_;
  std::string folder_;
  std::vector<TensorEntry> found_;
  std::size_t visited_ = 0;
};

}  // namespace

TorchArchive::TorchArchive(const MappedFile& file, const FilePart& part)
    : where_(file.path().string()),
      records_(read_records(file, part)),
      folder_(folder_of(records_, where_)),
      pickle_(read_pickle(file, records_, folder_), where_) {}

std::vector<TensorEntry> TorchArchive::tensors(const std::string& root) const {
  return TensorFinder(where_, records_, folder_).find(this->root(), root);
}

}  // namespace olmo::store

#include "data/tokenizer/tokenizer_json.h"

#include <unordered_set>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/json.h"
#include "core/text/text.h"
#include "data/tokenizer/pre_tokens.h"

namespace olmo::data {
namespace {

/// Reads fields of one file and names it in errors.
class TokenizerJsonReader {
 public:
  explicit TokenizerJsonReader(const std::filesystem::path& path)
      : path_(path), root_(read_json_file(path)) {}

  TokenizerFile read() {
    if (!root_.is_object()) fail("the top level must be an object");
    TokenizerFile file;
    file.path = path_;
    file.digest = sha256_file(path_);
    for (const char* key : {"truncation", "padding"}) {
      if (root_.contains(key) && !root_[key].is_null())
        fail(std::string("`") + key + "` must be null: it would change ids");
    }
    file.nfc = read_normalizer();
    file.split = read_pre_tokenizer();
    check_decoder();
    const Json& model = member(root_, "model", "model");
    check_model(model);
    file.ignore_merges = flag(model, "ignore_merges", "model", false);
    read_vocab(model, file);
    read_merges(model, file);
    read_added_tokens(file);
    read_post_processor(file);
    return file;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::kInput, path_.string() + ": " + what);
  }

  /// A value short enough for a message. Printing recurses, so nested values are only named.
  static std::string show(const Json& value) {
    if (value.is_structured()) return value.is_array() ? "a list" : "an object";
    std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (text.size() > 60) text = text.substr(0, 57) + "...";
    return text;
  }

  const Json& member(const Json& object, const char* key, const std::string& name) const {
    if (!object.is_object() || !object.contains(key)) fail("`" + name + "` is missing");
    return object[key];
  }

  std::string kind_of(const Json& part, const std::string& name) const {
    const Json& type = member(part, "type", name + ".type");
    if (!type.is_string()) fail("`" + name + ".type` must be a string, got " + show(type));
    return type.get<std::string>();
  }

  bool read_normalizer() const {
    if (!root_.contains("normalizer") || root_["normalizer"].is_null()) return false;
    const std::string kind = kind_of(root_["normalizer"], "normalizer");
    if (kind != "NFC") fail("`normalizer.type` '" + kind + "' is not supported, only NFC or null");
    return true;
  }

  /// ByteLevel with its own split, or Sequence[Split by cl100k_base's pattern, ByteLevel without].
  SplitPattern read_pre_tokenizer() const {
    const std::string name = "pre_tokenizer";
    const Json& part = member(root_, "pre_tokenizer", name);
    if (kind_of(part, name) != "Sequence") {
      check_byte_level(part, name, true);
      return SplitPattern::kGpt2;
    }
    const std::string list_name = name + ".pretokenizers";
    const Json& list = member(part, "pretokenizers", list_name);
    if (!list.is_array() || list.size() != 2)
      fail("`" + list_name + "` must be two entries, Split and ByteLevel");
    check_split(list[0], list_name + "[0]");
    check_byte_level(list[1], list_name + "[1]", false);
    return SplitPattern::kCl100k;
  }

  void check_byte_level(const Json& part, const std::string& name, bool use_regex) const {
    const std::string kind = kind_of(part, name);
    if (kind != "ByteLevel")
      fail("`" + name + ".type` '" + kind + "' is not supported, only ByteLevel");
    if (flag(part, "add_prefix_space", name, true))
      fail("`" + name + ".add_prefix_space` true is not supported");
    if (flag(part, "use_regex", name, true) != use_regex)
      fail("`" + name + ".use_regex` " + (use_regex ? "false" : "true") + " is not supported here");
  }

  void check_split(const Json& part, const std::string& name) const {
    const std::string kind = kind_of(part, name);
    if (kind != "Split") fail("`" + name + ".type` '" + kind + "' is not supported, only Split");
    const Json& pattern = member(part, "pattern", name + ".pattern");
    const Json& regex = member(pattern, "Regex", name + ".pattern.Regex");
    if (regex != kCl100kPattern) {
      fail("`" + name + ".pattern.Regex` " + show(regex) +
           " is not supported, only that of cl100k_base");
    }
    // Every character is in a match, so keeping matches and dropping what is between is the same.
    const Json& behavior = member(part, "behavior", name + ".behavior");
    const bool invert = flag(part, "invert", name, false);
    if (!(behavior == "Isolated" && !invert) && !(behavior == "Removed" && invert)) {
      fail("`" + name + ".behavior` " + show(behavior) + " with `invert` " +
           (invert ? "true" : "false") + " is not supported, only \"Isolated\" with false");
    }
  }

  void check_decoder() const {
    const std::string kind = kind_of(member(root_, "decoder", "decoder"), "decoder");
    if (kind != "ByteLevel") fail("`decoder.type` '" + kind + "' is not supported, only ByteLevel");
  }

  bool flag(const Json& object, const char* key, const std::string& name, bool absent) const {
    if (!object.contains(key)) return absent;
    if (!object[key].is_boolean())
      fail("`" + name + "." + key + "` must be true or false, got " + show(object[key]));
    return object[key].get<bool>();
  }

  void check_model(const Json& model) const {
    if (!model.is_object()) fail("`model` must be an object");
    if (model.contains("type") && model["type"] != "BPE") {
      fail("`model.type` " + show(model["type"]) + " is not supported, only BPE");
    }
    for (const char* key : {"dropout", "unk_token"}) {
      if (model.contains(key) && !model[key].is_null())
        fail(std::string("`model.") + key + "` must be null");
    }
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (model.contains(key) && !model[key].is_null() && model[key] != "") {
        fail(std::string("`model.") + key + "` must be null, got " + show(model[key]));
      }
    }
    if (flag(model, "byte_fallback", "model", false))
      fail("`model.byte_fallback` true is not supported");
  }

  std::uint32_t id_of(const Json& value, const std::string& name) const {
    if (!value.is_number_integer() || value < 0 || value > kMaxTokenId) {
      fail(name + " must be an integer from 0 to " + std::to_string(kMaxTokenId) + ", got " +
           show(value));
    }
    return value.get<std::uint32_t>();
  }

  void read_vocab(const Json& model, TokenizerFile& file) const {
    const Json& vocab = member(model, "vocab", "model.vocab");
    if (!vocab.is_object()) fail("`model.vocab` must be an object of token to id");
    std::unordered_map<std::uint32_t, std::string> token_of;
    for (const auto& [token, value] : vocab.items()) {
      const std::uint32_t id = id_of(value, "`model.vocab`: the id of " + show(token));
      const auto [entry, is_new] = token_of.try_emplace(id, token);
      if (!is_new) {
        fail("`model.vocab` gives id " + std::to_string(id) + " to both " + show(entry->second) +
             " and " + show(token));
      }
      file.vocab.emplace(token, id);
    }
    const ByteAlphabet alphabet;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      if (byte == 0xC0 || byte == 0xC1 || byte >= 0xF5) continue;  // not in any UTF-8
      const std::string character = alphabet.character(static_cast<std::uint8_t>(byte));
      const auto entry = file.vocab.find(character);
      if (entry == file.vocab.end()) {
        fail("`model.vocab` lacks '" + character + "', the token of byte " + std::to_string(byte));
      }
      file.byte_ids[byte] = entry->second;
    }
  }

  void read_merges(const Json& model, TokenizerFile& file) const {
    const Json& merges = member(model, "merges", "model.merges");
    if (!merges.is_array()) fail("`model.merges` must be a list");
    if (merges.size() >= Bpe::kMaxMerges) {
      fail("`model.merges` must have fewer than " + std::to_string(Bpe::kMaxMerges) +
           " entries, got " + std::to_string(merges.size()));
    }
    for (std::size_t i = 0; i < merges.size(); ++i) {
      const auto [left, right] = sides(merges[i], i);
      const auto id = [&](const std::string& token) {
        const auto entry = file.vocab.find(token);
        if (entry == file.vocab.end()) {
          fail("`model.merges` entry " + std::to_string(i) + " needs the token " + show(token) +
               ", which is not in the vocabulary");
        }
        return entry->second;
      };
      file.merges.push_back({id(left), id(right), id(left + right)});
    }
  }

  /// A merge is "left right" or ["left", "right"].
  std::pair<std::string, std::string> sides(const Json& merge, std::size_t index) const {
    if (merge.is_string()) {
      const auto& text = merge.get_ref<const std::string&>();
      const auto blank = text.find(' ');
      if (blank != std::string::npos && text.find(' ', blank + 1) == std::string::npos) {
        return {text.substr(0, blank), text.substr(blank + 1)};
      }
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      return {merge[0].get<std::string>(), merge[1].get<std::string>()};
    }
    fail("`model.merges` entry " + std::to_string(index) + " must be two tokens, got " +
         show(merge));
  }

  void read_added_tokens(TokenizerFile& file) const {
    if (!root_.contains("added_tokens")) return;
    const Json& list = root_["added_tokens"];
    if (!list.is_array()) fail("`added_tokens` must be a list");
    std::unordered_set<std::string> contents;
    std::unordered_set<std::uint64_t> model_ids;
    for (const auto& [token, id] : file.vocab) model_ids.insert(id);
    // The library ignores the ids that the file gives: a token of the model keeps the model's,
    // others are numbered on.
    std::uint64_t next_id = file.vocab.size();
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string name = "added_tokens[" + std::to_string(i) + "]";
      AddedToken token = read_added_token(list[i], name);
      if (!contents.insert(token.content).second)
        fail("`" + name + "` repeats the content " + show(token.content));
      const auto known = file.vocab.find(token.content);
      const std::uint64_t expected = known != file.vocab.end() ? known->second : next_id++;
      if (known == file.vocab.end() && model_ids.contains(expected)) {
        fail("`" + name + "` would get id " + std::to_string(expected) +
             ", which `model.vocab` has given to another token");
      }
      if (token.id != expected) {
        fail("`" + name + "`, " + show(token.content) + ", must have id " +
             std::to_string(expected) + ", got " + std::to_string(token.id));
      }
      file.added_tokens.push_back(std::move(token));
    }
  }

  AddedToken read_added_token(const Json& entry, const std::string& name) const {
    if (!entry.is_object()) fail("`" + name + "` must be an object");
    const Json& content = member(entry, "content", name + ".content");
    if (!content.is_string() || content == "")
      fail("`" + name + ".content` must be a string, not empty");
    AddedToken token;
    token.id = id_of(member(entry, "id", name + ".id"), "`" + name + ".id`");
    token.content = content.get<std::string>();
    token.special = required_flag(entry, "special", name);
    token.single_word = required_flag(entry, "single_word", name);
    token.lstrip = required_flag(entry, "lstrip", name);
    token.rstrip = required_flag(entry, "rstrip", name);
    token.normalized = required_flag(entry, "normalized", name);
    return token;
  }

  void read_post_processor(TokenizerFile& file) const {
    if (!root_.contains("post_processor") || root_["post_processor"].is_null()) return;
    std::unordered_set<std::uint32_t> known;
    for (const auto& [token, id] : file.vocab) known.insert(id);
    for (const AddedToken& token : file.added_tokens) known.insert(token.id);
    read_processor(root_["post_processor"], "post_processor", known, file);
  }

  void read_processor(const Json& part, const std::string& name,
                      const std::unordered_set<std::uint32_t>& known, TokenizerFile& file) const {
    const std::string kind = kind_of(part, name);
    AddedIds added;
    if (kind == "Sequence") {
      const Json& list = member(part, "processors", name + ".processors");
      if (!list.is_array()) fail("`" + name + ".processors` must be a list");
      for (std::size_t i = 0; i < list.size(); ++i)
        read_processor(list[i], name + ".processors[" + std::to_string(i) + "]", known, file);
    } else if (kind == "TemplateProcessing") {
      read_template(part, name, added);
    } else if (kind == "BertProcessing" || kind == "RobertaProcessing") {
      added.before = {token_and_id(part, "cls", name)};
      added.after = {token_and_id(part, "sep", name)};
    } else if (kind != "ByteLevel") {  // which changes offsets only
      fail("`" + name + ".type` '" + kind +
           "' is not supported, only ByteLevel, TemplateProcessing, BertProcessing, "
           "RobertaProcessing and a Sequence of them");
    }
    if (added.empty()) return;
    for (const auto* ids : {&added.before, &added.after})
      for (const std::uint32_t id : *ids)
        if (!known.contains(id))
          fail("`" + name + "` adds id " + std::to_string(id) + ", which no token has");
    // The library gives the second the parts of the first as texts of their own.
    if (!file.special.empty())
      fail("`" + name + "` is the second that adds tokens, and only one is supported");
    file.special = std::move(added);
  }

  /// `single`: special tokens around the text, `{"Sequence": {"id": "A"}}`.
  void read_template(const Json& part, const std::string& name, AddedIds& added) const {
    const std::string list_name = name + ".single";
    const Json& pieces = member(part, "single", list_name);
    if (!pieces.is_array()) fail("`" + list_name + "` must be a list");
    std::size_t texts = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const std::string piece_name = list_name + "[" + std::to_string(i) + "]";
      const Json& piece = pieces[i];
      if (piece.is_object() && piece.contains("Sequence")) {
        if (member(piece["Sequence"], "id", piece_name + ".Sequence.id") != "A")
          fail("`" + piece_name + "` must be sequence \"A\": there is no other");
        ++texts;
        continue;
      }
      const Json& token = member(piece, "SpecialToken", piece_name + ".SpecialToken");
      const Json& id = member(token, "id", piece_name + ".SpecialToken.id");
      if (!id.is_string()) fail("`" + piece_name + ".SpecialToken.id` must be a string");
      append_special(part, name, id.get<std::string>(), texts == 0 ? added.before : added.after);
    }
    if (texts != 1)
      fail("`" + list_name + "` must have sequence \"A\" once, got it " + std::to_string(texts) +
           " times");
  }

  void append_special(const Json& part, const std::string& name, const std::string& token,
                      std::vector<std::uint32_t>& ids) const {
    const std::string list_name = name + ".special_tokens";
    const Json& tokens = member(part, "special_tokens", list_name);
    if (!tokens.is_object() || !tokens.contains(token))
      fail("`" + list_name + "` lacks " + show(token) + ", which `" + name + ".single` names");
    const std::string ids_name = list_name + "." + token + ".ids";
    const Json& list = member(tokens[token], "ids", ids_name);
    if (!list.is_array()) fail("`" + ids_name + "` must be a list");
    for (const Json& id : list) ids.push_back(id_of(id, "an entry of `" + ids_name + "`"));
  }

  /// `key` is [token, id].
  std::uint32_t token_and_id(const Json& part, const char* key, const std::string& name) const {
    const std::string key_name = name + "." + key;
    const Json& pair = member(part, key, key_name);
    if (!pair.is_array() || pair.size() != 2)
      fail("`" + key_name + "` must be [token, id], got " + show(pair));
    return id_of(pair[1], "the id of `" + key_name + "`");
  }

  bool required_flag(const Json& entry, const char* key, const std::string& name) const {
    member(entry, key, name + "." + key);
    return flag(entry, key, name, false);
  }

  std::filesystem::path path_;
  Json root_;
};

}  // namespace

TokenizerFile read_tokenizer_json(const std::filesystem::path& path) {
  return TokenizerJsonReader(path).read();
}

ByteAlphabet::ByteAlphabet() {
  byte_of_.fill(-1);
  std::uint32_t next = 256;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    code_of_[byte] = printable ? byte : next++;
    byte_of_[code_of_[byte]] = static_cast<int>(byte);
  }
}

std::string ByteAlphabet::character(std::uint8_t byte) const {
  std::string text;
  append_utf8(text, code_of_[byte]);
  return text;
}

std::optional<std::string> ByteAlphabet::bytes_of(std::string_view token) const {
  std::string bytes;
  for (std::size_t at = 0; at < token.size();) {
    const CodePoint point = decode_utf8(token.substr(at, 4));
    if (point.code >= kCodes || byte_of_[point.code] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(byte_of_[point.code]));
    at += point.size;
  }
  return bytes;
}

}  // namespace olmo::data

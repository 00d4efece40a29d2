#include "data/tokenizer/tokenizer.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "core/compute/parallel.h"
#include "core/error.h"
#include "core/text/text.h"
#include "data/tokenizer/pre_token_cache.h"
#include "data/tokenizer/pre_tokens.h"
#include "data/tokenizer/tokenizer_json.h"
#include "data/tokenizer/unicode_table.h"

namespace olmo::data {
namespace {

/// Pre-token starts and byte-level offsets in a document are kept in 32 bits where a pre-token is
/// merged.
constexpr std::size_t kMaxText = 0xFFFFFFF0;

constexpr std::size_t kStarts = PreTokenStarts<Gpt2Split>::kCapacity;

struct Word {
  PreTokenKey key;
  std::uint32_t id = 0;
};

/// What an id stands for.
struct Entry {
  std::string token;  ///< as the file spells it
  std::string bytes;
  bool known = false;
  bool special = false;
};

}  // namespace

/// Working memory of one call of encode; kept for the next one.
struct Workspace {
  PreTokenCache cache;
  LongPreTokenCache long_cache;
  Bpe::Scratch bpe;
  std::array<std::size_t, kStarts> starts;
  std::array<PreTokenKey, kStarts> keys;
  std::array<std::uint32_t, kStarts> lines;
  std::array<std::uint32_t, kStarts + PreTokenCache::kMaxIds> ids;
  std::vector<AddedTokenMatcher::Part> raw_parts, parts;
  std::string normalized;
};

struct Tokenizer::State {
  explicit State(const TokenizerFile& file);

  void encode(std::string_view text, Workspace& work, std::vector<std::uint32_t>& ids) const;
  void encode_part(std::string_view text, Workspace& work, std::vector<std::uint32_t>& ids) const;
  template <typename Starts>
  void encode_stretch(Starts splitter, std::string_view text, const char* readable_end,
                      Workspace& work, std::vector<std::uint32_t>& ids) const;
  void encode_run(const char* text, std::size_t count, const char* readable_end, Workspace& work,
                  std::vector<std::uint32_t>& ids) const;
  const std::vector<std::uint32_t>& encode_unknown(std::string_view bytes, const PreTokenKey* key,
                                                   Workspace& work) const;
  std::unique_ptr<Workspace> borrow() const;
  void give_back(std::unique_ptr<Workspace> work) const;

  UnicodeTable table;
  Digest digest;
  bool nfc;
  AddedIds around;
  SplitPattern split;
  Bpe bpe;
  AddedTokenMatcher raw_matcher, normalized_matcher;
  std::vector<Entry> entries;  ///< by id
  std::unordered_map<std::string, std::uint32_t> id_of;
  std::size_t token_count = 0;
  std::vector<Word> words;  ///< short pre-tokens that are one token: what a new cache begins with
  /// Pre-tokens that are one token although merges do not make it, where the file ignores merges.
  std::unordered_map<std::string, std::uint32_t> whole;

  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<Workspace>> idle;
};

namespace {

std::vector<AddedToken> added_tokens(const UnicodeTable& table, const TokenizerFile& file,
                                     bool normalized) {
  std::vector<AddedToken> tokens;
  for (AddedToken token : file.added_tokens) {
    if (token.normalized != normalized) continue;
    if (normalized && file.nfc) {
      std::string content;
      append_nfc(table, token.content, content);
      token.content = content;
    }
    for (const AddedToken& other : tokens) {
      if (other.content != token.content) continue;
      throw Error(ErrorKind::kInput, file.path.string() + ": `added_tokens`: ids " +
                                         std::to_string(other.id) + " and " +
                                         std::to_string(token.id) +
                                         " have the same content after normalization");
    }
    tokens.push_back(std::move(token));
  }
  return tokens;
}

}  // namespace

Tokenizer::State::State(const TokenizerFile& file)
    : digest(file.digest),
      nfc(file.nfc),
      around(file.special),
      split(file.split),
      bpe(file.byte_ids, file.merges),
      raw_matcher(table, added_tokens(table, file, false)),
      normalized_matcher(table, added_tokens(table, file, true)) {
  const ByteAlphabet alphabet;
  const auto add = [&](std::uint32_t id, const std::string& token, const std::string& spelled,
                       bool special) {
    if (id >= entries.size()) entries.resize(id + std::size_t{1});
    if (!entries[id].known) ++token_count;
    entries[id] = {token, alphabet.bytes_of(spelled).value_or(spelled), true, special};
    id_of[token] = id;
  };
  std::vector<std::pair<std::uint32_t, const std::string*>> by_id;
  for (const auto& [token, id] : file.vocab) {
    add(id, token, token, false);
    by_id.emplace_back(id, &token);
  }
  std::sort(by_id.begin(), by_id.end());
  Bpe::Scratch scratch;
  for (const auto& [id, token] : by_id) {
    const auto bytes = alphabet.bytes_of(*token);
    if (!bytes || bytes->empty()) continue;
    const bool is_short = bytes->size() <= PreTokenKey::kMaxSize;
    if (!is_short && !file.ignore_merges) continue;
    bpe.encode(*bytes, scratch);
    const bool is_itself = scratch.ids.size() == 1 && scratch.ids[0] == id;
    if (!is_itself && file.ignore_merges) whole.emplace(*bytes, id);
    if (is_short && is_itself)
      words.push_back({PreTokenKey::of(bytes->data(), bytes->size(), bytes->size()), id});
  }
  for (const AddedToken& token : file.added_tokens) {
    std::string spelled;
    if (token.normalized && nfc) {
      append_nfc(table, token.content, spelled);
    } else {
      spelled = token.content;
    }
    add(token.id, token.content, spelled, token.special);
  }
}

std::unique_ptr<Workspace> Tokenizer::State::borrow() const {
  {
    const std::lock_guard lock(mutex);
    if (!idle.empty()) {
      auto work = std::move(idle.back());
      idle.pop_back();
      return work;
    }
  }
  auto work = std::make_unique<Workspace>();
  for (const Word& word : words) work->cache.insert(word.key, {&word.id, 1});
  return work;
}

void Tokenizer::State::give_back(std::unique_ptr<Workspace> work) const {
  const std::lock_guard lock(mutex);
  idle.push_back(std::move(work));
}

/// Ids of a pre-token that is not in the first cache; its key is given if it is short.
const std::vector<std::uint32_t>& Tokenizer::State::encode_unknown(std::string_view bytes,
                                                                   const PreTokenKey* key,
                                                                   Workspace& work) const {
  const bool is_memorable = key == nullptr && bytes.size() <= LongPreTokenCache::kMaxSize;
  if (is_memorable) {
    if (const auto* known = work.long_cache.find(bytes)) return *known;
  }
  if (const auto entry = whole.empty() ? whole.end() : whole.find(std::string(bytes));
      entry != whole.end()) {
    work.bpe.ids.assign(1, entry->second);
  } else {
    bpe.encode(bytes, work.bpe);
  }
  if (key != nullptr && work.bpe.ids.size() <= PreTokenCache::kMaxIds)
    work.cache.insert(*key, work.bpe.ids);
  if (is_memorable) work.long_cache.insert(bytes, work.bpe.ids);
  return work.bpe.ids;
}

/// Looks up the pre-tokens that begin at work.starts[0 .. count) and end where the next one begins
/// (starts[count] is the end of the last): first all keys, so that their cache lines are on the way
/// when they are needed.
void Tokenizer::State::encode_run(const char* text, std::size_t count, const char* readable_end,
                                  Workspace& work, std::vector<std::uint32_t>& ids) const {
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t size = work.starts[i + 1] - work.starts[i];
    const char* p = text + work.starts[i];
    if (size > PreTokenKey::kMaxSize) continue;
    work.keys[i] = PreTokenKey::of(p, size, static_cast<std::size_t>(readable_end - p));
    work.lines[i] = static_cast<std::uint32_t>(work.cache.line_of(work.keys[i]));
    work.cache.prefetch(work.lines[i]);
  }
  std::uint32_t* out = work.ids.data();
  const auto flush = [&] {
    ids.insert(ids.end(), work.ids.data(), out);
    out = work.ids.data();
  };
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t size = work.starts[i + 1] - work.starts[i];
    const bool is_short = size <= PreTokenKey::kMaxSize;
    if (is_short) [[likely]] {
      if (const auto* entry = work.cache.find(work.lines[i], work.keys[i])) [[likely]] {
        std::copy(entry->ids.begin(), entry->ids.end(), out);
        out += entry->count;
        continue;
      }
    }
    flush();
    const auto& found =
        encode_unknown({text + work.starts[i], size}, is_short ? &work.keys[i] : nullptr, work);
    ids.insert(ids.end(), found.begin(), found.end());
  }
  flush();
}

template <typename Starts>
void Tokenizer::State::encode_stretch(Starts splitter, std::string_view text,
                                      const char* readable_end, Workspace& work,
                                      std::vector<std::uint32_t>& ids) const {
  std::size_t pending = 0;  // starts carried over: the last one, whose end is not known yet
  while (splitter.more()) {
    const std::size_t found = splitter.next(work.starts, pending);
    const std::size_t count = pending + found;
    if (splitter.more()) {
      if (count == 0) continue;
      encode_run(text.data(), count - 1, readable_end, work, ids);
      work.starts[0] = work.starts[count - 1];
      pending = 1;
    } else {
      work.starts[count] = text.size();
      encode_run(text.data(), count, readable_end, work, ids);
    }
  }
}

void Tokenizer::State::encode_part(std::string_view text, Workspace& work,
                                   std::vector<std::uint32_t>& ids) const {
  work.parts.clear();
  normalized_matcher.split(text, work.parts);
  for (const auto& part : work.parts) {
    const char* end = text.data() + text.size();
    if (part.is_token) {
      ids.push_back(part.id);
    } else if (split == SplitPattern::kCl100k) {
      encode_stretch(PreTokenStarts<Cl100kSplit>(table, part.text, end), part.text, end, work, ids);
    } else {
      encode_stretch(PreTokenStarts<Gpt2Split>(table, part.text, end), part.text, end, work, ids);
    }
  }
}

void Tokenizer::State::encode(std::string_view text, Workspace& work,
                              std::vector<std::uint32_t>& ids) const {
  if (text.size() > kMaxText) {
    throw Error(ErrorKind::kInput, "tokenizer: a text must be below 4 GiB, got " +
                                       std::to_string(text.size()) + " bytes");
  }
  const TextCheck check = check_text(table, text);
  if (check.bad_offset != std::string_view::npos) {
    throw Error(ErrorKind::kInput,
                "tokenizer: the text must be UTF-8, got an ill-formed byte at offset " +
                    std::to_string(check.bad_offset));
  }
  // Real text has four bytes or more to an id; growing in small steps would copy the ids again and
  // again.
  if (const std::size_t wanted = ids.size() + text.size() / 4 + 16; wanted > ids.capacity()) {
    ids.reserve(std::max(wanted, ids.capacity() + ids.capacity() / 2));
  }
  work.raw_parts.clear();
  raw_matcher.split(text, work.raw_parts);
  for (const auto& part : work.raw_parts) {
    if (part.is_token) {
      ids.push_back(part.id);
    } else if (nfc && !check.nfc) {
      work.normalized.clear();
      append_nfc(table, part.text, work.normalized);
      encode_part(work.normalized, work, ids);
    } else {
      encode_part(part.text, work, ids);
    }
  }
}

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  return Tokenizer(std::make_unique<State>(read_tokenizer_json(path)));
}

void Tokenizer::encode(std::string_view text, std::vector<std::uint32_t>& ids,
                       SpecialTokens special) const {
  const auto begin = std::ssize(ids);
  auto work = state_->borrow();
  state_->encode(text, *work, ids);
  state_->give_back(std::move(work));
  if (special == SpecialTokens::kLeftOut) return;
  const auto& [before, after] = state_->around;
  ids.insert(ids.begin() + begin, before.begin(), before.end());
  ids.insert(ids.end(), after.begin(), after.end());
}

std::string Tokenizer::decode(std::span<const std::uint32_t> ids, bool skip_special) const {
  std::string bytes;
  for (const std::uint32_t id : ids) {
    if (id >= state_->entries.size()) continue;
    const Entry& entry = state_->entries[id];
    if (!(skip_special && entry.special)) bytes += entry.bytes;
  }
  return replace_bad_utf8(bytes);
}

std::optional<std::uint32_t> Tokenizer::token_to_id(std::string_view token) const {
  const auto entry = state_->id_of.find(std::string(token));
  return entry == state_->id_of.end() ? std::nullopt : std::optional(entry->second);
}

std::optional<std::string> Tokenizer::id_to_token(std::uint32_t id) const {
  if (id >= state_->entries.size() || !state_->entries[id].known) return std::nullopt;
  return state_->entries[id].token;
}

std::size_t Tokenizer::vocab_size() const { return state_->token_count; }
const Digest& Tokenizer::digest() const { return state_->digest; }

std::vector<std::vector<std::uint32_t>> Tokenizer::encode_batch(
    std::span<const std::string_view> documents, int threads) const {
  std::vector<std::vector<std::uint32_t>> ids(documents.size());
  std::size_t total = 0;
  for (const auto document : documents) total += document.size() + 1;
  // Part p gets the documents whose first byte lies in its share of the text.
  const auto parts = static_cast<std::size_t>(std::max(threads, 1));
  std::vector<std::size_t> first(parts + 1, documents.size());
  std::size_t part = 0;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    while (part < parts && bytes >= total / parts * part + total % parts * part / parts)
      first[part++] = i;
    bytes += documents[i].size() + 1;
  }
  parallel_for(0, static_cast<std::int64_t>(parts), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto p = static_cast<std::size_t>(begin); p < static_cast<std::size_t>(end); ++p) {
      for (std::size_t i = first[p]; i < first[p + 1]; ++i) encode(documents[i], ids[i]);
    }
  });
  return ids;
}

}  // namespace olmo::data

#include "data/token_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/text/text.h"

namespace olmo::data {
namespace {

template <typename Stored>
void encode(std::span<const std::uint32_t> ids, std::string& bytes) {
  bytes.resize(ids.size() * sizeof(Stored));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto value = static_cast<Stored>(ids[i]);
    std::memcpy(bytes.data() + i * sizeof(Stored), &value, sizeof(Stored));
  }
}

bool names_a_file(const std::filesystem::path& output) { return output.extension() == ".npy"; }

std::filesystem::path folder_of(const std::filesystem::path& output) {
  return names_a_file(output) ? output.parent_path() : output;
}

}  // namespace

TokenWriter::TokenWriter(std::filesystem::path output, TokenDtype dtype, std::uint64_t max_tokens,
                         bool overwrite, int threads)
    : output_(std::move(output)),
      dtype_(dtype),
      max_tokens_(max_tokens),
      overwrite_(overwrite),
      threads_(threads),
      folders_(folder_of(output_)) {
  open_next();
}

std::filesystem::path TokenWriter::part_path(std::size_t part) const {
  if (names_a_file(output_)) return output_;
  return output_ / formatted("tokens_%05zu.npy", part);
}

void TokenWriter::open_next() {
  const std::filesystem::path path = part_path(parts_.size());
  if (!overwrite_) {
    require_absent(path);
    require_absent(document_index_path(path));
  }
  files_.push_back(std::make_unique<OutputFile>(path));
  indices_.push_back(std::make_unique<DocumentIndexWriter>(path, threads_));
  parts_.push_back({.path = path, .tokens = 0, .documents = 0, .digest = {}, .index_digest = {}});
  hash_ = Sha256();
}

void TokenWriter::close_current() {
  files_.back()->finish();
  parts_.back().digest = hash_.finish();
  parts_.back().index_digest = indices_.back()->finish();
}

void TokenWriter::append(std::span<const std::uint32_t> ids) {
  dtype_ == TokenDtype::kUint16 ? encode<std::uint16_t>(ids, encoded_)
                                : encode<std::uint32_t>(ids, encoded_);
  hash_.update(encoded_);
  files_.back()->append(encoded_);
  parts_.back().tokens += ids.size();
}

void TokenWriter::append_document(std::span<const std::uint32_t> ids,
                                  const DocumentOrigin& origin) {
  while (!ids.empty()) {
    if (max_tokens_ != 0 && parts_.back().tokens == max_tokens_) {
      if (names_a_file(output_)) {
        throw Error(ErrorKind::kUsage,
                    output_.string() + ": more than the " + std::to_string(max_tokens_) +
                        " tokens that one file may hold; give a folder as output");
      }
      close_current();
      open_next();
    }
    const std::size_t room = max_tokens_ == 0
                                 ? ids.size()
                                 : static_cast<std::size_t>(max_tokens_ - parts_.back().tokens);
    const std::size_t count = std::min(room, ids.size());
    const std::uint64_t begin = parts_.back().tokens;
    append(ids.first(count));
    indices_.back()->add({.tokens = {.begin = begin, .end = begin + count}, .origin = origin});
    ids = ids.subspan(count);
  }
  ++parts_.back().documents;
}

void TokenWriter::finish() {
  close_current();
  if (parts_.back().tokens == 0) {
    parts_.pop_back();
    files_.pop_back();
    indices_.pop_back();
  }
}

void TokenWriter::publish() {
  if (const auto next = part_path(parts_.size());
      !names_a_file(output_) && std::filesystem::exists(next)) {
    throw Error(ErrorKind::kUsage, next.string() +
                                       ": is left from an earlier, longer run and would be taken "
                                       "for a part of this one; remove it");
  }
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const auto& file = files_[i];
    std::error_code error;
    std::filesystem::remove(sidecar_path(file->path()), error);
    if (error)
      throw Error(ErrorKind::kFailure,
                  sidecar_path(file->path()).string() + ": cannot be replaced: " + error.message());
    indices_[i]->publish();
    file->publish();
  }
}

}  // namespace olmo::data

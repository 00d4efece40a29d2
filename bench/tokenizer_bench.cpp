// Encodes a file of documents and prints how long it took. bench/tokenizer.py and
// tests/goldens/check_tokenizer.py run it.
//
//   olmo_tokenizer_bench TOKENIZER.json DOCUMENTS [--threads N] [--warm-up DOCUMENTS]
//                        [--ids OUT] [--decode OUT]
//
// DOCUMENTS holds documents one after the other, each as its size in bytes (uint32, little-endian)
// and its UTF-8 text. --ids writes the ids in the same form (count, then uint32s), --decode the
// decoded texts. One JSON object goes to stdout: wall and processor seconds of encoding alone,
// bytes, ids, and the SHA-256 of all ids as little-endian uint32.

#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/input_file.h"
#include "core/files/output_file.h"
#include "core/hash.h"
#include "data/tokenizer/tokenizer.h"

namespace {

using olmo::data::Tokenizer;

std::vector<std::string_view> read_documents(const std::string& bytes) {
  std::vector<std::string_view> documents;
  for (std::size_t at = 0; at < bytes.size();) {
    std::uint32_t size = 0;
    if (bytes.size() - at >= sizeof size) std::memcpy(&size, bytes.data() + at, sizeof size);
    if (bytes.size() - at < sizeof size + size)
      throw olmo::Error(olmo::ErrorKind::kInput, "the documents end early");
    documents.emplace_back(bytes.data() + at + sizeof size, size);
    at += sizeof size + size;
  }
  return documents;
}

void append_u32(std::string& out, std::size_t value) {
  const auto word = static_cast<std::uint32_t>(value);
  out.append(reinterpret_cast<const char*>(&word), sizeof word);
}

int run(int argc, char** argv) {
  if (argc < 3 || argc % 2 == 0)
    throw olmo::Error(olmo::ErrorKind::kUsage, "usage: see the top of tokenizer_bench.cpp");
  std::map<std::string, std::string> options;
  for (int i = 3; i + 1 < argc; i += 2) options[argv[i]] = argv[i + 1];
  const int threads = options.contains("--threads") ? std::stoi(options["--threads"]) : 1;
  const Tokenizer tokenizer = Tokenizer::load(argv[1]);
  const std::string bytes = olmo::read_file(argv[2]);
  const auto documents = read_documents(bytes);
  if (options.contains("--warm-up")) {
    const std::string other = olmo::read_file(options["--warm-up"]);
    (void)tokenizer.encode_batch(read_documents(other), threads);
  }
  const std::clock_t cpu_start = std::clock();
  const auto start = std::chrono::steady_clock::now();
  const auto ids = tokenizer.encode_batch(documents, threads);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;

  const double cpu_seconds = static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC;

  olmo::Sha256 hash;
  std::size_t text_bytes = 0;
  std::size_t id_count = 0;
  std::string ids_out;
  std::string texts_out;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const std::string_view raw(reinterpret_cast<const char*>(ids[i].data()),
                               ids[i].size() * sizeof(std::uint32_t));
    hash.update(raw);
    text_bytes += documents[i].size();
    id_count += ids[i].size();
    if (options.contains("--ids")) {
      append_u32(ids_out, ids[i].size());
      ids_out += raw;
    }
    if (options.contains("--decode")) {
      const std::string text = tokenizer.decode(ids[i]);
      append_u32(texts_out, text.size());
      texts_out += text;
    }
  }
  if (options.contains("--ids")) olmo::write_file_atomically(options["--ids"], ids_out);
  if (options.contains("--decode")) olmo::write_file_atomically(options["--decode"], texts_out);
  const nlohmann::json result = {{"seconds", elapsed.count()},
                                 {"cpu_seconds", cpu_seconds},
                                 {"bytes", text_bytes},
                                 {"ids", id_count},
                                 {"sha256", hash.finish().hex()}};
  std::printf("%s\n", result.dump().c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const olmo::Error& error) {
    std::fprintf(stderr, "olmo_tokenizer_bench: %s\n", error.what());
    return static_cast<int>(error.kind());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "olmo_tokenizer_bench: %s\n", error.what());
    return 1;
  }
}

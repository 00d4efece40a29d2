#pragma once

#include <span>
#include <string>

#include "store/foreign/tensor_file.h"

namespace olmo::test {

/// Reads the bytes of every tensor of a file, and of every shard.
inline void read_entries(const store::TensorFile& file) {
  std::string bytes;
  for (const auto& entry : file.entries()) {
    bytes.resize(entry.bytes);
    file.read(entry, std::as_writable_bytes(std::span(bytes)));
  }
}

}  // namespace olmo::test

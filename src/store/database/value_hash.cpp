#include "store/database/value_hash.h"

#include <bit>
#include <cmath>

namespace olmo::store {

void add_to(Sha256& hash, const SqlValue& value) {
  const auto* real = std::get_if<double>(&value);
  if (real != nullptr && std::isnan(*real)) return add_to(hash, SqlValue{});
  hash.update_u64(value.index());
  if (const auto* integer = std::get_if<std::int64_t>(&value))
    hash.update_u64(static_cast<std::uint64_t>(*integer));
  if (real != nullptr) hash.update_u64(std::bit_cast<std::uint64_t>(*real));
  if (const auto* text = std::get_if<std::string>(&value))
    hash.update_u64(text->size()).update(*text);
}

}  // namespace olmo::store

#pragma once

#include <vector>

namespace olmo::report {

/// Walks two lists that ascend in `key`: calls `both(a, b)` for equal keys, `alone(item, side)` for
/// the others.
template <typename Item, typename Key, typename Both, typename Alone>
void walk(const std::vector<Item>& a, const std::vector<Item>& b, const Key& key, const Both& both,
          const Alone& alone) {
  auto i = a.begin();
  auto j = b.begin();
  while (i != a.end() || j != b.end()) {
    if (j == b.end() || (i != a.end() && key(*i) < key(*j)))
      alone(*i++, 'A');
    else if (i == a.end() || key(*j) < key(*i))
      alone(*j++, 'B');
    else
      both(*i++, *j++);
  }
}

}  // namespace olmo::report

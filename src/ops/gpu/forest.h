// Attention over a forest on a GPU: the tiles of gpu/attention.h, with keys and queries whose rows
// lie anywhere.
#pragma once

#include "ops/gpu/attention.h"
#include "ops/kernels/forest_tables.h"

namespace olmo::ops::OLMO_ISA {

/// Which keys a thread's queries see, of 64 places: those from first[r] to last[r].
struct ForestSight {
  bool all;
  int first[4], last[4];

  OLMO_INLINE bool sees(int r, int place) const {
    return all || (place >= first[r] && place <= last[r]);
  }
};

/// The keys of a tile of queries: those that all of them see, 64 at a time, and at last the rows of
/// the queries themselves.
template <class T>
struct ForestKeys {
  const ForestGpuTile& queries;
  const std::int32_t* common;
  HeadRows<const T> keys, values;
  int window;
  int begin, end;  ///< the tiles of common keys that a query's window holds, and that of its own

  OLMO_INLINE ForestKeys(const ForestGpuProblem<T>& f, const ForestGpuTile& tile,
                         const HeadRows<const T>& key_head, const HeadRows<const T>& value_head)
      : queries(tile),
        common(f.key_rows + tile.first_key),
        keys(key_head),
        values(value_head),
        window(static_cast<int>(f.window)),
        begin(tile.keys >= window ? (tile.keys - window + 1) / kSide : 0),
        end((tile.keys + kSide - 1) / kSide + 1) {}

  OLMO_INLINE bool is_own(int tile) const { return tile == end - 1; }
  OLMO_INLINE TileRows<T> rows(const HeadRows<const T>& head, int tile) const {
    if (is_own(tile)) return {head, 0, queries.queries, queries.row};
    const int first = tile * kSide, rest = queries.keys - first;
    return {head, 0, rest < kSide ? rest : kSide, common + first};
  }
  OLMO_INLINE ForestSight sight(int tile) const {
    const int first_key = tile * kSide, rest = queries.keys - first_key;
    ForestSight sight{!is_own(tile) && rest >= kSide, {}, {}};
    OLMO_UNROLL for (int r = 0; r < 4; ++r) {
      const int query = query_at(r);
      const bool own = is_own(tile) && query < queries.queries;
      sight.first[r] = own ? queries.run_begin[query] : 0;
      sight.last[r] = own ? query : is_own(tile) ? -1 : rest - 1;
      if (window < kNoWindow && query < queries.queries)
        close_window(query, first_key, own, r, sight);
    }
    return sight;
  }
  /// Leaves out the keys before the window of the query of row r.
  OLMO_INLINE void close_window(int query, int first_key, bool own, int r,
                                ForestSight& sight) const {
    const int run = queries.run_begin[query];
    const int first =
        own ? query - window + 1 : queries.keys + (query - run) - window + 1 - first_key;
    if (first <= sight.first[r]) return;
    sight.first[r] = first;
    sight.all = false;
  }
  /// A query's own keys follow the common ones: the lanes go by the positions of both.
  OLMO_INLINE void add_to_sums(int tile, const ForestSight& sight, const float (&p)[4][4],
                               AttentionShared& shared, float (&sum)[4]) const {
    if (!is_own(tile)) {
      add_lanes(p, sum);
      return;
    }
    keep_weights<float>(p, shared);
    gpu::sync_block();
    const int lane = (gpu::lane() - queries.keys) & 15;
    OLMO_UNROLL for (int r = 0; r < 4; ++r) {
      const int run = sight.last[r] < 0 ? 0 : queries.run_begin[query_at(r)];
      for (int key = run + lane; key <= sight.last[r]; key += 16)
        sum[r] = sum[r] + shared.weights[query_at(r)][key];
    }
  }
};

template <class T>
OLMO_INLINE void attention_forest_tile(const ForestGpuProblem<T>& f, AttentionShared& shared) {
  const std::int64_t dim = f.head_dim;
  const auto chunks = static_cast<unsigned>((dim + kColumns - 1) / kColumns);
  const auto heads = static_cast<unsigned>(f.n_heads);
  const auto block = static_cast<unsigned>(gpu::block_index());
  const int first_column = static_cast<int>(block % chunks) * kColumns;
  const std::int64_t head = block / chunks % heads;
  const ForestGpuTile& tile = f.tiles[block / chunks / heads];
  const std::int64_t stride = (f.n_heads + 2 * f.n_kv_heads) * dim;
  const std::int64_t kv = f.n_heads + shared_head(f, head);
  const HeadShape shape{static_cast<int>(dim),
                        dim % 4 == 0 && gpu::holds_fours(f.qkv) && gpu::holds_fours(f.out)};
  const ForestKeys<T> keys(f, tile, {f.qkv + kv * dim, stride},
                           {f.qkv + (kv + f.n_kv_heads) * dim, stride});
  const TileRows<T> queries{{f.qkv + head * dim, stride}, 0, tile.queries, tile.row};
  attention_rows<T>(
      queries, keys, f.scale, first_column, shape, shared,
      [&](int r) -> T* {
        const int query = query_at(r);
        if (query >= tile.queries) return nullptr;
        return f.out + (tile.row[query] * f.n_heads + head) * dim;
      },
      [](int, float) {});
}

}  // namespace olmo::ops::OLMO_ISA

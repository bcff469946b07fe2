// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/edges.hpp"
#include "ops/simd/columns.hpp"
#include "ops/simd/lanes.hpp"

namespace tessera::ops::TESSERA_ISA {
namespace {

/// Edges ahead whose features are asked for.
constexpr EdgeOffset prefetch_distance = 16;
/// Bytes of a row that are asked for; the hardware follows a longer row by itself.
constexpr std::int64_t max_prefetch_bytes = 512;

template <class T>
TESSERA_INLINE const T* source_of(const SddmmEdges& operands, EdgeOffset edge) {
  return static_cast<const T*>(operands.v) +
         static_cast<std::int64_t>(operands.col_indices[edge]) * operands.v_stride;
}

template <class T>
TESSERA_INLINE void prefetch(const SddmmEdges& operands, EdgeOffset edge) {
  constexpr std::int64_t line = 64;
  if (edge + prefetch_distance >= operands.num_edges) return;
  const auto* const from =
      reinterpret_cast<const char*>(source_of<T>(operands, edge + prefetch_distance));
  const std::int64_t row = operands.features * static_cast<std::int64_t>(sizeof(T));
  const std::int64_t bytes = row < max_prefetch_bytes ? row : max_prefetch_bytes;
  for (std::int64_t at = 0; at < bytes; at += line) __builtin_prefetch(from + at);
}

/// All lanes but the first `skipped`; the rest is 0, even where it was not a number.
template <class S, int N>
TESSERA_INLINE Lanes<S, N> without_first(Lanes<S, N> value, std::int64_t skipped) {
  if constexpr (N == 1) {
    return value;
  } else {
    Lanes<IndexOf<S>, N> lane;
    unrolled<N>([&](auto i) __attribute__((always_inline)) { lane[i.value] = i.value; });
    return lane >= static_cast<IndexOf<S>>(skipped) ? value : Lanes<S, N>{};
  }
}

/// u . v for a few edges of one row at once: they share the loads of u, and their sums do not wait
/// for each other. `width` >= N.
template <class T, int N, int Edges>
TESSERA_INLINE void dots(const T* u, const T* const (&v)[Edges], std::int64_t width,
                         ScalarOf<T> (&result)[Edges]) {
  using S = ScalarOf<T>;
  using Vector = Lanes<S, N>;
  constexpr int ways = 2;
  Vector sums[ways][Edges] = {};
  std::int64_t at = 0;
  for (; at + ways * N <= width; at += ways * N) {
    unrolled<ways>([&](auto way) __attribute__((always_inline)) {
      const Vector left = load_lanes<N>(u + at + way.value * N);
      unrolled<Edges>([&](auto e) __attribute__((always_inline)) {
        sums[way.value][e.value] += left * load_lanes<N>(v[e.value] + at + way.value * N);
      });
    });
  }
  if (at + N <= width) {
    const Vector left = load_lanes<N>(u + at);
    unrolled<Edges>([&](auto e) __attribute__((always_inline)) {
      sums[0][e.value] += left * load_lanes<N>(v[e.value] + at);
    });
    at += N;
  }
  if (at < width) {
    // The last N elements, without those already added.
    const std::int64_t last = width - N;
    const Vector left = without_first<S, N>(load_lanes<N>(u + last), at - last);
    unrolled<Edges>([&](auto e) __attribute__((always_inline)) {
      sums[1][e.value] += left * without_first<S, N>(load_lanes<N>(v[e.value] + last), at - last);
    });
  }
  unrolled<Edges>([&](auto e) __attribute__((always_inline)) {
    result[e.value] = horizontal_sum<S, N>(sums[0][e.value] + sums[1][e.value]);
  });
}

/// All heads of `Edges` consecutive edges of one row.
template <class T, int N, int Edges>
TESSERA_INLINE void dot_edges(const SddmmEdges& operands, const T* u, ScalarOf<T> row_factor,
                              EdgeOffset first) {
  using S = ScalarOf<T>;
  const std::int64_t width = operands.features / operands.heads;
  const T* v[Edges];
  S factor[Edges];
  unrolled<Edges>([&](auto e) __attribute__((always_inline)) {
    prefetch<T>(operands, first + e.value);
    v[e.value] = source_of<T>(operands, first + e.value);
    factor[e.value] = row_factor;
    if (operands.col_scale != nullptr) {
      factor[e.value] *=
          static_cast<const S*>(operands.col_scale)[operands.col_indices[first + e.value]];
    }
  });
  T* const out = static_cast<T*>(operands.edges) + first * operands.edges_stride;
  for (std::int64_t head = 0; head < operands.heads; ++head) {
    const T* at_head[Edges];
    unrolled<Edges>([&](auto e) __attribute__((always_inline)) {
      at_head[e.value] = v[e.value] + head * width;
    });
    S result[Edges];
    dots<T, N, Edges>(u + head * width, at_head, width, result);
    unrolled<Edges>([&](auto e) __attribute__((always_inline)) {
      store_lanes<1>(out + e.value * operands.edges_stride + head,
                     S(result[e.value] * factor[e.value]));
    });
  }
}

template <class T, int N>
void dot_range_of(const SddmmEdges& operands, const RowRange& range) {
  using S = ScalarOf<T>;
  const auto* const row_scale = static_cast<const S*>(operands.row_scale);
  EdgeOffset edge = range.edge_begin;
  for (VertexId row = range.row_begin; row < range.row_end; ++row) {
    const EdgeOffset row_end = operands.row_offsets[row + 1];
    const EdgeOffset end = row_end < range.edge_end ? row_end : range.edge_end;
    const T* const u = static_cast<const T*>(operands.u) + row * operands.u_stride;
    const S factor = row_scale == nullptr ? S(1) : row_scale[row];
    for (; edge + 4 <= end; edge += 4) dot_edges<T, N, 4>(operands, u, factor, edge);
    if (edge + 2 <= end) {
      dot_edges<T, N, 2>(operands, u, factor, edge);
      edge += 2;
    }
    if (edge < end) dot_edges<T, N, 1>(operands, u, factor, edge++);
  }
}

/// The widest vectors that a head's features fill.
template <class T, int N>
TESSERA_INLINE void dot_range_below(const SddmmEdges& operands, const RowRange& range) {
  if (operands.features / operands.heads >= N) {
    dot_range_of<T, N>(operands, range);
  } else if constexpr (N > 1) {
    dot_range_below<T, N / 2>(operands, range);
  } else {
    // No features: every product is empty.
    dot_range_of<T, 1>(operands, range);
  }
}

template <class T>
void dot_range(const SddmmEdges& operands, const RowRange& range) {
  dot_range_below<T, lanes<ScalarOf<T>>>(operands, range);
}

template <class T>
void add_range(const SddmmEdges& operands, const RowRange& range) {
  for_blocks<T, lanes<ScalarOf<T>>, 4>(0, operands.heads, [&]<int N, int V>(Columns<N, V> columns) {
    EdgeOffset edge = range.edge_begin;
    for (VertexId row = range.row_begin; row < range.row_end; ++row) {
      const EdgeOffset row_end = operands.row_offsets[row + 1];
      const EdgeOffset end = row_end < range.edge_end ? row_end : range.edge_end;
      const T* const u = static_cast<const T*>(operands.u) + row * operands.u_stride;
      for (; edge < end; ++edge) {
        const T* const v = source_of<T>(operands, edge);
        T* const out = static_cast<T*>(operands.edges) + edge * operands.edges_stride;
        unrolled<V>([&](auto i) __attribute__((always_inline)) {
          const std::int64_t at = start(columns, i);
          store_lanes<N>(out + at, load_lanes<N>(u + at) + load_lanes<N>(v + at));
        });
      }
    }
  });
}

}  // namespace

const SddmmEdgesTable& sddmm_edges_table() {
  static constexpr SddmmEdgesTable table = {
      {dot_range<double>, dot_range<float>, dot_range<Bfloat16>},
      {add_range<double>, add_range<float>, add_range<Bfloat16>}};
  return table;
}

}  // namespace tessera::ops::TESSERA_ISA

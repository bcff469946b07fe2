// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/edges.hpp"
#include "ops/simd/columns.hpp"
#include "ops/simd/lanes.hpp"

namespace tessera::ops::TESSERA_ISA {
namespace {

/// Edges ahead whose features are asked for.
constexpr EdgeOffset prefetch_distance = 16;

/// Vectors that one turn of the inner loop multiplies. Doubles check gradients, where no time
/// counts: few instances serve them.
template <class T>
constexpr int vectors_per_turn = std::is_same_v<T, double> ? 2 : 8;

template <class T>
TESSERA_INLINE const T* source_of(const SddmmEdges& operands, EdgeOffset edge) {
  return static_cast<const T*>(operands.v) +
         static_cast<std::int64_t>(operands.col_indices[edge]) * operands.v_stride;
}

/// Columns of a dot product: `turns` of `vectors_per_turn` vectors of N lanes, then V more. If they
/// Overlap, the last vector starts earlier, at `last`, and its lanes before `fresh` have been
/// counted already.
template <int N, int V, bool Overlap>
struct DotColumns {
  std::int64_t first;
  std::int64_t turns;
  std::int64_t last;
  std::int64_t fresh;
};

/// Vector I after the turns, with 0 in lanes that were counted already, even where they are not
/// numbers. `row` has been moved on by the turns.
template <class T, int N, int V, bool Overlap, int I>
TESSERA_INLINE Lanes<SumOf<T>, N> load_rest(const T* row, const DotColumns<N, V, Overlap>& columns,
                                            std::integral_constant<int, I>) {
  using S = SumOf<T>;
  if constexpr (Overlap && I == V - 1) {
    Lanes<IndexOf<S>, N> lane;
    unrolled<N>([&](auto i) TESSERA_INLINED { lane[i.value] = i.value; });
    const Lanes<S, N> value = load_lanes<N>(row + columns.last);
    return lane >= static_cast<IndexOf<S>>(columns.fresh) ? value : Lanes<S, N>{};
  } else {
    return load_lanes<N>(row + I * N);
  }
}

template <int Bytes>
TESSERA_INLINE void prefetch_bytes(const void* from) {
  constexpr int line = 64;
  unrolled<(Bytes + line - 1) / line>([&](auto i) TESSERA_INLINED {
    __builtin_prefetch(static_cast<const char*>(from) + i.value * line);
  });
}

/// u . v for consecutive edges of one row, still spread over lanes: the edges share the loads of u,
/// and their sums do not wait for each other.
template <class T, int Edges, int N, int V, bool Overlap>
TESSERA_INLINE void multiply_edges(const SddmmEdges& operands, const T* u, EdgeOffset edge,
                                   const DotColumns<N, V, Overlap>& columns,
                                   Lanes<SumOf<T>, N> (&result)[Edges]) {
  using Vector = Lanes<SumOf<T>, N>;
  constexpr int ways = Edges == 1 ? 4 : 2;
  constexpr int bytes = N * static_cast<int>(sizeof(T));
  const T* v[Edges];
  const T* coming[Edges];
  Vector sums[ways][Edges] = {};
  u += columns.first;
  unrolled<Edges>([&](auto e) TESSERA_INLINED {
    const EdgeOffset here = edge + e.value;
    const EdgeOffset later =
        here + prefetch_distance < operands.num_edges ? here + prefetch_distance : here;
    v[e.value] = source_of<T>(operands, here) + columns.first;
    coming[e.value] = source_of<T>(operands, later) + columns.first;
  });
  for (std::int64_t turn = 0; turn < columns.turns; ++turn) {
    unrolled<vectors_per_turn<T>>([&](auto i) TESSERA_INLINED {
      const Vector left = load_lanes<N>(u + i.value * N);
      unrolled<Edges>([&](auto e) TESSERA_INLINED {
        sums[i.value % ways][e.value] += left * load_lanes<N>(v[e.value] + i.value * N);
      });
    });
    u += vectors_per_turn<T> * N;
    unrolled<Edges>([&](auto e) TESSERA_INLINED {
      prefetch_bytes<vectors_per_turn<T> * bytes>(coming[e.value]);
      coming[e.value] += vectors_per_turn<T> * N;
      v[e.value] += vectors_per_turn<T> * N;
    });
  }
  unrolled<Edges>([&](auto e) TESSERA_INLINED { prefetch_bytes<V * bytes>(coming[e.value]); });
  unrolled<V>([&](auto i) TESSERA_INLINED {
    const Vector left = load_rest(u, columns, i);
    unrolled<Edges>([&](auto e) TESSERA_INLINED {
      sums[i.value % ways][e.value] += left * load_rest(v[e.value], columns, i);
    });
  });
  unrolled<Edges>([&](auto e) TESSERA_INLINED {
    result[e.value] = sums[0][e.value] + sums[1][e.value];
    if constexpr (ways == 4) result[e.value] += sums[2][e.value] + sums[3][e.value];
  });
}

/// The dot products of all edges of a range.
template <class T, int N, int V, bool Overlap>
void dot_edges(const SddmmEdges& operands, const RowRange& range, DotColumns<N, V, Overlap> columns,
               SumOf<T>* sums) {
  using S = SumOf<T>;
  EdgeOffset edge = range.edge_begin;
  for (VertexId row = range.row_begin; row < range.row_end; ++row) {
    const EdgeOffset row_end = operands.row_offsets[row + 1];
    const EdgeOffset end = row_end < range.edge_end ? row_end : range.edge_end;
    const T* const u = static_cast<const T*>(operands.u) + row * operands.u_stride;
    for (; edge + 4 <= end; edge += 4) {
      Lanes<S, N> products[4];
      multiply_edges(operands, u, edge, columns, products);
      four_horizontal_sums<S, N>(products, sums + (edge - range.edge_begin));
    }
    for (; edge < end; ++edge) {
      Lanes<S, N> products[1];
      multiply_edges(operands, u, edge, columns, products);
      sums[edge - range.edge_begin] = horizontal_sum<S, N>(products[0]);
    }
  }
}

/// The same for columns [begin, end), with the widest vectors that they fill.
template <class T, int N>
void dot_columns(const SddmmEdges& operands, const RowRange& range, std::int64_t begin,
                 std::int64_t end, SumOf<T>* sums) {
  if constexpr (N > 1) {
    if (end - begin < N) return dot_columns<T, N / 2>(operands, range, begin, end, sums);
  }
  const std::int64_t turns = (end - begin) / (vectors_per_turn<T> * N);
  const std::int64_t rest = begin + turns * vectors_per_turn<T> * N;
  const auto vectors = static_cast<int>((end - rest + N - 1) / N);
  const std::int64_t beyond = rest + vectors * N - end;
  // Fewer columns than a full vector fill at most two of half its width.
  constexpr int max_vectors = N == lanes<SumOf<T>> ? vectors_per_turn<T> : 2;
  unrolled<max_vectors + 1>([&](auto v) TESSERA_INLINED {
    if (vectors != v.value) return;
    if (beyond == 0) {
      dot_edges<T>(operands, range, DotColumns<N, v.value, false>{begin, turns, 0, 0}, sums);
    } else if constexpr (v.value > 0 && N > 1) {
      dot_edges<T>(operands, range,
                   DotColumns<N, v.value, true>{begin, turns, end - N - rest, beyond}, sums);
    }
  });
}

/// Multiplies results with the scales of their edges.
template <class T>
void scale_edges(const SddmmEdges& operands, const RowRange& range, SumOf<T>* sums) {
  using S = SumOf<T>;
  if (operands.row_scale != nullptr) {
    const auto* const row_scale = static_cast<const S*>(operands.row_scale);
    EdgeOffset edge = range.edge_begin;
    for (VertexId row = range.row_begin; row < range.row_end; ++row) {
      const EdgeOffset row_end = operands.row_offsets[row + 1];
      const EdgeOffset end = row_end < range.edge_end ? row_end : range.edge_end;
      for (; edge < end; ++edge) sums[edge - range.edge_begin] *= row_scale[row];
    }
  }
  if (operands.col_scale != nullptr) {
    const auto* const col_scale = static_cast<const S*>(operands.col_scale);
    const VertexId* const cols = operands.col_indices + range.edge_begin;
    for (EdgeOffset i = 0; i < range.edge_end - range.edge_begin; ++i) {
      sums[i] *= col_scale[cols[i]];
    }
  }
}

template <class T>
void dot_range(const SddmmEdges& operands, const RowRange& range) {
  using S = SumOf<T>;
  const std::int64_t width = operands.features / operands.heads;
  S buffer[max_edges_per_range];
  for (std::int64_t head = 0; head < operands.heads; ++head) {
    T* const to = static_cast<T*>(operands.edges) + head + range.edge_begin * operands.edges_stride;
    S* sums = buffer;
    bool in_place = false;
    if constexpr (std::is_same_v<T, S>) {
      in_place = operands.edges_stride == 1;
      if (in_place) sums = to;
    }
    dot_columns<T, lanes<S>>(operands, range, head * width, (head + 1) * width, sums);
    scale_edges<T>(operands, range, sums);
    if (in_place) continue;
    for (EdgeOffset i = 0; i < range.edge_end - range.edge_begin; ++i) {
      store_lanes<1>(to + i * operands.edges_stride, sums[i]);
    }
  }
}

template <class T>
void add_range(const SddmmEdges& operands, const RowRange& range) {
  for_blocks<T, lanes<SumOf<T>>, 4>(0, operands.heads, [&]<int N, int V>(Columns<N, V> columns) {
    EdgeOffset edge = range.edge_begin;
    for (VertexId row = range.row_begin; row < range.row_end; ++row) {
      const EdgeOffset row_end = operands.row_offsets[row + 1];
      const EdgeOffset end = row_end < range.edge_end ? row_end : range.edge_end;
      const T* const u = static_cast<const T*>(operands.u) + row * operands.u_stride;
      for (; edge < end; ++edge) {
        const T* const v = source_of<T>(operands, edge);
        T* const out = static_cast<T*>(operands.edges) + edge * operands.edges_stride;
        unrolled<V>([&](auto i) TESSERA_INLINED {
          const std::int64_t at = start(columns, i);
          store_lanes<N>(out + at, load_lanes<N>(u + at) + load_lanes<N>(v + at));
        });
      }
    }
  });
}

}  // namespace

const ByStorage<SddmmFunctions>& sddmm_edges_table() {
  static constexpr ByStorage<SddmmFunctions> table = {{dot_range<double>, add_range<double>},
                                                      {dot_range<float>, add_range<float>},
                                                      {dot_range<Bfloat16>, add_range<Bfloat16>}};
  return table;
}

}  // namespace tessera::ops::TESSERA_ISA

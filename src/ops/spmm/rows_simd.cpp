// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/lanes.hpp"
#include "ops/spmm/rows.hpp"

namespace tessera::ops::TESSERA_ISA {
namespace {

/// Edges ahead whose features are asked for while an edge is added: enough to hide memory, few
/// enough to stay in the nearest cache.
constexpr EdgeOffset prefetch_distance = 8;

/// Columns of one register block: V vectors of N lanes, side by side from `first`, but none starts
/// after `last`. So the last one or two may overlap their neighbours and compute the same numbers
/// twice, instead of needing a mask.
template <int N, int V>
struct Columns {
  std::int64_t first;
  std::int64_t last;
};

/// Up to this many vectors a block has as many as it needs; beyond, an even number. It keeps the
/// number of instances down.
constexpr int odd_vectors = 8;

template <int N, int V, int I>
TESSERA_INLINE std::int64_t start(const Columns<N, V>& columns, std::integral_constant<int, I>) {
  if (I == V - 1) return columns.last;
  const std::int64_t here = columns.first + I * N;
  return I == V - 2 && V > odd_vectors && here > columns.last ? columns.last : here;
}

/// The weight of every edge of a range, in the precision of the sums.
template <class T>
class Weights {
  using S = ScalarOf<T>;

 public:
  /// Weights from the first edge of the range on, or null if all are 1.
  const S* of_sum(const SpmmRows& rows, const RowRange& range) {
    const auto* const col_scale = static_cast<const S*>(rows.col_scale);
    if (rows.values == nullptr && col_scale == nullptr) return nullptr;
    const bool same_type = rows.values_are_stored ? std::is_same_v<T, S> : sizeof(S) == 4;
    if (col_scale == nullptr && same_type && rows.positions == nullptr && rows.value_stride == 1) {
      return static_cast<const S*>(rows.values) + range.edge_begin;
    }
    fill(rows, range);
    return buffer_;
  }

  /// The same with row scale and sign inside: the best product depends on their signs.
  const S* of_best(const SpmmRows& rows, const RowRange& range) {
    fill(rows, range);
    const auto* const row_scale = static_cast<const S*>(rows.row_scale);
    const S sign = static_cast<S>(rows.sign);
    EdgeOffset edge = range.edge_begin;
    for (VertexId row = range.row_begin; row < range.row_end; ++row) {
      const S factor = row_scale == nullptr ? sign : sign * row_scale[row];
      const EdgeOffset row_end = rows.row_offsets[row + 1];
      const EdgeOffset end = row_end < range.edge_end ? row_end : range.edge_end;
      for (; edge < end; ++edge) buffer_[edge - range.edge_begin] *= factor;
    }
    return buffer_;
  }

 private:
  void fill(const SpmmRows& rows, const RowRange& range) {
    const EdgeOffset count = range.edge_end - range.edge_begin;
    if (rows.values == nullptr) {
      for (EdgeOffset i = 0; i < count; ++i) buffer_[i] = 1;
    } else if (rows.values_are_stored) {
      fill_values(static_cast<const T*>(rows.values), rows, range);
    } else {
      fill_values(static_cast<const float*>(rows.values), rows, range);
    }
    if (rows.col_scale == nullptr) return;
    const auto* const col_scale = static_cast<const S*>(rows.col_scale);
    const VertexId* const cols = rows.col_indices + range.edge_begin;
    for (EdgeOffset i = 0; i < count; ++i) buffer_[i] *= col_scale[cols[i]];
  }

  template <class Value>
  void fill_values(const Value* values, const SpmmRows& rows, const RowRange& range) {
    const EdgeOffset count = range.edge_end - range.edge_begin;
    for (EdgeOffset i = 0; i < count; ++i) {
      const EdgeOffset edge = range.edge_begin + i;
      const EdgeOffset at = rows.positions == nullptr ? edge : rows.positions[edge];
      buffer_[i] = static_cast<S>(load_lanes<1>(values + at * rows.value_stride));
    }
  }

  S buffer_[max_edges_per_range];
};

/// Asks for the features of a coming edge.
template <class T, int N, int V>
TESSERA_INLINE void prefetch(const SpmmRows& rows, const T* x, EdgeOffset edge,
                             const Columns<N, V>& columns) {
  constexpr int line = 64;
  constexpr int lines = (N * V * static_cast<int>(sizeof(T)) + line - 1) / line;
  const EdgeOffset coming =
      edge + prefetch_distance < rows.num_edges ? edge + prefetch_distance : edge;
  const auto* const from = reinterpret_cast<const char*>(
      x + static_cast<std::int64_t>(rows.col_indices[coming]) * rows.x_stride + columns.first);
  unrolled<lines>([&](auto i) __attribute__((always_inline)) {
    __builtin_prefetch(from + i.value * line);
  });
}

/// Sums `weight * x` over edges [begin, end) of one row in registers (`weights` starts
/// at edge `base`):
/// V vectors, for each of which `Ways` sums run side by side, since one alone would wait for its
/// own last addition.
template <class T, int N, int V, bool Weighted>
TESSERA_INLINE void sum_edges(const SpmmRows& rows, const Columns<N, V>& columns,
                              const ScalarOf<T>* weights, EdgeOffset base, EdgeOffset begin,
                              EdgeOffset end, Lanes<ScalarOf<T>, N> (&total)[V]) {
  using Vector = Lanes<ScalarOf<T>, N>;
  constexpr int ways = V <= 2 ? 4 : V <= 4 ? 2 : 1;
  const T* const x = static_cast<const T*>(rows.x);
  Vector sums[ways][V];
  unrolled<ways>([&](auto way) __attribute__((always_inline)) {
    unrolled<V>([&](auto v)
                    __attribute__((always_inline)) { sums[way.value][v.value] = Vector{}; });
  });
  const auto add = [&](EdgeOffset edge, auto way) __attribute__((always_inline)) {
    const T* const source = x + static_cast<std::int64_t>(rows.col_indices[edge]) * rows.x_stride;
    prefetch<T, N, V>(rows, x, edge, columns);
    unrolled<V>([&](auto v) __attribute__((always_inline)) {
      const Vector features = load_lanes<N>(source + start(columns, v));
      if constexpr (Weighted) {
        sums[way.value][v.value] += weights[edge - base] * features;
      } else {
        sums[way.value][v.value] += features;
      }
    });
  };
  EdgeOffset edge = begin;
  for (; edge + ways <= end; edge += ways) {
    unrolled<ways>([&](auto way) __attribute__((always_inline)) { add(edge + way.value, way); });
  }
  if constexpr (ways > 1) {
    for (; edge < end; ++edge) add(edge, std::integral_constant<int, 0>{});
  }
  unrolled<V>([&](auto v) __attribute__((always_inline)) {
    if constexpr (ways == 4) {
      total[v.value] =
          (sums[0][v.value] + sums[1][v.value]) + (sums[2][v.value] + sums[3][v.value]);
    } else if constexpr (ways == 2) {
      total[v.value] = sums[0][v.value] + sums[1][v.value];
    } else {
      total[v.value] = sums[0][v.value];
    }
  });
}

/// Adds a chain's sums to those of the chains before it.
template <int Count, class S>
__attribute__((noinline)) void fold(double (&sums)[Count], const S (&chain)[Count], bool first) {
  for (int i = 0; i < Count; ++i) {
    sums[i] = (first ? 0 : sums[i]) + static_cast<double>(chain[i]);
  }
}

/// One block of columns for all rows of a range. Rows longer than `max_chain` add chains of it in
/// fp64.
template <class T, int N, int V, bool Weighted>
void sum_block(const SpmmRows& rows, const RowRange& range, const ScalarOf<T>* weights,
               Columns<N, V> columns) {
  using S = ScalarOf<T>;
  using Vector = Lanes<S, N>;
  const auto* const row_scale = static_cast<const S*>(rows.row_scale);
  const bool to_slot = range.slot >= 0;
  EdgeOffset begin = range.edge_begin;
  for (VertexId row = range.row_begin; row < range.row_end; ++row) {
    const EdgeOffset end = to_slot ? range.edge_end : rows.row_offsets[row + 1];
    Vector total[V];
    double sums[N * V];
    bool folded = false;
    for (EdgeOffset chain = begin;; chain += max_chain) {
      const EdgeOffset chain_end = chain + max_chain < end ? chain + max_chain : end;
      sum_edges<T, N, V, Weighted>(rows, columns, weights, range.edge_begin, chain, chain_end,
                                   total);
      if (chain_end == end && !folded && !to_slot) break;
      S chain_sums[N * V];
      __builtin_memcpy(chain_sums, total, sizeof chain_sums);
      fold(sums, chain_sums, !folded);
      folded = true;
      if (chain_end == end) break;
    }
    if (to_slot) {
      double* const slot = rows.slots + range.slot * rows.slot_stride;
      unrolled<V>([&](auto v) {
        __builtin_memcpy(slot + start(columns, v), sums + v.value * N, N * sizeof(double));
      });
      return;
    }
    if (folded) {
      S rounded[N * V];
      for (int i = 0; i < N * V; ++i) rounded[i] = static_cast<S>(sums[i]);
      __builtin_memcpy(total, rounded, sizeof rounded);
    }
    const bool empty = begin == end;
    const S scale = row_scale == nullptr || empty ? S(1) : row_scale[row];
    const S divisor = rows.mean && !empty ? static_cast<S>(end - begin) : S(1);
    T* const y = static_cast<T*>(rows.y) + row * rows.y_stride;
    unrolled<V>([&](auto v) __attribute__((always_inline)) {
      Vector value = total[v.value] * scale;
      if (rows.mean) value /= divisor;
      store_lanes<N>(y + start(columns, v), value);
    });
    begin = end;
  }
}

/// The better of two products, by the rules of the reference: the larger wins, not-a-number beats
/// all numbers, and the earlier wins a tie.
template <class Vector>
TESSERA_INLINE auto beats(Vector challenger, Vector holder) {
  return (challenger > holder) | ((challenger != challenger) & (holder == holder));
}

/// One block of columns of max (or min, with the sign in the weights) for all rows of a range.
template <class T, int N, int V, bool Winners>
void best_block(const SpmmRows& rows, const RowRange& range, const ScalarOf<T>* weights,
                Columns<N, V> columns) {
  using S = ScalarOf<T>;
  using Vector = Lanes<S, N>;
  using Indices = Lanes<IndexOf<S>, N>;
  const T* const x = static_cast<const T*>(rows.x);
  const S sign = static_cast<S>(rows.sign);
  EdgeOffset begin = range.edge_begin;
  for (VertexId row = range.row_begin; row < range.row_end; ++row) {
    const EdgeOffset end = range.slot >= 0 ? range.edge_end : rows.row_offsets[row + 1];
    Vector best[V];
    Indices winner[V];
    const auto product = [&](EdgeOffset edge, auto v) __attribute__((always_inline)) {
      const T* const source = x + static_cast<std::int64_t>(rows.col_indices[edge]) * rows.x_stride;
      return Vector(weights[edge - range.edge_begin] * load_lanes<N>(source + start(columns, v)));
    };
    unrolled<V>([&](auto v) __attribute__((always_inline)) {
      best[v.value] = Vector{};
      winner[v.value] = Indices{} - 1;
      if (begin < end) {
        best[v.value] = product(begin, v);
        winner[v.value] = Indices{} + static_cast<IndexOf<S>>(rows.col_indices[begin]);
      }
    });
    for (EdgeOffset edge = begin + 1; edge < end; ++edge) {
      prefetch<T, N, V>(rows, x, edge, columns);
      const Indices col = Indices{} + static_cast<IndexOf<S>>(rows.col_indices[edge]);
      unrolled<V>([&](auto v) __attribute__((always_inline)) {
        const Vector candidate = product(edge, v);
        const auto wins = beats(candidate, best[v.value]);
        best[v.value] = wins ? candidate : best[v.value];
        if constexpr (Winners) winner[v.value] = wins ? col : winner[v.value];
      });
    }
    unrolled<V>([&](auto v) __attribute__((always_inline)) {
      const std::int64_t at = start(columns, v);
      if (range.slot < 0) {
        store_lanes<N>(static_cast<T*>(rows.y) + row * rows.y_stride + at,
                       Vector(best[v.value] * sign));
      } else {
        S values[N];
        __builtin_memcpy(values, &best[v.value], sizeof values);
        double* const slot = rows.slots + range.slot * rows.slot_stride + at;
        for (int i = 0; i < N; ++i) slot[i] = static_cast<double>(values[i]);
      }
      if constexpr (Winners) {
        VertexId* const to = range.slot < 0
                                 ? rows.winners + row * rows.winners_stride + at
                                 : rows.slot_winners + range.slot * rows.slot_stride + at;
        IndexOf<S> indices[N];
        __builtin_memcpy(indices, &winner[v.value], sizeof indices);
        for (int i = 0; i < N; ++i) to[i] = static_cast<VertexId>(indices[i]);
      }
    });
    begin = end;
  }
}

/// Calls `run.template operator()<N, V>(columns)` for blocks that cover the columns, all of the
/// same N and nearly the same V, at most `MaxVectors`.
template <int N, int MaxVectors, class Run>
TESSERA_INLINE void for_blocks_of(std::int64_t begin, std::int64_t end, Run&& run) {
  const std::int64_t vectors = (end - begin + N - 1) / N;
  const std::int64_t blocks = (vectors + MaxVectors - 1) / MaxVectors;
  std::int64_t done = 0;
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t upto = vectors * (block + 1) / blocks;
    const std::int64_t first = begin + done * N;
    const std::int64_t last = upto == vectors ? end - N : begin + (upto - 1) * N;
    const auto count = static_cast<int>(upto - done);
    unrolled<MaxVectors>([&](auto i) __attribute__((always_inline)) {
      constexpr int v = i.value + 1;
      if constexpr (v <= odd_vectors || v % 2 == 0) {
        if (count == v || (v > odd_vectors && count == v - 1)) {
          run.template operator()<N, v>(Columns<N, v>{first, last});
        }
      }
    });
    done = upto;
  }
}

/// The same for any width: below a full vector, two narrower ones that may overlap.
template <class T, int N, int MaxVectors, class Run>
TESSERA_INLINE void for_blocks(std::int64_t begin, std::int64_t end, Run&& run) {
  if (end - begin >= N) {
    for_blocks_of<N, (N == lanes<ScalarOf<T>> ? MaxVectors : 2)>(begin, end, run);
  } else if constexpr (N > 1) {
    for_blocks<T, N / 2, MaxVectors>(begin, end, run);
  }
}

template <class T>
void sum_rows(const SpmmRows& rows, const RowRange& range, std::int64_t begin, std::int64_t end) {
  Weights<T> storage;
  const ScalarOf<T>* const weights = storage.of_sum(rows, range);
  for_blocks<T, lanes<ScalarOf<T>>, accumulator_registers>(
      begin, end, [&]<int N, int V>(Columns<N, V> columns) {
        if (weights == nullptr) {
          sum_block<T, N, V, false>(rows, range, weights, columns);
        } else {
          sum_block<T, N, V, true>(rows, range, weights, columns);
        }
      });
}

template <class T>
void best_rows(const SpmmRows& rows, const RowRange& range, std::int64_t begin, std::int64_t end) {
  Weights<T> storage;
  const ScalarOf<T>* const weights = storage.of_best(rows, range);
  for_blocks<T, lanes<ScalarOf<T>>, accumulator_registers / 4>(
      begin, end, [&]<int N, int V>(Columns<N, V> columns) {
        if (rows.winners == nullptr) {
          best_block<T, N, V, false>(rows, range, weights, columns);
        } else {
          best_block<T, N, V, true>(rows, range, weights, columns);
        }
      });
}

}  // namespace

const SpmmRowsTable& spmm_rows_table() {
  static constexpr SpmmRowsTable table = {
      {sum_rows<double>, sum_rows<float>, sum_rows<Bfloat16>},
      {best_rows<double>, best_rows<float>, best_rows<Bfloat16>}};
  return table;
}

}  // namespace tessera::ops::TESSERA_ISA

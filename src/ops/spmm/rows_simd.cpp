// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "ops/simd/columns.hpp"
#include "ops/simd/lanes.hpp"
#include "ops/spmm/edge_weights.hpp"
#include "ops/spmm/rows.hpp"

namespace tessera::ops::TESSERA_ISA {
namespace {

/// Edges ahead whose features are asked for while an edge is added: enough to hide memory, few
/// enough to stay in the nearest cache.
constexpr EdgeOffset prefetch_distance = 16;

/// What a row adds up.
enum class Terms {
  plain,          ///< x of each source
  weighted,       ///< weight * x of each source
  won,            ///< weight * x where the element was won by this row; rows are sources here
  edge_features,  ///< the row of x of each edge
};

/// The row of x that an edge adds.
template <class T, Terms terms>
TESSERA_INLINE const T* source_of(const SpmmRows& rows, EdgeOffset edge) {
  const T* const x = static_cast<const T*>(rows.x);
  if constexpr (terms == Terms::edge_features) {
    return x + (rows.positions == nullptr ? edge : rows.positions[edge]) * rows.x_stride;
  } else {
    return x + static_cast<std::int64_t>(rows.col_indices[edge]) * rows.x_stride;
  }
}

/// Asks for the features of a coming edge, of this row or a later one.
template <class T, Terms terms, int N, int V>
TESSERA_INLINE void prefetch(const SpmmRows& rows, EdgeOffset edge, const Columns<N, V>& columns) {
  constexpr int line = 64;
  constexpr int lines = (N * V * static_cast<int>(sizeof(T)) + line - 1) / line;
  const EdgeOffset coming =
      edge + prefetch_distance < rows.num_edges ? edge + prefetch_distance : edge;
  const auto* const from =
      reinterpret_cast<const char*>(source_of<T, terms>(rows, coming) + columns.first);
  unrolled<lines>([&](auto i) TESSERA_INLINED { __builtin_prefetch(from + i.value * line); });
}

/// Where the results of a row go, kept in registers: a compiler has to assume that a store changes
/// what `rows` says.
template <class T>
struct OutputRow {
  T* y = nullptr;
  SumOf<T>* wide = nullptr;  ///< null: results are stored as x is
};

template <class T>
TESSERA_INLINE OutputRow<T> output_row(const SpmmRows& rows, VertexId row) {
  using S = SumOf<T>;
  const std::int64_t place = static_cast<std::int64_t>(row) * rows.y_stride;
  OutputRow<T> output{static_cast<T*>(rows.y) + place};
  if constexpr (!std::is_same_v<S, T>) {
    if (rows.y_is_wide) output.wide = static_cast<S*>(rows.y) + place;
  }
  return output;
}

/// Stores the values of a row from column `at` on.
template <class T, class Vector>
TESSERA_INLINE void store(const OutputRow<T>& output, std::int64_t at, Vector values) {
  using S = SumOf<T>;
  constexpr int N = static_cast<int>(sizeof(Vector) / sizeof(S));
  if constexpr (!std::is_same_v<S, T>) {
    if (output.wide != nullptr) return store_lanes<N>(output.wide + at, values);
  }
  store_lanes<N>(output.y + at, values);
}

/// `features` where this row won the element, else 0.
template <class S, int N>
TESSERA_INLINE Lanes<S, N> keep_won(const VertexId* winners, VertexId row, Lanes<S, N> features) {
  if constexpr (N == 1) {
    return *winners == row ? features : S(0);
  } else {
    Lanes<VertexId, N> won_by;
    __builtin_memcpy(&won_by, winners, sizeof won_by);
    const auto index = __builtin_convertvector(won_by, Lanes<IndexOf<S>, N>);
    return index == static_cast<IndexOf<S>>(row) ? features : Lanes<S, N>{};
  }
}

/// The edges [begin, end) of one row. `weights` starts at the edge `base`.
template <class S>
struct RowEdges {
  VertexId row;
  EdgeOffset begin;
  EdgeOffset end;
  EdgeOffset base;
  const S* weights;
};

/// Sums the terms of some edges in registers: V vectors, for each of which a few sums run side by
/// side where V is small, since one alone would wait for its own last addition.
template <class T, Terms terms, int N, int V>
TESSERA_INLINE void sum_edges(const SpmmRows& rows, const Columns<N, V>& columns,
                              const RowEdges<SumOf<T>>& edges, Lanes<SumOf<T>, N> (&total)[V]) {
  using S = SumOf<T>;
  using Vector = Lanes<S, N>;
  constexpr int ways = V <= 2 ? 4 : V <= 4 ? 2 : 1;
  Vector sums[ways][V];
  unrolled<ways>([&](auto way) TESSERA_INLINED {
    unrolled<V>([&](auto v) TESSERA_INLINED { sums[way.value][v.value] = Vector{}; });
  });
  const auto add = [&](EdgeOffset edge, auto way) TESSERA_INLINED {
    const T* const source = source_of<T, terms>(rows, edge);
    prefetch<T, terms>(rows, edge, columns);
    unrolled<V>([&](auto v) TESSERA_INLINED {
      Vector features = load_lanes<N>(source + start(columns, v));
      if constexpr (terms == Terms::won) {
        features = keep_won<S, N>(
            rows.won_by + rows.col_indices[edge] * rows.won_by_stride + start(columns, v),
            edges.row, features);
      }
      if constexpr (terms == Terms::weighted || terms == Terms::won) {
        sums[way.value][v.value] += edges.weights[edge - edges.base] * features;
      } else {
        sums[way.value][v.value] += features;
      }
    });
  };
  EdgeOffset edge = edges.begin;
  for (; edge + ways <= edges.end; edge += ways) {
    unrolled<ways>([&](auto way) TESSERA_INLINED { add(edge + way.value, way); });
  }
  if constexpr (ways > 1) {
    for (; edge < edges.end; ++edge) add(edge, std::integral_constant<int, 0>{});
  }
  unrolled<V>([&](auto v) TESSERA_INLINED {
    total[v.value] = sums[0][v.value];
    if constexpr (ways >= 2) total[v.value] += sums[1][v.value];
    if constexpr (ways == 4) total[v.value] += sums[2][v.value] + sums[3][v.value];
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
template <class T, Terms terms, int N, int V>
void sum_block(const SpmmRows& rows, const RowRange& range, const SumOf<T>* weights,
               Columns<N, V> columns) {
  using S = SumOf<T>;
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
      sum_edges<T, terms>(rows, columns, {row, chain, chain_end, range.edge_begin, weights}, total);
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
    const OutputRow<T> output = output_row<T>(rows, row);
    const bool mean = rows.mean;
    unrolled<V>([&](auto v) TESSERA_INLINED {
      Vector value = total[v.value] * scale;
      if (mean) value /= divisor;
      store(output, start(columns, v), value);
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
void best_block(const SpmmRows& rows, const RowRange& range, const SumOf<T>* weights,
                Columns<N, V> columns) {
  using S = SumOf<T>;
  using Vector = Lanes<S, N>;
  using Indices = Lanes<IndexOf<S>, N>;
  const S sign = static_cast<S>(rows.sign);
  EdgeOffset begin = range.edge_begin;
  for (VertexId row = range.row_begin; row < range.row_end; ++row) {
    const EdgeOffset end = range.slot >= 0 ? range.edge_end : rows.row_offsets[row + 1];
    Vector best[V];
    Indices winner[V];
    const auto product = [&](EdgeOffset edge, auto v) TESSERA_INLINED {
      const T* const source = source_of<T, Terms::weighted>(rows, edge);
      return Vector(weights[edge - range.edge_begin] * load_lanes<N>(source + start(columns, v)));
    };
    unrolled<V>([&](auto v) TESSERA_INLINED {
      best[v.value] = Vector{};
      winner[v.value] = Indices{} - 1;
      if (begin < end) {
        best[v.value] = product(begin, v);
        winner[v.value] = Indices{} + static_cast<IndexOf<S>>(rows.col_indices[begin]);
      }
    });
    for (EdgeOffset edge = begin + 1; edge < end; ++edge) {
      prefetch<T, Terms::weighted>(rows, edge, columns);
      const Indices col = Indices{} + static_cast<IndexOf<S>>(rows.col_indices[edge]);
      unrolled<V>([&](auto v) TESSERA_INLINED {
        const Vector candidate = product(edge, v);
        const auto wins = beats(candidate, best[v.value]);
        best[v.value] = wins ? candidate : best[v.value];
        if constexpr (Winners) winner[v.value] = wins ? col : winner[v.value];
      });
    }
    const OutputRow<T> output = output_row<T>(rows, row);
    unrolled<V>([&](auto v) TESSERA_INLINED {
      const std::int64_t at = start(columns, v);
      if (range.slot < 0) {
        store(output, at, Vector(best[v.value] * sign));
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

/// The widest block of an instance. Doubles check gradients, where no time counts.
template <class T>
constexpr int block_registers = std::is_same_v<T, double> ? 2 : accumulator_registers;
template <class T>
constexpr int few_registers = std::is_same_v<T, double> ? 2 : accumulator_registers / 4;

/// Runs `sum_block` over all columns, in blocks of at most `registers` vectors.
template <class T, Terms terms, int registers>
TESSERA_INLINE void sum_blocks(const SpmmRows& rows, const RowRange& range, const SumOf<T>* weights,
                               std::int64_t begin, std::int64_t end) {
  for_blocks<T, lanes<SumOf<T>>, registers>(begin, end, [&]<int N, int V>(Columns<N, V> columns) {
    sum_block<T, terms>(rows, range, weights, columns);
  });
}

template <class T>
void sum_rows(const SpmmRows& rows, const RowRange& range, std::int64_t begin, std::int64_t end) {
  Weights<T> storage;
  const SumOf<T>* const weights = storage.of_sum(rows, range);
  if (weights == nullptr) {
    sum_blocks<T, Terms::plain, block_registers<T>>(rows, range, weights, begin, end);
  } else if (NonzeroEdges<T>::help(rows, range, weights, end - begin)) {
    const NonzeroEdges<T> some(rows, range, weights);
    sum_blocks<T, Terms::weighted, block_registers<T>>(some.rows(), some.range(), some.weights(),
                                                       begin, end);
  } else {
    sum_blocks<T, Terms::weighted, block_registers<T>>(rows, range, weights, begin, end);
  }
}

template <class T>
void sum_won(const SpmmRows& rows, const RowRange& range, std::int64_t begin, std::int64_t end) {
  Weights<T> storage;
  const SumOf<T>* const weights = storage.of_won(rows, range);
  sum_blocks<T, Terms::won, few_registers<T>>(rows, range, weights, begin, end);
}

template <class T>
void sum_edge_features(const SpmmRows& rows, const RowRange& range, std::int64_t begin,
                       std::int64_t end) {
  sum_blocks<T, Terms::edge_features, few_registers<T>>(rows, range, nullptr, begin, end);
}

template <class T>
void best_rows(const SpmmRows& rows, const RowRange& range, std::int64_t begin, std::int64_t end) {
  Weights<T> storage;
  const SumOf<T>* const weights = storage.of_best(rows, range);
  for_blocks<T, lanes<SumOf<T>>, few_registers<T>>(
      begin, end, [&]<int N, int V>(Columns<N, V> columns) {
        if (rows.winners == nullptr) {
          best_block<T, N, V, false>(rows, range, weights, columns);
        } else {
          best_block<T, N, V, true>(rows, range, weights, columns);
        }
      });
}

template <class T>
constexpr SpmmRowsFunctions<T> functions_of = {sum_rows<T>, sum_won<T>, sum_edge_features<T>,
                                               best_rows<T>};

}  // namespace

const ByStorage<SpmmRowsFunctions>& spmm_rows_table() {
  static constexpr ByStorage<SpmmRowsFunctions> table = {functions_of<double>, functions_of<float>,
                                                         functions_of<Bfloat16>};
  return table;
}

}  // namespace tessera::ops::TESSERA_ISA

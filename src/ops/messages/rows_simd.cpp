// SPDX-License-Identifier: Apache-2.0
#include "ops/messages/rows.hpp"

#include "ops/simd/columns.hpp"
#include "ops/simd/lanes.hpp"

namespace tessera::ops::TESSERA_ISA {
namespace {

/// In the order of tessera/ops/messages.hpp, which this file does not include.
enum class Kind { sum, relu, product };

/// Sums this long stay in the type they are summed in; longer ones add such sums in fp64.
constexpr EdgeOffset max_chain = 256;
constexpr EdgeOffset prefetch_distance = 8;

template <class Scalar, int N>
struct Terms {
  Lanes<Scalar, N> of_row;   ///< what is summed
  Lanes<Scalar, N> of_edge;  ///< the gradient of the edge; forward: nothing
};

/// A message; not-a-number passes relu.
template <Kind kind, class Scalar, int N>
TESSERA_INLINE Lanes<Scalar, N> message(Lanes<Scalar, N> x, Lanes<Scalar, N> edge) {
  if constexpr (kind == Kind::product) return x * edge;
  const Lanes<Scalar, N> sum = x + edge;
  if constexpr (kind == Kind::sum) {
    return sum;
  } else {
    return select_where<Scalar, N>(sum <= Lanes<Scalar, N>{}, Lanes<Scalar, N>{}, sum);
  }
}

/// What the gradient of a message gives to its two parts.
template <Kind kind, class Scalar, int N>
TESSERA_INLINE Terms<Scalar, N> parted(Lanes<Scalar, N> x, Lanes<Scalar, N> edge,
                                       Lanes<Scalar, N> grad) {
  if constexpr (kind == Kind::product) {
    return {grad * edge, grad * x};
  } else if constexpr (kind == Kind::relu) {
    grad = select_where<Scalar, N>(x + edge <= Lanes<Scalar, N>{}, Lanes<Scalar, N>{}, grad);
  }
  return {grad, grad};
}

template <class T>
TESSERA_INLINE std::int64_t edge_row(const MessageRows<T>& rows, EdgeOffset edge) {
  const EdgeOffset position = rows.positions == nullptr ? edge : rows.positions[edge];
  return rows.edge_rows == nullptr ? position : rows.edge_rows[position];
}

/// Sums of one row, in fp64 where it is long.
template <class Scalar, int N, int V>
struct RowSums {
  Lanes<Scalar, N> chain[V];
  double folded[N * V];
  bool has_folded = false;

  TESSERA_INLINED void begin() {
    unrolled<V>([&](auto v) TESSERA_INLINED { chain[v.value] = Lanes<Scalar, N>{}; });
  }
  void fold() {
    Scalar values[N * V];
    __builtin_memcpy(values, chain, sizeof values);
    for (int i = 0; i < N * V; ++i) {
      folded[i] = (has_folded ? folded[i] : 0) + static_cast<double>(values[i]);
    }
    has_folded = true;
    begin();
  }
};

template <Kind kind, bool backward, class T, int N, int V>
void row_block(const MessageRows<T>& rows, const RowRange& range, Columns<N, V> columns) {
  using S = SumOf<T>;
  const bool to_slot = range.slot >= 0;
  EdgeOffset edge = range.edge_begin;
  for (VertexId row = range.row_begin; row < range.row_end; ++row) {
    const EdgeOffset end = to_slot ? range.edge_end : rows.offsets[row + 1];
    RowSums<S, N, V> sums;
    sums.begin();
    Lanes<S, N> own[V];
    if constexpr (backward) {
      unrolled<V>([&](auto v) TESSERA_INLINED {
        own[v.value] = load_lanes<N>(rows.x.data + row * rows.x.stride + start(columns, v));
      });
    }
    while (edge < end) {
      const EdgeOffset chain_end = edge + max_chain < end ? edge + max_chain : end;
      for (; edge < chain_end; ++edge) {
        const std::int64_t other = rows.others[edge];
        const std::int64_t at = edge_row(rows, edge);
        const T* const of_edge = rows.edges.data + at * rows.edges.stride;
        const auto& gathered = backward ? rows.grad_y : rows.x;
        const T* const of_other = gathered.data + other * gathered.stride;
        const EdgeOffset ahead =
            edge + prefetch_distance < rows.num_edges ? edge + prefetch_distance : edge;
        __builtin_prefetch(gathered.data + rows.others[ahead] * gathered.stride + columns.first);
        unrolled<V>([&](auto v) TESSERA_INLINED {
          const std::int64_t column = start(columns, v);
          const auto from_edge = load_lanes<N>(of_edge + column);
          const auto from_other = load_lanes<N>(of_other + column);
          if constexpr (backward) {
            const auto terms = parted<kind, S, N>(own[v.value], from_edge, from_other);
            sums.chain[v.value] += terms.of_row;
            if (rows.grad_edges.data != nullptr) {
              store_lanes<N>(rows.grad_edges.data + at * rows.grad_edges.stride + column,
                             terms.of_edge);
            }
          } else {
            sums.chain[v.value] += message<kind, S, N>(from_other, from_edge);
          }
        });
      }
      if (to_slot || edge < end || sums.has_folded) sums.fold();
    }
    if (rows.sums.data == nullptr) continue;
    if (to_slot) {
      double* const slot = rows.slots + range.slot * rows.slot_stride;
      unrolled<V>([&](auto v) {
        __builtin_memcpy(slot + start(columns, v), sums.folded + v.value * N, N * sizeof(double));
      });
      return;
    }
    if (sums.has_folded) {
      S rounded[N * V];
      for (int i = 0; i < N * V; ++i) rounded[i] = static_cast<S>(sums.folded[i]);
      __builtin_memcpy(sums.chain, rounded, sizeof rounded);
    }
    T* const out = rows.sums.data + row * rows.sums.stride;
    unrolled<V>([&](auto v) TESSERA_INLINED {
      store_lanes<N>(out + start(columns, v), sums.chain[v.value]);
    });
  }
}

/// Vectors of a block: as many as leave registers for what is loaded. Doubles check gradients,
/// where no time counts.
template <class T>
constexpr int registers = std::is_same_v<T, double> ? 1 : accumulator_registers / 4;

template <Kind kind, bool backward, class T>
void go_over_rows(const MessageRows<T>& rows, const RowRange& range, std::int64_t features) {
  for_blocks<T, lanes<SumOf<T>>, registers<T>>(
      0, features, [&]<int N, int V>(Columns<N, V> columns) {
        row_block<kind, backward, T, N, V>(rows, range, columns);
      });
}

template <class T>
constexpr MessageFunctions<T> functions_of = {
    {go_over_rows<Kind::sum, false, T>, go_over_rows<Kind::relu, false, T>,
     go_over_rows<Kind::product, false, T>},
    {go_over_rows<Kind::sum, true, T>, go_over_rows<Kind::relu, true, T>,
     go_over_rows<Kind::product, true, T>}};

}  // namespace

const ByStorage<MessageFunctions>& message_rows_table() {
  static constexpr ByStorage<MessageFunctions> table = {functions_of<double>, functions_of<float>,
                                                        functions_of<Bfloat16>};
  return table;
}

}  // namespace tessera::ops::TESSERA_ISA

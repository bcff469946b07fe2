// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/lanes.hpp"
#include "ops/spmm/edge_blocks.hpp"

namespace tessera::ops::TESSERA_ISA {
namespace {

/// V vectors of N columns of edges [first, last), which have one row of X in common.
template <int N, int V, class T>
TESSERA_INLINE void add_columns(const EdgeBlock& block, int first, int last, const T* from,
                                SumOf<T>* sums, std::int64_t stride) {
  using S = SumOf<T>;
  Lanes<S, N> row[V];
  unrolled<V>([&](auto v) TESSERA_INLINED { row[v] = load_lanes<N>(from + v.value * N); });
  for (int e = first; e < last; ++e) {
    S* const to = sums + block.to[e] * stride;
    const S weight = static_cast<S>(block.weights[e]);
    unrolled<V>([&](auto v) TESSERA_INLINED {
      S* const at = to + v.value * N;
      store_lanes<N>(at, Lanes<S, N>(load_lanes<N>(at) + weight * row[v]));
    });
  }
}

template <class T>
void add_block(const EdgeBlock& block, const EdgeBlockOperands& operands) {
  using S = SumOf<T>;
  constexpr int N = lanes<S>;
  const std::int64_t features = operands.features;
  const std::int64_t stride = operands.sums_stride;
  auto* const sums = static_cast<S*>(operands.sums);
  for (int first = 0, last = 0; first < block.count; first = last) {
    for (last = first + 1; last < block.count && block.from[last] == block.from[first];) ++last;
    const T* const from = static_cast<const T*>(operands.x) + block.from[first] * operands.x_stride;
    std::int64_t column = 0;
    for (; column + 8 * N <= features; column += 8 * N) {
      add_columns<N, 8>(block, first, last, from + column, sums + column, stride);
    }
    for (; column + 2 * N <= features; column += 2 * N) {
      add_columns<N, 2>(block, first, last, from + column, sums + column, stride);
    }
    for (; column + N <= features; column += N) {
      add_columns<N, 1>(block, first, last, from + column, sums + column, stride);
    }
    for (; column < features; ++column) {
      add_columns<1, 1>(block, first, last, from + column, sums + column, stride);
    }
  }
}

}  // namespace

const ByStorage<EdgeBlockFunctions>& edge_blocks_table() {
  static constexpr ByStorage<EdgeBlockFunctions> table = {
      {add_block<double>}, {add_block<float>}, {add_block<Bfloat16>}};
  return table;
}

}  // namespace tessera::ops::TESSERA_ISA

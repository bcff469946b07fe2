// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/lanes.hpp"
#include "ops/spmm/edge_blocks.hpp"

namespace tessera::ops::TESSERA_ISA {
namespace {

/// V vectors of N columns.
template <int N, int V, class T>
TESSERA_INLINE void add_columns(const T* from, ScalarOf<T> weight, ScalarOf<T>* to) {
  unrolled<V>([&](auto v) __attribute__((always_inline)) {
    using S = ScalarOf<T>;
    S* const at = to + v.value * N;
    const Lanes<S, N> sum = load_lanes<N>(at) + weight * load_lanes<N>(from + v.value * N);
    store_lanes<N>(at, sum);
  });
}

template <class T>
void add_block(const EdgeBlock& block, const EdgeBlockOperands& operands) {
  using S = ScalarOf<T>;
  constexpr int N = lanes<S>;
  const std::int64_t features = operands.features;
  for (int e = 0; e < block.count; ++e) {
    const T* const from = static_cast<const T*>(operands.x) + block.from[e] * operands.x_stride;
    S* const to = static_cast<S*>(operands.sums) + block.to[e] * operands.sums_stride;
    const S weight = static_cast<S>(block.weights[e]);
    std::int64_t column = 0;
    for (; column + 4 * N <= features; column += 4 * N) {
      add_columns<N, 4>(from + column, weight, to + column);
    }
    for (; column + N <= features; column += N) {
      add_columns<N, 1>(from + column, weight, to + column);
    }
    for (; column < features; ++column) add_columns<1, 1>(from + column, weight, to + column);
  }
}

}  // namespace

const EdgeBlockTable& edge_blocks_table() {
  static constexpr EdgeBlockTable table = {add_block<double>, add_block<float>,
                                           add_block<Bfloat16>};
  return table;
}

}  // namespace tessera::ops::TESSERA_ISA

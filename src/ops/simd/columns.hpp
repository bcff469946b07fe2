// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/simd/lanes.hpp"

/// How kernels cut the features of a row into blocks that fit the vector registers.
namespace tessera::ops::TESSERA_ISA {

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
inline constexpr int odd_vectors = 8;

template <int N, int V, int I>
TESSERA_INLINE std::int64_t start(const Columns<N, V>& columns, std::integral_constant<int, I>) {
  if (I == V - 1) return columns.last;
  const std::int64_t here = columns.first + I * N;
  return I == V - 2 && V > odd_vectors && here > columns.last ? columns.last : here;
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
    unrolled<MaxVectors>([&](auto i) TESSERA_INLINED {
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
    for_blocks_of<N, (N == lanes<SumOf<T>> ? MaxVectors : 2)>(begin, end, run);
  } else if constexpr (N > 1) {
    for_blocks<T, N / 2, MaxVectors>(begin, end, run);
  }
}

}  // namespace tessera::ops::TESSERA_ISA

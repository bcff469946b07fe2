// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/precision.cuh"
#include "ops/spmm/cuda/rows/instances.hpp"
#include "ops/spmm/cuda/rows/kernel.cuh"

namespace tessera::ops {

template <class T, RowsReduction reduction>
struct ReductionOf;
template <class T>
struct ReductionOf<T, RowsReduction::pattern_sum> : std::type_identity<PatternSum<T>> {};
template <class T>
struct ReductionOf<T, RowsReduction::weighted_sum> : std::type_identity<WeightedSum<T>> {};
template <class T>
struct ReductionOf<T, RowsReduction::pattern_best> : std::type_identity<PatternBest<T>> {};
template <class T>
struct ReductionOf<T, RowsReduction::best> : std::type_identity<Best<T>> {};
template <class T>
struct ReductionOf<T, RowsReduction::pattern_winner_sum> : std::type_identity<PatternWinnerSum<T>> {
};
template <class T>
struct ReductionOf<T, RowsReduction::winner_sum> : std::type_identity<WinnerSum<T>> {};

/// What a key's kernels do to rows, with an epilogue where it has one.
template <class T, RowsKey key>
struct EndedReduction {
  using Plain = typename ReductionOf<T, key.reduction>::type;
  using Type = typename std::conditional_t<key.epilogue, std::type_identity<WithEpilogue<Plain>>,
                                           std::type_identity<Plain>>::type;
};

template <RowsKey key>
std::span<const RowsFunction> RowsKernels<key>::all() {
  using T = cuda::Stored<key.precision>;
  using Reduction = typename EndedReduction<T, key>::Type;
  if constexpr (of_winners(key.reduction)) {
    static constexpr auto functions =
        make_rows_functions<best_policies, T, key.starts, Reduction>();
    return functions;
  } else {
    static constexpr auto functions =
        make_rows_functions<rows_policies, T, key.starts, Reduction>();
    return functions;
  }
}

}  // namespace tessera::ops

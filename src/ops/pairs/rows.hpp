// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/pairs/end.hpp"
#include "ops/simd/isa.hpp"

namespace tessera::ops {

/// A matrix as inner loops take it: see simd/isa.hpp.
template <class T>
struct PairRows {
  const T* data = nullptr;
  std::int64_t stride = 0;
};

template <class T>
struct PairFunctions {
  /// scores[h] = source . target over the numbers of head h.
  void (*dot)(const T* source, const T* target, std::int64_t heads, std::int64_t head_width,
              T* scores);
  /// y[k] = the sum over the ends of one side, or of both, of gradient * other: `others[i]` are
  /// those of ends that are sources (0) or targets (1). Without others: of the gradient.
  void (*sum)(const PairEnd* ends, std::int64_t count, int sides, const PairRows<T> (&others)[2],
              PairRows<T> gradient, std::int64_t heads, std::int64_t cols, T* y);
};

}  // namespace tessera::ops

TESSERA_SIMD_TABLE(ByStorage<PairFunctions>, pairs)

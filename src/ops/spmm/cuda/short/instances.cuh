// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/spmm/cuda/short/bits.cuh"
#include "ops/spmm/cuda/short/kernel.cuh"
#include "ops/spmm/cuda/short/quads.cuh"

namespace tessera::ops {

template <ShortKey key>
std::span<const ShortFunction> ShortKernels<key>::all() {
  if constexpr (key.encoding == ShortEncoding::bits) {
    return short_functions<BitWindows, key, 32, 64, 128>();
  } else if constexpr (key.encoding == ShortEncoding::quads && key.precision == Precision::fp32) {
    return short_functions<QuadWindows<key.whole_rows>, key, 64>();
  } else if constexpr (key.encoding == ShortEncoding::quads) {
    return short_functions<QuadWindows<key.whole_rows>, key, 64, 128>();
  } else {
    return short_functions<ValuedQuadWindows<key.whole_rows>, key, 64, 128>();
  }
}

}  // namespace tessera::ops

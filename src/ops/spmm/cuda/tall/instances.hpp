// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "ops/spmm/cuda/tall/launch.hpp"

/// The kernels, compiled in units of their own (inst/), each array by width.
namespace tessera::ops {

inline constexpr std::array<int, 3> tall_widths = {32, 64, 128};
using TallFunctions = std::array<TallFunction, tall_widths.size()>;

/// For 16-bit features: without and with column scales, rows on 16-byte boundaries and not, by the
/// height of windows.
struct TallHalfFunctions {
  TallFunctions pattern_64, pattern_128, scaled_64, scaled_128;
};
extern const TallHalfFunctions tall_bf16_aligned, tall_bf16_scalar;
extern const TallHalfFunctions tall_fp16_aligned, tall_fp16_scalar;

/// For fp32 features, by the number of bf16 planes.
struct TallFullFunctions {
  TallFunctions aligned_64, aligned_128, scalar_64, scalar_128;
};
extern const TallFullFunctions tall_fp32_two, tall_fp32_three;

/// For edges with values: windows of 64 rows.
struct TallValuedFunctions {
  TallFunctions aligned, scalar;
};
extern const TallValuedFunctions tall_bf16_valued, tall_fp16_valued, tall_fp32_valued;

/// With an epilogue: rows on 16-byte boundaries. Those of fp32 features, in two planes, are the
/// same with and without column scales.
extern const TallHalfFunctions tall_bf16_epilogue, tall_fp16_epilogue, tall_fp32_epilogue;

}  // namespace tessera::ops

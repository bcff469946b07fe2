// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "ops/spmm/cuda/tall_windows.hpp"

/// The kernels, compiled in units of their own (inst_tall_*.cu), each array by width.
namespace tessera::ops {

inline constexpr std::array<int, 3> tall_widths = {32, 64, 128};
using TallFunctions = std::array<TallFunction, tall_widths.size()>;

extern const TallFunctions tall_bf16_aligned_pattern, tall_bf16_aligned_scaled;
extern const TallFunctions tall_bf16_scalar_pattern, tall_bf16_scalar_scaled;
extern const TallFunctions tall_fp16_aligned_pattern, tall_fp16_aligned_scaled;
extern const TallFunctions tall_fp16_scalar_pattern, tall_fp16_scalar_scaled;
/// By the number of bf16 planes; aligned ones for blocks of 64 and of 128 rows.
extern const TallFunctions tall_fp32_two_64, tall_fp32_two_128, tall_fp32_two_scalar;
extern const TallFunctions tall_fp32_three_64, tall_fp32_three_128, tall_fp32_three_scalar;

}  // namespace tessera::ops

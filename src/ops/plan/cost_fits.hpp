// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/plan/cost_fit.hpp"

/// Written by tools/fit_costs.py.
namespace tessera::ops::cost_fits {

// clang-format off
inline constexpr std::array<CostFit, 12> sddmm_vectors = {{
    {"sddmm/vectors_1x1x1", 5.5, 1.329},  // 99% of 102 within 25 %
    {"sddmm/vectors_2x1x2", 7, 1.61},  // 72% of 204 within 25 %
    {"sddmm/vectors_4x1x4", 6.5, 1.191},  // 86% of 102 within 25 %
    {"sddmm/vectors_4x2x4_both", 5.5, 0.91},  // 97% of 105 within 25 %
    {"sddmm/vectors_8x1x2", 5, 0.866},  // 86% of 414 within 25 %
    {"sddmm/vectors_8x1x8_both", 4.5, 0.723},  // 69% of 312 within 25 %
    {"sddmm/vectors_8x2x8_both", 5.5, 0.817},  // 95% of 207 within 25 %
    {"sddmm/vectors_8x4x2", 0, 0.998},  // 64% of 204 within 25 %
    {"sddmm/vectors_8x4x8", 2.5, 1.038},  // 75% of 204 within 25 %
    {"sddmm/vectors_8x8x8", 4.5, 1.002},  // 100% of 102 within 25 %
    {"sddmm/vectors_16x1x4_both", 3.5, 0.739},  // 83% of 309 within 25 %
    {"sddmm/vectors_16x2x8_both", 1.5, 0.757},  // 75% of 204 within 25 %
}};
inline constexpr CostFit sddmm_stream = {"sddmm/stream", 7, 0.977};  // 89% of 105 within 25 %
inline constexpr CostFit sddmm_list_rows = {"sddmm/list_rows", 6, 0.843};  // 91% of 210 within 25 %
inline constexpr CostFit sddmm_list_hubs = {"sddmm/list_hubs", 6, 0.821};  // 99% of 210 within 25 %
inline constexpr CostFit sddmm_list_panels = {"sddmm/list_panels", 6, 0.868};  // 95% of 210 within 25 %
inline constexpr CostFit sddmm_short_16 = {"sddmm/short_16", 8.5, 1.104};  // 71% of 822 within 25 %
inline constexpr CostFit sddmm_short_16_direct = {"sddmm/short_16_direct", 8.5, 1.122};  // 59% of 822 within 25 %
inline constexpr CostFit sddmm_tiles_64 = {"sddmm/tiles_64", 6.5, 1.17};  // 69% of 822 within 25 %
inline constexpr CountFit aggregate_update_fused = {"aggregate_update/fused", {3.109, 1.914, 1.21}};  // 44% of 827 within 25 %
inline constexpr CountFit aggregate_update_windows = {"aggregate_update/windows", {1.096, 2.616, 0.6868}};  // 68% of 420 within 25 %
inline constexpr CountFit aggregate_update_windows_mma = {"aggregate_update/windows_mma", {1.441, 2.536, 0.7253}};  // 60% of 420 within 25 %
inline constexpr CountFit aggregate_update_staged = {"aggregate_update/staged", {1.189, 0.6604, 0.3793}};  // 77% of 834 within 25 %
inline constexpr CostFit attention_rows = {"attention/rows", 5.5, 1};  // 78% of 1729 within 25 %
inline constexpr CostFit attention_short = {"attention/short", 10.5, 0.967};  // 74% of 612 within 25 %
inline constexpr CostFit attention_tall = {"attention/tall", 0, 0.974};  // 69% of 1219 within 25 %
inline constexpr CostFit attention_pairs = {"attention/pairs", 3.5, 1.106};  // 79% of 102 within 25 %
inline constexpr CostFit attention_staged = {"attention/staged", 18.5, 0.892};  // 67% of 1019 within 25 %
inline constexpr CountFit bit_stored = {"bit_gemm/stored", {1.491}};
inline constexpr CountFit bit_gemm_planes = {"bit_gemm/planes", {0.5982, 0.6697}};  // 81% of 120 within 25 %
inline constexpr CountFit bit_gemm_bytes = {"bit_gemm/bytes", {3.433}};  // 90% of 120 within 25 %
inline constexpr CountFit bit_gemm_pairs = {"bit_gemm/pairs", {0.4968, 0.3711, 4.713}};  // 63% of 540 within 25 %
inline constexpr CountFit bit_gemm_byte_pairs = {"bit_gemm/byte_pairs", {0.9923, 4.817, 0.4556}};  // 85% of 390 within 25 %
inline constexpr CountFit bit_spread = {"bit_aggregate/spread", {4.483}};
inline constexpr CountFit bit_aggregate_rows = {"bit_aggregate/rows", {0.9591, 1.272, 3.72}};  // 86% of 816 within 25 %
inline constexpr CountFit bit_aggregate_rows_narrow = {"bit_aggregate/rows_narrow", {0.7291, 1.139, 2.052}};  // 82% of 816 within 25 %
inline constexpr CountFit bit_aggregate_windows = {"bit_aggregate/windows", {0.911}};  // 83% of 816 within 25 %
inline constexpr CountFit bit_aggregate_tall = {"bit_aggregate/tall", {0.7916, 0.9692}};  // 78% of 816 within 25 %
// clang-format on

}  // namespace tessera::ops::cost_fits

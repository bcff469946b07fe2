// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/plan/cost_fit.hpp"

/// Written by tools/fit_costs.py.
namespace tessera::ops::cost_fits {

// clang-format off
inline constexpr std::array<CountFit, 12> sddmm_vectors = {{
    {"sddmm/vectors_1x1x1", {1.662, 0.7566, 0.4798}},  // 89% of 102 within 25 %
    {"sddmm/vectors_2x1x2", {0, 3.031, 0.3584}},  // 70% of 204 within 25 %
    {"sddmm/vectors_4x1x4", {1.586, 0.1875, 0.4348}},  // 85% of 102 within 25 %
    {"sddmm/vectors_4x2x4_both", {2.168, 0.03386, 0.6051}},  // 100% of 105 within 25 %
    {"sddmm/vectors_8x1x2", {1.27, 0.3715, 0.6188}},  // 92% of 414 within 25 %
    {"sddmm/vectors_8x1x8_both", {2.274, 0, 0.6486}},  // 98% of 312 within 25 %
    {"sddmm/vectors_8x2x8_both", {2.159, 0.2336, 0.7372}},  // 97% of 207 within 25 %
    {"sddmm/vectors_8x4x2", {2.402, 0, 0.6672}},  // 89% of 204 within 25 %
    {"sddmm/vectors_8x4x8", {2.727, 0, 0.9544}},  // 96% of 204 within 25 %
    {"sddmm/vectors_8x8x8", {2.217, 0.474, 0.807}},  // 100% of 102 within 25 %
    {"sddmm/vectors_16x1x4_both", {1.658, 0.1509, 0.6}},  // 97% of 309 within 25 %
    {"sddmm/vectors_16x2x8_both", {2.145, 0.3188, 0.7694}},  // 100% of 204 within 25 %
}};
inline constexpr CountFit sddmm_stream = {"sddmm/stream", {3.377, 0, 0.7143}};  // 95% of 105 within 25 %
inline constexpr CostFit sddmm_list_rows = {"sddmm/list_rows", 6, 0.843};  // 91% of 210 within 25 %
inline constexpr CostFit sddmm_list_hubs = {"sddmm/list_hubs", 6, 0.821};  // 99% of 210 within 25 %
inline constexpr CostFit sddmm_list_panels = {"sddmm/list_panels", 6, 0.872};  // 95% of 210 within 25 %
inline constexpr CostFit sddmm_short_16 = {"sddmm/short_16", 8.5, 1.104};  // 71% of 822 within 25 %
inline constexpr CostFit sddmm_short_16_direct = {"sddmm/short_16_direct", 8.5, 1.122};  // 59% of 822 within 25 %
inline constexpr CostFit sddmm_tiles_64 = {"sddmm/tiles_64", 6.5, 1.17};  // 69% of 822 within 25 %
inline constexpr CountFit aggregate_update_fused = {"aggregate_update/fused", {2.89, 1.892, 1.198}};  // 45% of 827 within 25 %
inline constexpr CountFit aggregate_update_windows = {"aggregate_update/windows", {1.06, 2.656}};  // 70% of 420 within 25 %
inline constexpr CountFit aggregate_update_windows_mma = {"aggregate_update/windows_mma", {1.341, 2.698}};  // 59% of 420 within 25 %
inline constexpr CountFit aggregate_update_staged = {"aggregate_update/staged", {1.156, 0.7296}};  // 75% of 834 within 25 %
inline constexpr CostFit attention_rows = {"attention/rows", 5.5, 1};  // 78% of 1729 within 25 %
inline constexpr CountFit attention_short_dot = {"attention/short/dot", {3.778, 1.944, 0.4846}};  // 81% of 204 within 25 %
inline constexpr CountFit attention_short_dot_back = {"attention/short/dot_back", {10.39, 6.318, 1.014}};  // 85% of 102 within 25 %
inline constexpr CountFit attention_short_gat = {"attention/short/gat", {4.311, 2.072, 0.4399}};  // 87% of 102 within 25 %
inline constexpr CountFit attention_short_gat_back = {"attention/short/gat_back", {5.825, 8.684, 1.044}};  // 88% of 102 within 25 %
inline constexpr CountFit attention_short_gatv2 = {"attention/short/gatv2", {13.19, 5.606, 1.174}};  // 92% of 102 within 25 %
inline constexpr CostFit attention_tall = {"attention/tall", 0, 0.974};  // 69% of 1219 within 25 %
inline constexpr CostFit attention_pairs = {"attention/pairs", 3.5, 1.106};  // 79% of 102 within 25 %
inline constexpr CostFit attention_staged = {"attention/staged", 19, 0.929};  // 68% of 1019 within 25 %
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

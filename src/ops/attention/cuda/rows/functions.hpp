// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "ops/attention/cuda/rows/launch.hpp"

/// The kernels by rows, compiled in units of their own (inst/).
namespace tessera::ops {

/// In the order of the type's list of `LaneVectors`; beyond its end there are none.
using RowsAttentionByLanes = std::array<RowsAttentionFunction, lane_vectors_16.size()>;

using RowsAttentionForward = RowsAttentionByLanes;
struct RowsAttentionBackward {
  RowsAttentionByLanes by_rows, by_columns;
};

/// By type (fp32, bf16, fp16) and form.
extern const RowsAttentionForward gat_forward_fp32, gat_forward_bf16, gat_forward_fp16,
    gatv2_forward_fp32, gatv2_forward_bf16, gatv2_forward_fp16, dot_forward_fp32, dot_forward_bf16,
    dot_forward_fp16, cosine_forward_fp32, cosine_forward_bf16, cosine_forward_fp16;
extern const RowsAttentionBackward gat_backward_fp32, gat_backward_bf16, gat_backward_fp16,
    gatv2_backward_fp32, gatv2_backward_bf16, gatv2_backward_fp16, dot_backward_fp32,
    dot_backward_bf16, dot_backward_fp16, cosine_backward_fp32, cosine_backward_bf16,
    cosine_backward_fp16;

}  // namespace tessera::ops

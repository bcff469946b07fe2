// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "ops/attention/cuda/rows/launch.hpp"
#include "tessera/ops/operand.hpp"

/// The backward pass of attention by cosines over graphs whose edges all go both ways.
namespace tessera::ops {

/// What an edge needs of the vertex at its other end, beside rows.
struct alignas(16) MutualState {
  float log_sum = 0;  ///< in powers of two
  float dot = 0;      ///< dO . O
  float inverse_length = 0;
  float length = 0;
};

/// Rows of a launch are those of `value` and `grad_output`, own and gathered ones.
struct MutualLaunch : RowsAttentionLaunch {
  AttentionRows value, grad_output;
  const MutualState* states = nullptr;
  void* factor_gradient = nullptr;  ///< null: not wanted; of blocks in `scale_sums`, then of all
  unsigned* num_blocks_done = nullptr;  ///< 0 between two runs
};

using MutualFunction = void (*)(const MutualLaunch& launch, Stream stream);
/// In the order of the type's list of `LaneVectors`.
using MutualFunctions = std::array<MutualFunction, lane_vectors_16.size()>;
extern const MutualFunctions cosine_mutual_fp32, cosine_mutual_bf16, cosine_mutual_fp16;

/// One per row.
void compute_mutual_states(ConstOperand output, ConstOperand grad_output, ConstOperand log_sum,
                           const float* inverse_lengths, MutualState* to, Stream stream);

}  // namespace tessera::ops

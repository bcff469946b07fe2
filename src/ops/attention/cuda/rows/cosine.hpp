// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/rows/functions.hpp"
#include "tessera/ops/operand.hpp"

/// What attention by cosines has beside the sweeps of all forms.
namespace tessera::ops {

/// One number per row of x: 1 / its length, or 1 / `shortest_row` where it is shorter.
void compute_inverse_lengths(ConstOperand x, float* to, Stream stream);

// The backward pass over graphs whose edges all go both ways.

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
template <Precision precision>
struct MutualKernels {
  static const ByLanes<MutualFunction>* get();
};

/// One per row.
void compute_mutual_states(ConstOperand output, ConstOperand grad_output, ConstOperand log_sum,
                           const float* inverse_lengths, MutualState* to, Stream stream);

}  // namespace tessera::ops

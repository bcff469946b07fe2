// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/rows.hpp"
#include "tessera/ops/attention.hpp"

namespace tessera::ops {

/// The weight of every edge and head from its score and its row's `log_sum`, before dropout. For
/// cosines: with the inverse lengths of the rows of values.
void write_attention_weights(const cuda::DeviceRows& rows, const AttentionOptions& options,
                             const AttentionInputs& inputs, const ConstOperand& log_sum,
                             const Operand& weights, Stream stream,
                             const float* inverse_lengths = nullptr);

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/weights.hpp"

#include <algorithm>
#include <limits>

#include "ops/attention/cuda/fused/cost.hpp"
#include "ops/attention/cuda/fused/launch.hpp"

namespace tessera::ops {

void write_attention_weights(const cuda::DeviceRows& rows, const AttentionOptions& options,
                             const AttentionInputs& inputs, const ConstOperand& log_sum,
                             const Operand& weights, Stream stream, const float* inverse_lengths) {
  AttentionLaunch launch;
  launch.rows.num_rows = rows.num_rows;
  launch.rows.offsets = rows.offsets();
  launch.rows.longest = std::numeric_limits<EdgeOffset>::max();
  launch.indices = rows.indices.data();
  launch.form = options.form;
  launch.heads = options.heads;
  launch.width = options.features / options.heads;
  launch.features = options.features;
  launch.slope = static_cast<float>(options.negative_slope);
  launch.scale = static_cast<float>(inputs.scale);
  launch.vector = options.form == AttentionForm::gatv2 ? inputs.vector.data : nullptr;
  launch.fixed_scores = {inputs.target.data, inputs.target.stride};
  launch.gathered_scores = {inputs.source.data, inputs.source.stride};
  if (options.form == AttentionForm::cosine) {
    launch.factor = inputs.vector.data;
    launch.inverse_lengths = inverse_lengths;
    launch.fixed_scores = launch.gathered_scores = {inputs.value.data, inputs.value.stride};
  }
  launch.log_sum = static_cast<float*>(const_cast<void*>(log_sum.data));
  launch.log_sum_stride = log_sum.stride;
  launch.output = {weights.data, weights.stride};
  launch.dot_lanes = power_of_two(launch.width);
  // No features are summed: only heads are shared out.
  launch.slices.heads = static_cast<int>(std::min<std::int64_t>(options.heads, 32));
  launch.slices.padded_heads = power_of_two(launch.slices.heads);
  launch.slices.count =
      static_cast<unsigned>((options.heads + launch.slices.heads - 1) / launch.slices.heads);
  launch.num_blocks = static_cast<unsigned>(
      (std::int64_t{rows.num_rows} + attention_block_warps - 1) / attention_block_warps);
  switch (options.precision) {
    case Precision::bf16: return attention_forward_bf16.weights(launch, stream);
    case Precision::fp16: return attention_forward_fp16.weights(launch, stream);
    default: return attention_forward_fp32.weights(launch, stream);
  }
}

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/tall/dot_backward.hpp"

#include "ops/attention/cuda/rows/cost.hpp"
#include "ops/attention/cuda/tall/cost.hpp"

namespace tessera::ops {
namespace {

bool has_gradient(const AttentionOptions& options) { return options.precision != Precision::fp16; }

}  // namespace

void set_dot_gradient(const AttentionOptions& options, WindowKernel& kernel) {
  if (!has_gradient(options)) return;
  const std::size_t index = *tall_width_index(options);
  const bool wide = bytes_per_element(options.precision) == 4;
  kernel.by_rows = wide ? tall_dot_by_rows_fp32[index] : tall_dot_by_rows_bf16[index];
  kernel.by_columns = wide ? tall_dot_by_columns_fp32[index] : tall_dot_by_columns_bf16[index];
  kernel.gradient_slices = kernel.num_slices;
  kernel.row_slot = options.features;
  kernel.column_slot = 2 * options.features;
}

double predict_dot_backward_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  if (!has_gradient(problem.options)) return predict_rows_backward_us(problem, traits);
  // Of the two products of the forward pass backward has seven, and the weights twice.
  return 3.0 * predict_tall_attention_us(problem, traits);
}

}  // namespace tessera::ops

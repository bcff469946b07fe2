// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/tall/gat_backward.hpp"

#include "ops/attention/cuda/heads/cost.hpp"
#include "ops/attention/cuda/heads/launch.hpp"
#include "ops/attention/cuda/rows/cost.hpp"
#include "ops/attention/cuda/tall/cost.hpp"

namespace tessera::ops {
namespace {

bool is_narrow(const AttentionOptions& options) {
  return *tall_width_index(options) < num_gradient_widths;
}
bool has_wide_gradient(const AttentionOptions& options) {
  return !is_narrow(options) && options.precision != Precision::fp16;
}

void set_narrow_gradient(const AttentionOptions& options, WindowKernel& kernel) {
  const std::size_t index = *tall_width_index(options);
  const HeadGradientPasses& passes = options.precision == Precision::bf16   ? heads_gradient_bf16
                                     : options.precision == Precision::fp16 ? heads_gradient_fp16
                                                                            : heads_gradient_fp32;
  const int features = head_block_features(tall_head_widths[index]);
  kernel.by_rows = passes.by_rows[index];
  kernel.by_columns = passes.by_columns[index];
  kernel.gradient_slices = static_cast<int>((options.features + features - 1) / features);
  kernel.row_slot = gat_row_slot(options);
  kernel.column_slot = gat_column_slot(options);
}

void set_wide_gradient(const AttentionOptions& options, WindowKernel& kernel) {
  const bool fp32 = bytes_per_element(options.precision) == 4;
  const std::size_t index = *tall_width_index(options) - first_wide_gat;
  kernel.by_rows = (fp32 ? tall_gat_by_rows_fp32 : tall_gat_by_rows_bf16)[index];
  kernel.by_columns = (fp32 ? tall_gat_by_columns_fp32 : tall_gat_by_columns_bf16)[index];
  kernel.gradient_slices = static_cast<int>(options.heads);
  kernel.row_slot = options.heads;
  // Pairs of features are stored at once, so that rows are even.
  kernel.column_slot = options.features + (options.heads + 1) / 2 * 2;
  kernel.state_numbers = 4;
}

}  // namespace

void set_gat_gradient(const AttentionOptions& options, WindowKernel& kernel) {
  if (is_narrow(options)) {
    set_narrow_gradient(options, kernel);
  } else if (has_wide_gradient(options)) {
    set_wide_gradient(options, kernel);
  }
}

double predict_gat_backward_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  // Both sweeps over narrow heads are what the forward pass by signs is.
  if (is_narrow(problem.options)) return 2 * predict_heads_attention_us(problem, traits);
  // Of the two products of the forward pass backward has four, and the weights twice.
  if (has_wide_gradient(problem.options)) return 2 * predict_tall_attention_us(problem, traits);
  return predict_rows_backward_us(problem, traits);
}

}  // namespace tessera::ops

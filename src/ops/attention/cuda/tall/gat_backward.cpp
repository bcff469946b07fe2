// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/tall/gat_backward.hpp"

#include "ops/attention/cuda/heads/cost.hpp"
#include "ops/attention/cuda/heads/launch.hpp"
#include "ops/attention/cuda/packed/cost.hpp"
#include "ops/attention/cuda/packed/launch.hpp"
#include "ops/attention/cuda/rows/cost.hpp"
#include "ops/attention/cuda/tall/cost.hpp"

namespace tessera::ops {
namespace {

bool is_narrow(const AttentionOptions& options) {
  return *tall_width_index(options) < num_gradient_widths;
}
/// Heads go back by factors of columns, for which fp16 has too small a range. Narrow ones go back
/// by scaled rows there, and in fp32, where that is faster.
bool by_scaled_rows(const AttentionOptions& options) {
  return is_narrow(options) && options.precision != Precision::bf16;
}
bool by_column_factors(const AttentionOptions& options) {
  return !by_scaled_rows(options) && options.precision != Precision::fp16;
}

void set_scaled_rows(const AttentionOptions& options, WindowKernel& kernel) {
  const std::size_t index = *tall_width_index(options);
  const int features = head_block_features(tall_head_widths[index]);
  const HeadGradientPasses& passes =
      options.precision == Precision::fp16 ? heads_gradient_fp16 : heads_gradient_fp32;
  kernel.by_rows = passes.by_rows[index];
  kernel.by_columns = passes.by_columns[index];
  kernel.gradient_slices = static_cast<int>((options.features + features - 1) / features);
  kernel.row_slot = gat_row_slot(options);
  kernel.column_slot = gat_column_slot(options);
}

/// Narrow heads in bf16 go back by factors in fp16, all of a block of many features at once.
bool by_packed_factors(const AttentionOptions& options) {
  return is_narrow(options) && options.precision == Precision::bf16 &&
         options.features > packed_block_features[0];
}
void set_packed_factors(const AttentionOptions& options, WindowKernel& kernel) {
  const std::size_t index = *tall_width_index(options);
  const int heads = packed_gradient_features / tall_head_widths[index];
  kernel.by_rows = packed_gat_by_rows_bf16[index];
  kernel.by_columns = packed_gat_by_columns_bf16[index];
  kernel.gradient_slices = static_cast<int>((options.heads + heads - 1) / heads);
  kernel.finds_largest = true;
}

void set_column_factors(const AttentionOptions& options, WindowKernel& kernel) {
  const bool fp32 = bytes_per_element(options.precision) == 4;
  const std::size_t index = *tall_width_index(options);
  const int heads = tall_block_heads(tall_head_widths[index]);
  kernel.by_rows = (fp32 ? tall_gat_by_rows_fp32 : tall_gat_by_rows_bf16)[index];
  kernel.by_columns = (fp32 ? tall_gat_by_columns_fp32 : tall_gat_by_columns_bf16)[index];
  kernel.gradient_slices = static_cast<int>((options.heads + heads - 1) / heads);
  kernel.row_slot = options.heads;
  // Pairs of features are stored at once, so that rows are even.
  kernel.column_slot = options.features + (options.heads + 1) / 2 * 2;
  kernel.state_numbers = 4;
  if (by_packed_factors(options)) set_packed_factors(options, kernel);
}

}  // namespace

void set_gat_gradient(const AttentionOptions& options, WindowKernel& kernel) {
  if (by_scaled_rows(options)) {
    set_scaled_rows(options, kernel);
  } else if (by_column_factors(options)) {
    set_column_factors(options, kernel);
  }
}

double predict_gat_backward_us(const AttentionProblem& problem, const DeviceTraits& traits) {
  // As many forward passes as they took on three graphs.
  if (by_packed_factors(problem.options)) {
    return 2.55 * predict_packed_attention_us(problem, traits);
  }
  // Either sweep gathers rows once, as a forward pass does, and is taken to be as fast.
  if (is_narrow(problem.options)) return 2 * predict_heads_attention_us(problem, traits);
  if (!by_column_factors(problem.options)) return predict_rows_backward_us(problem, traits);
  // As many forward passes as one head took, of 64 features in fp32 on COLLAB, of 64 and 128 in
  // bf16 on three graphs.
  const bool fp32 = bytes_per_element(problem.options.precision) == 4;
  const bool wide = problem.options.features / problem.options.heads > 64;
  const double passes = fp32 ? 1.7 : wide ? 2.7 : 2.35;
  return passes * predict_tall_attention_us(problem, traits);
}

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "ops/attention/cuda/fused/launch.hpp"
#include "ops/attention/cuda/kernels.hpp"
#include "ops/attention/cuda/rows/cost.hpp"
#include "ops/attention/cuda/short/cost.hpp"
#include "ops/attention/cuda/short/gat_keeping.hpp"
#include "ops/attention/cuda/short/launch.hpp"
#include "ops/attention/cuda/tall/windows.hpp"

namespace tessera::ops {
namespace {

/// Which of the widths that there are kernels for the heads have.
std::optional<std::size_t> width_index(const AttentionOptions& options) {
  const auto index_in = [&](const auto& widths) -> std::optional<std::size_t> {
    const auto at = std::find(widths.begin(), widths.end(), options.features / options.heads);
    if (at == widths.end()) return std::nullopt;
    return static_cast<std::size_t>(at - widths.begin());
  };
  return options.form == AttentionForm::gatv2 ? index_in(short_gatv2_widths)
                                              : index_in(short_head_widths);
}

std::string why_not(const AttentionProblem& problem) {
  const AttentionOptions& options = problem.options;
  if (options.form == AttentionForm::cosine) return "scores that are no plain dot products";
  if (bytes_per_element(options.precision) != 2) return "16-bit features only";
  if (options.form == AttentionForm::gat && options.precision != Precision::bf16) {
    return "GAT in bf16 only, as fp16 has too small a range for factors";
  }
  if (options.dropout > 0) return "dropout, which asks for the number of every edge";
  if (!width_index(options)) return "heads of 64 or 128 features only, in GATv2 of 32, too";
  return {};
}

bool has_gradient(const AttentionOptions& options) {
  if (options.precision != Precision::bf16) return false;
  return options.form != AttentionForm::gatv2 || *width_index(options) < num_short_gatv2_gradients;
}

const TallAttentionFunction& function_of(const AttentionOptions& options) {
  const bool bf16 = options.precision == Precision::bf16;
  const std::size_t index = *width_index(options);
  switch (options.form) {
    case AttentionForm::gat: return short_gat_bf16[index];
    case AttentionForm::gatv2: return (bf16 ? short_gatv2_bf16 : short_gatv2_fp16)[index];
    default: return (bf16 ? short_dot_bf16 : short_dot_fp16)[index];
  }
}

void set_gradient(const AttentionOptions& options, WindowKernel& kernel) {
  const std::size_t index = *width_index(options);
  kernel.gradient_slices = kernel.num_slices;
  kernel.row_slot = options.features;
  kernel.column_slot = 2 * options.features;
  switch (options.form) {
    case AttentionForm::gat:
      kernel.by_rows = short_gat_by_rows_bf16[index];
      kernel.by_columns = short_gat_by_columns_bf16[index];
      kernel.row_slot = options.heads;
      // Pairs of features are stored at once, so that rows are even.
      kernel.column_slot = options.features + (options.heads + 1) / 2 * 2;
      kernel.state_numbers = 4;
      if (short_head_widths[index] == kept_head_width) kernel.keeping = &short_gat_keeping_bf16;
      break;
    case AttentionForm::gatv2:
      kernel.by_rows = short_gatv2_by_rows_bf16[index];
      kernel.by_columns = short_gatv2_by_columns_bf16[index];
      kernel.store_vector = attention_backward_bf16.store_vector;
      break;
    default:
      kernel.by_rows = short_dot_by_rows_bf16[index];
      kernel.by_columns = short_dot_by_columns_bf16[index];
  }
}

WindowKernel window_kernel(const AttentionOptions& options) {
  WindowKernel kernel{function_of(options), static_cast<int>(options.heads), 1};
  kernel.height = short_attention_height;
  kernel.warps_per_worker = 1;
  if (has_gradient(options)) set_gradient(options, kernel);
  return kernel;
}

double predicted_backward_us(const AttentionProblem& problem, double forward) {
  const AttentionOptions& options = problem.options;
  const DeviceTraits& traits = device_traits(options.device);
  if (!has_gradient(options)) return predict_rows_backward_us(problem, traits);
  if (options.form == AttentionForm::gat) return predict_short_gat_backward_us(problem, traits);
  if (options.form == AttentionForm::dot) return predict_short_dot_backward_us(problem, traits);
  // As many forward passes: sums of masks cost as much as scores.
  return 3.3 * forward;
}

double predicted_us(const AttentionProblem& problem) {
  const double forward = predict_short_attention_us(problem, device_traits(problem.options.device));
  return problem.options.backward ? forward + predicted_backward_us(problem, forward) : forward;
}

}  // namespace

void append_cuda_short_attention(std::vector<AttentionKernel>& table) {
  table.push_back(windows_attention(
      {.name = "attention/cuda/short",
       .description =
           "windows of 16 rows on tensor cores, one warp each; backward in fp16 by rows, as are "
           "GATv2's heads of 128 features and operands on no boundaries of 16 bytes",
       .why_not = why_not,
       .predicted_us = predicted_us,
       .prepare = [](const AttentionProblem& problem) {
         return prepare_windows_attention(problem, window_kernel(problem.options));
       }}));
}

}  // namespace tessera::ops

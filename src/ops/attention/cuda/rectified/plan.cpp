// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/attention/cuda/fused/launch.hpp"
#include "ops/attention/cuda/kernels.hpp"
#include "ops/attention/cuda/rectified/cost.hpp"
#include "ops/attention/cuda/rectified/launch.hpp"
#include "ops/attention/cuda/rows/cost.hpp"
#include "ops/attention/cuda/tall/windows.hpp"

namespace tessera::ops {
namespace {

std::optional<std::size_t> width_index(const AttentionOptions& options) {
  const auto at =
      std::find(rectified_widths.begin(), rectified_widths.end(), options.features / options.heads);
  if (at == rectified_widths.end()) return std::nullopt;
  return static_cast<std::size_t>(at - rectified_widths.begin());
}

std::string why_not(const AttentionProblem& problem) {
  const AttentionOptions& options = problem.options;
  if (options.form != AttentionForm::gatv2) return "GATv2 only";
  if (bytes_per_element(options.precision) != 2) return "16-bit features only";
  if (options.dropout > 0) return "dropout, which asks for the number of every edge";
  if (!width_index(options)) return "heads of 32, 64 or 128 features only";
  return {};
}

bool has_gradient(const AttentionOptions& options) {
  return options.precision == Precision::bf16 && *width_index(options) < num_rectified_gradients;
}

double predicted_us(const AttentionProblem& problem) {
  const DeviceTraits& traits = device_traits(problem.options.device);
  const double forward = predict_rectified_attention_us(problem, traits);
  if (!problem.options.backward) return forward;
  // Each sweep computes the scores again, and sums of masks cost as much.
  return forward + (has_gradient(problem.options) ? 4.5 * forward
                                                  : predict_rows_backward_us(problem, traits));
}

WindowKernel window_kernel(const AttentionOptions& options) {
  const bool bf16 = options.precision == Precision::bf16;
  const std::size_t index = *width_index(options);
  WindowKernel kernel{(bf16 ? rectified_gatv2_bf16 : rectified_gatv2_fp16)[index],
                      static_cast<int>(options.heads), 1};
  if (has_gradient(options)) {
    kernel.by_rows = rectified_by_rows_bf16[index];
    kernel.by_columns = rectified_by_columns_bf16[index];
    kernel.gradient_slices = static_cast<int>(options.heads);
    kernel.row_slot = options.features;
    kernel.column_slot = 2 * options.features;
    kernel.store_vector = attention_backward_bf16.store_vector;
  }
  return kernel;
}

}  // namespace

void append_cuda_rectified_attention(std::vector<AttentionKernel>& table) {
  table.push_back(windows_attention(
      {.name = "attention/cuda/rectified",
       .description =
           "windows of 64 rows on tensor cores, minima of the features of two vertices as "
           "operands; "
           "backward on them for heads of up to 64 features in bf16, else by rows, as are operands "
           "on no boundaries of 16 bytes",
       .why_not = why_not,
       .predicted_us = predicted_us,
       .prepare = [](const AttentionProblem& problem) {
         return prepare_windows_attention(problem, window_kernel(problem.options));
       }}));
}

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/heads/cost.hpp"
#include "ops/attention/cuda/heads/launch.hpp"
#include "ops/attention/cuda/kernels.hpp"
#include "ops/attention/cuda/rows/cost.hpp"
#include "ops/attention/cuda/tall/windows.hpp"

namespace tessera::ops {
namespace {

const TallAttentionFunction& function_of(const AttentionOptions& options) {
  const HeadAttentionFunctions& functions = options.precision == Precision::bf16   ? heads_gat_bf16
                                            : options.precision == Precision::fp16 ? heads_gat_fp16
                                                                                   : heads_gat_fp32;
  return functions[*tall_width_index(options)];
}

bool has_gradient(const AttentionOptions& options) {
  return *tall_width_index(options) < num_gradient_widths;
}

WindowKernel window_kernel(const AttentionOptions& options) {
  const auto width = static_cast<int>(options.features / options.heads);
  const int features = head_block_features(width);
  WindowKernel kernel{function_of(options),
                      static_cast<int>((options.features + features - 1) / features),
                      width < features ? features / width : 1};
  if (has_gradient(options)) {
    const HeadGradientPasses& passes = options.precision == Precision::bf16   ? heads_gradient_bf16
                                       : options.precision == Precision::fp16 ? heads_gradient_fp16
                                                                              : heads_gradient_fp32;
    kernel.by_rows = passes.by_rows[*tall_width_index(options)];
    kernel.by_columns = passes.by_columns[*tall_width_index(options)];
    kernel.row_slot = gat_row_slot(options);
    kernel.column_slot = gat_column_slot(options);
  }
  return kernel;
}

std::string why_not(const AttentionProblem& problem) {
  const AttentionOptions& options = problem.options;
  if (options.precision == Precision::fp64) return "fp64 exists on the CPU only";
  if (options.form != AttentionForm::gat) return "scores that are no sums of two terms";
  if (options.dropout > 0) return "dropout, which asks for the number of every edge";
  if (!tall_width_index(options)) return "heads of 8, 16, 32, 64 or 128 features only";
  return {};
}

double predicted_us(const AttentionProblem& problem) {
  const DeviceTraits& traits = device_traits(problem.options.device);
  const double forward = predict_heads_attention_us(problem, traits);
  if (!problem.options.backward) return forward;
  // Both sweeps of the backward pass are what the forward pass is.
  return forward +
         (has_gradient(problem.options) ? 2 * forward : predict_rows_backward_us(problem, traits));
}

}  // namespace

void append_cuda_heads_attention(std::vector<AttentionKernel>& table) {
  table.push_back(windows_attention(
      {.name = "attention/cuda/heads",
       .description =
           "windows of 64 rows on tensor cores, rows of V scaled by factors of their vertices; "
           "narrow heads go back by products of signs, the rest, and operands on no boundaries "
           "of 16 bytes, by rows",
       .why_not = why_not,
       .predicted_us = predicted_us,
       .prepare = [](const AttentionProblem& problem) {
         return prepare_windows_attention(problem, window_kernel(problem.options));
       }}));
}

}  // namespace tessera::ops

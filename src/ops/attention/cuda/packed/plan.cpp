// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/kernels.hpp"
#include "ops/attention/cuda/packed/cost.hpp"
#include "ops/attention/cuda/packed/launch.hpp"
#include "ops/attention/cuda/tall/gat_backward.hpp"

namespace tessera::ops {
namespace {

std::string why_not(const AttentionProblem& problem) {
  const AttentionOptions& options = problem.options;
  if (options.precision != Precision::bf16) return "features in bf16 only";
  if (options.form != AttentionForm::gat) return "GAT only";
  if (!(options.negative_slope >= 0 && options.negative_slope <= 1)) {
    return "slopes of 0 to 1 only";
  }
  if (options.dropout > 0) return "dropout, which asks for the number of every edge";
  const std::optional<std::size_t> width = tall_width_index(options);
  if (!width || *width >= num_packed_widths) return "heads of 8 or 16 features only";
  return {};
}

double predicted_us(const AttentionProblem& problem) {
  const DeviceTraits& traits = device_traits(problem.options.device);
  const double forward = predict_packed_attention_us(problem, traits);
  if (!problem.options.backward) return forward;
  return forward + predict_gat_backward_us(problem, traits);
}

WindowKernel window_kernel(const AttentionOptions& options) {
  const std::size_t index = *tall_width_index(options);
  const std::size_t size = options.features > packed_block_features[0] ? 1 : 0;
  WindowKernel kernel;
  kernel.function = packed_gat_bf16[index][size];
  kernel.slice_heads = packed_block_features[size] / tall_head_widths[index];
  kernel.num_slices =
      static_cast<int>((options.heads + kernel.slice_heads - 1) / kernel.slice_heads);
  set_gat_gradient(options, kernel);
  return kernel;
}

}  // namespace

void append_cuda_packed_attention(std::vector<AttentionKernel>& table) {
  table.push_back(windows_attention({.name = "attention/cuda/packed",
                                     .description = "windows of 64 rows on tensor cores, weights "
                                                    "in fp16; operands on no boundaries of 16 "
                                                    "bytes go by rows",
                                     .why_not = why_not,
                                     .predicted_us = predicted_us,
                                     .prepare = [](const AttentionProblem& problem) {
                                       return prepare_windows_attention(
                                           problem, window_kernel(problem.options));
                                     }}));
}

}  // namespace tessera::ops

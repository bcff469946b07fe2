// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/kernels.hpp"
#include "ops/attention/cuda/packed/cost.hpp"
#include "ops/attention/cuda/packed/launch.hpp"
#include "ops/attention/cuda/tall/dot_backward.hpp"
#include "ops/attention/cuda/tall/gat_backward.hpp"

namespace tessera::ops {
namespace {

constexpr const char* kernel_name = "attention/cuda/packed";

bool is_gat(const AttentionOptions& options) { return options.form == AttentionForm::gat; }

std::string why_not(const AttentionProblem& problem) {
  const AttentionOptions& options = problem.options;
  if (options.precision != Precision::bf16) return "features in bf16 only";
  if (!is_gat(options) && options.form != AttentionForm::dot) return "GAT and dot products only";
  if (is_gat(options) && !(options.negative_slope >= 0 && options.negative_slope <= 1)) {
    return "slopes of 0 to 1 only";
  }
  if (options.dropout > 0) return "dropout, which asks for the number of every edge";
  if (!tall_width_index(options)) return "heads of 8, 16, 32, 64 or 128 features only";
  if (!is_gat(options) && *tall_width_index(options) < first_packed_dot) {
    return "dot products of heads of 64 or 128 features only";
  }
  // One rounding to bf16 moves results by more than their own rounding does.
  const bool rounds_once = *tall_width_index(options) >= num_packed_widths;
  if (rounds_once && options.kernel != kernel_name) {
    return "weights of wide heads are rounded to bf16, which has to be asked for by name";
  }
  return {};
}

double predicted_us(const AttentionProblem& problem) {
  const DeviceTraits& traits = device_traits(problem.options.device);
  const double forward = predict_packed_attention_us(problem, traits);
  if (!problem.options.backward) return forward;
  return forward + (is_gat(problem.options) ? predict_gat_backward_us(problem, traits)
                                            : predict_dot_backward_us(problem, traits));
}

WindowKernel gat_kernel(const AttentionOptions& options) {
  const std::size_t index = *tall_width_index(options);
  WindowKernel kernel;
  if (index < num_packed_widths) {
    const std::size_t size = options.features > packed_block_features[0] ? 1 : 0;
    kernel.function = packed_gat_bf16[index][size];
    kernel.slice_heads = packed_block_features[size] / tall_head_widths[index];
  } else {
    kernel.function = packed_wide_gat_bf16[index - num_packed_widths];
  }
  kernel.num_slices =
      static_cast<int>((options.heads + kernel.slice_heads - 1) / kernel.slice_heads);
  set_gat_gradient(options, kernel);
  return kernel;
}

WindowKernel dot_kernel(const AttentionOptions& options) {
  WindowKernel kernel{packed_dot_bf16[*tall_width_index(options) - first_packed_dot],
                      static_cast<int>(options.heads), 1};
  set_dot_gradient(options, kernel);
  return kernel;
}

WindowKernel window_kernel(const AttentionOptions& options) {
  return is_gat(options) ? gat_kernel(options) : dot_kernel(options);
}

}  // namespace

void append_cuda_packed_attention(std::vector<AttentionKernel>& table) {
  table.push_back(windows_attention({.name = kernel_name,
                                     .description = "windows of 64 rows on tensor cores, weights "
                                                    "in fp16 or, of wide heads, in bf16; operands "
                                                    "on no boundaries of 16 bytes go by rows",
                                     .why_not = why_not,
                                     .predicted_us = predicted_us,
                                     .prepare = [](const AttentionProblem& problem) {
                                       return prepare_windows_attention(
                                           problem, window_kernel(problem.options));
                                     }}));
}

}  // namespace tessera::ops

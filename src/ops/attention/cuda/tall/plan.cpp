// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/kernels.hpp"
#include "ops/attention/cuda/tall/cost.hpp"
#include "ops/attention/cuda/tall/dot_backward.hpp"
#include "ops/attention/cuda/tall/gat_backward.hpp"
#include "ops/attention/cuda/tall/windows.hpp"

namespace tessera::ops {
namespace {

const TallAttentionFunction& function_of(const AttentionOptions& options) {
  if (bytes_per_element(options.precision) == 4) return tall_dot_fp32[*tall_width_index(options)];
  const bool bf16 = options.precision == Precision::bf16;
  const TallAttentionFunctions& functions = options.form == AttentionForm::gat
                                                ? (bf16 ? tall_gat_bf16 : tall_gat_fp16)
                                                : (bf16 ? tall_dot_bf16 : tall_dot_fp16);
  return functions[*tall_width_index(options)];
}

std::string why_not(const AttentionProblem& problem) {
  const AttentionOptions& options = problem.options;
  if (options.precision == Precision::fp64) return "fp64 exists on the CPU only";
  const bool wide = bytes_per_element(options.precision) == 4;
  if (wide && options.form == AttentionForm::gat) return "GAT of 16-bit features only";
  if (options.form == AttentionForm::gatv2) return "scores that are no products of matrices";
  if (options.form == AttentionForm::cosine) return "scores that are no plain dot products";
  if (options.dropout > 0) return "dropout, which asks for the number of every edge";
  if (!tall_width_index(options)) return "heads of 8, 16, 32, 64 or 128 features only";
  if (wide && *tall_width_index(options) >= num_plane_widths) {
    return "heads of 128 features in 16 bits only";
  }
  return {};
}

WindowKernel window_kernel(const AttentionOptions& options) {
  const int heads = tall_block_heads(tall_head_widths[*tall_width_index(options)]);
  WindowKernel kernel{function_of(options), static_cast<int>((options.heads + heads - 1) / heads),
                      heads};
  if (options.form == AttentionForm::gat) {
    set_gat_gradient(options, kernel);
  } else {
    set_dot_gradient(options, kernel);
  }
  return kernel;
}

double predicted_us(const AttentionProblem& problem) {
  const DeviceTraits& traits = device_traits(problem.options.device);
  const double forward = predict_tall_attention_us(problem, traits);
  if (!problem.options.backward) return forward;
  return forward + (problem.options.form == AttentionForm::gat
                        ? predict_gat_backward_us(problem, traits)
                        : predict_dot_backward_us(problem, traits));
}

}  // namespace

void append_cuda_tall_attention(std::vector<AttentionKernel>& table) {
  table.push_back(windows_attention(
      {.name = "attention/cuda/tall",
       .description =
           "windows of 64 rows on tensor cores, weights computed as operands; backward by rows for "
           "dot products and wide heads in fp16, and for operands on no boundaries of 16 bytes",
       .why_not = why_not,
       .predicted_us = predicted_us,
       .prepare = [](const AttentionProblem& problem) {
         return prepare_windows_attention(problem, window_kernel(problem.options));
       }}));
}

}  // namespace tessera::ops

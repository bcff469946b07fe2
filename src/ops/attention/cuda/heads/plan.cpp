// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/heads/cost.hpp"
#include "ops/attention/cuda/heads/launch.hpp"
#include "ops/attention/cuda/kernels.hpp"
#include "ops/attention/cuda/tall/gat_backward.hpp"

namespace tessera::ops {
namespace {

const TallAttentionFunction& function_of(const AttentionOptions& options) {
  const HeadAttentionFunctions& functions = options.precision == Precision::bf16   ? heads_gat_bf16
                                            : options.precision == Precision::fp16 ? heads_gat_fp16
                                                                                   : heads_gat_fp32;
  return functions[*tall_width_index(options)];
}

WindowKernel window_kernel(const AttentionOptions& options) {
  const auto width = static_cast<int>(options.features / options.heads);
  const int features = head_block_features(width);
  WindowKernel kernel{function_of(options),
                      static_cast<int>((options.features + features - 1) / features),
                      width < features ? features / width : 1};
  set_gat_gradient(options, kernel);
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
  return forward + predict_gat_backward_us(problem, traits);
}

}  // namespace

void append_cuda_heads_attention(std::vector<AttentionKernel>& table) {
  table.push_back(windows_attention(
      {.name = "attention/cuda/heads",
       .description =
           "windows of 64 rows on tensor cores, rows of V scaled by factors of their vertices; "
           "wide heads in fp16 go back by rows, and so do operands on no boundaries of 16 bytes",
       .why_not = why_not,
       .predicted_us = predicted_us,
       .prepare = [](const AttentionProblem& problem) {
         return prepare_windows_attention(problem, window_kernel(problem.options));
       }}));
}

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "ops/attention/cuda/heads/cost.hpp"
#include "ops/attention/cuda/heads/launch.hpp"
#include "ops/attention/cuda/kernels.hpp"
#include "ops/attention/cuda/packed/cost.hpp"
#include "ops/attention/cuda/packed/launch.hpp"
#include "ops/attention/cuda/tall/windows.hpp"

namespace tessera::ops {
namespace {

static_assert(num_packed_widths == num_gradient_widths);

std::string why_not(const AttentionProblem& problem) {
  const AttentionOptions& options = problem.options;
  if (options.precision != Precision::bf16) return "features in bf16 only";
  if (options.form != AttentionForm::gat) return "scores that are no sums of two terms";
  if (options.dropout > 0) return "dropout, which asks for the number of every edge";
  const auto width = tall_width_index(options);
  if (!width || *width >= num_packed_widths) return "heads of 8 or 16 features only";
  return {};
}

double predicted_us(const AttentionProblem& problem) {
  const DeviceTraits& traits = device_traits(problem.options.device);
  const double forward = predict_packed_attention_us(problem, traits);
  if (!problem.options.backward) return forward;
  return forward + 2 * predict_heads_attention_us(problem, traits);
}

WindowKernel window_kernel(const AttentionOptions& options) {
  const std::size_t index = *tall_width_index(options);
  const auto slices = (options.features + packed_block_features - 1) / packed_block_features;
  return {packed_gat_bf16[index],
          static_cast<int>(slices),
          packed_block_features / tall_head_widths[index],
          heads_gradient_bf16.by_rows[index],
          heads_gradient_bf16.by_columns[index],
          gat_row_slot(options),
          gat_column_slot(options)};
}

}  // namespace

void append_cuda_packed_attention(std::vector<AttentionKernel>& table) {
  AttentionKernel kernel;
  kernel.info.name = "attention/cuda/packed";
  kernel.info.description =
      "windows of 64 rows on tensor cores, weights of two cells at once in fp16; backward by "
      "products of signs, operands on no boundaries of 16 bytes by rows";
  kernel.info.op = "attention";
  kernel.info.device = DeviceKind::cuda;
  kernel.info.strict = false;
  kernel.info.exact_nonfinite = false;
  kernel.info.repeated_edges = false;
  kernel.why_not = why_not;
  kernel.predicted_us = predicted_us;
  kernel.prepare = [](const AttentionProblem& problem) -> std::unique_ptr<const PreparedAttention> {
    return prepare_windows_attention(problem, window_kernel(problem.options));
  };
  table.push_back(std::move(kernel));
}

}  // namespace tessera::ops

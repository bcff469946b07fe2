// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "ops/attention/cuda/cost.hpp"
#include "ops/attention/cuda/kernels.hpp"
#include "ops/attention/cuda/short/launch.hpp"
#include "ops/attention/cuda/windows.hpp"
#include "ops/cuda/cuda_kernel.hpp"

namespace tessera::ops {
namespace {

std::optional<std::size_t> kernel_index(const AttentionOptions& options) {
  return options.form == AttentionForm::gatv2 ? width_index(short_gatv2_widths, options)
                                              : width_index(short_head_widths, options);
}

std::string why_not(const AttentionProblem& problem) {
  const AttentionOptions& options = problem.options;
  if (options.form == AttentionForm::cosine) return "scores that are no plain dot products";
  if (bytes_per_element(options.precision) != 2) return "16-bit features only";
  if (options.form == AttentionForm::gat && options.precision != Precision::bf16) {
    return "GAT in bf16 only, as fp16 has too small a range for factors";
  }
  if (options.dropout > 0) return "dropout, which asks for the number of every edge";
  if (!kernel_index(options)) return "heads of 64 or 128 features only, in GATv2 of 32, too";
  return {};
}

bool has_gradient(const AttentionOptions& options) {
  if (options.precision != Precision::bf16) return false;
  return options.form != AttentionForm::gatv2 ||
         *kernel_index(options) < short_gatv2_gradient_widths.size();
}

const WindowsFunction& function_of(const AttentionOptions& options) {
  const bool bf16 = options.precision == Precision::bf16;
  const std::size_t index = *kernel_index(options);
  switch (options.form) {
    case AttentionForm::gat: return short_gat_bf16[index];
    case AttentionForm::gatv2: return (bf16 ? short_gatv2_bf16 : short_gatv2_fp16)[index];
    default: return (bf16 ? short_dot_bf16 : short_dot_fp16)[index];
  }
}

void set_gradient(const AttentionOptions& options, WindowKernel& kernel) {
  const std::size_t index = *kernel_index(options);
  kernel.gradient_slices = kernel.num_slices;
  kernel.row_slot = options.features;
  kernel.column_slot = 2 * options.features;
  switch (options.form) {
    case AttentionForm::gat:
      kernel.gradient = short_gat_gradient_bf16[index];
      kernel.row_slot = options.heads;
      // Pairs of features are stored at once, so that rows are even.
      kernel.column_slot = options.features + (options.heads + 1) / 2 * 2;
      kernel.state_numbers = 4;
      if (short_head_widths[index] == kept_head_width) kernel.keeping = &short_gat_keeping_bf16;
      break;
    case AttentionForm::gatv2: kernel.gradient = short_gatv2_gradient_bf16[index]; break;
    default: kernel.gradient = short_dot_gradient_bf16[index];
  }
}

WindowKernel window_kernel(const AttentionOptions& options) {
  WindowKernel kernel{function_of(options), static_cast<int>(options.heads), 1};
  kernel.height = short_window_height;
  kernel.warps_per_worker = 1;
  if (has_gradient(options)) set_gradient(options, kernel);
  return kernel;
}

double predicted_us(const AttentionProblem& problem) {
  const DeviceTraits& traits = device_traits(problem.options.device);
  const double forward = predict_short_attention_us(problem, traits);
  const double backward = !problem.options.backward ? 0
                          : has_gradient(problem.options)
                              ? predict_short_backward_us(problem, traits)
                              : predict_rows_backward_us(problem, traits);
  return forward + backward;
}

}  // namespace

void append_cuda_short_attention(std::vector<AttentionKernel>& table) {
  table.push_back(
      {windows_info(
           "attention", "short",
           "windows of 16 rows on tensor cores, one warp each; backward in fp16 by rows, "
           "as are GATv2's heads of 128 features and operands on no boundaries of 16 bytes"),
       why_not, predicted_us, [](const AttentionProblem& problem) {
         return prepare_windows_attention(problem, window_kernel(problem.options));
       }});
}

}  // namespace tessera::ops

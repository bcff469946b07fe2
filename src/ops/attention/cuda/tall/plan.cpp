// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/cost.hpp"
#include "ops/attention/cuda/kernels.hpp"
#include "ops/attention/cuda/tall/launch.hpp"
#include "ops/attention/cuda/windows.hpp"
#include "ops/cuda/cuda_kernel.hpp"
#include "ops/plan/cost_fits.hpp"

namespace tessera::ops {
namespace {

bool is_fp32(const AttentionOptions& options) { return bytes_per_element(options.precision) == 4; }
bool is_bf16(const AttentionOptions& options) { return options.precision == Precision::bf16; }
int num_blocks(std::int64_t all, std::int64_t of_block) {
  return static_cast<int>((all + of_block - 1) / of_block);
}

std::string why_not(const AttentionProblem& problem) {
  const AttentionOptions& options = problem.options;
  if (options.precision == Precision::fp64) return "fp64 exists on the CPU only";
  if (options.form == AttentionForm::gatv2) return "scores that are no products of matrices";
  if (options.form == AttentionForm::cosine) return "scores that are no plain dot products";
  if (options.dropout > 0) return "dropout, which asks for the number of every edge";
  const std::optional<std::size_t> width = width_index(tall_head_widths, options);
  if (!width) return "heads of 8, 16, 32, 64 or 128 features only";
  if (options.form == AttentionForm::dot) {
    if (*width < (is_fp32(options) ? plane_dot_widths.size() : tall_dot_widths.size())) return {};
    return "heads of dot products of up to 64 features in fp32, 32 in 16 bits";
  }
  const bool factors_serve = options.negative_slope >= 0 && options.negative_slope <= 1;
  if (tall_kind(options) == TallKind::packed_gat && !factors_serve) {
    return "slopes of 0 to 1 only in bf16 with heads of 8 or 16 features";
  }
  return {};
}

void set_dots(const AttentionOptions& options, WindowKernel& kernel) {
  const std::size_t index = *width_index(tall_head_widths, options);
  kernel.slice_heads = tall_block_heads(tall_head_widths[index]);
  kernel.num_slices = num_blocks(options.heads, kernel.slice_heads);
  kernel.gradient_slices = kernel.num_slices;
  kernel.row_slot = options.features;
  kernel.column_slot = 2 * options.features;
  if (is_fp32(options)) {
    kernel.function = tall_dot_fp32[index];
    kernel.gradient = tall_dot_gradient_fp32[index];
  } else if (is_bf16(options)) {
    kernel.function = tall_dot_bf16[index];
    kernel.gradient = tall_dot_gradient_bf16[index];
  } else {
    kernel.function = tall_dot_fp16[index];
  }
}

/// What sweeps by factors of columns leave: a number per head by rows, four of them for the sweep
/// over columns, and by columns one beside the features.
void set_gradient_by_factors(const AttentionOptions& options, WindowKernel& kernel) {
  kernel.row_slot = options.heads;
  // Pairs of features are stored at once, so that rows are even.
  kernel.column_slot = options.features + (options.heads + 1) / 2 * 2;
  kernel.state_numbers = 4;
}
void set_wide_gradient(const AttentionOptions& options, const SweepsOf<wide_head_widths>& sweeps,
                       WindowKernel& kernel) {
  set_gradient_by_factors(options, kernel);
  kernel.gradient = sweeps[*width_index(tall_head_widths, options) - narrow_head_widths.size()];
  kernel.gradient_slices = static_cast<int>(options.heads);
}

void set_scaled_gat(const AttentionOptions& options, WindowKernel& kernel) {
  const std::size_t index = *width_index(tall_head_widths, options);
  const int width = tall_head_widths[index];
  const int features = scaled_block_features(width);
  kernel.function = (is_fp32(options) ? scaled_gat_fp32 : scaled_gat_fp16)[index];
  kernel.slice_heads = width < features ? features / width : 1;
  kernel.num_slices = num_blocks(options.features, features);
  if (index < narrow_head_widths.size()) {
    kernel.gradient = (is_fp32(options) ? scaled_gradient_fp32 : scaled_gradient_fp16)[index];
    kernel.gradient_slices = kernel.num_slices;
    kernel.row_slot = 3 * options.heads;
    kernel.column_slot = options.features + options.heads;
  } else if (is_fp32(options)) {
    set_wide_gradient(options, factored_gradient_fp32, kernel);
  }
}

void set_packed_gat(const AttentionOptions& options, WindowKernel& kernel) {
  const std::size_t index = *width_index(tall_head_widths, options);
  const int width = tall_head_widths[index];
  const std::size_t size = options.features > packed_block_features[0] ? 1 : 0;
  kernel.function = packed_gat_bf16[index][size];
  kernel.slice_heads = packed_block_features[size] / width;
  kernel.num_slices = num_blocks(options.heads, kernel.slice_heads);
  if (size == 0) return;  // few features go back by rows
  set_gradient_by_factors(options, kernel);
  kernel.gradient = packed_gradient_bf16[index];
  kernel.gradient_slices = num_blocks(options.heads, packed_gradient_features / width);
  kernel.finds_largest = true;
}

void set_factored_gat(const AttentionOptions& options, WindowKernel& kernel) {
  kernel.function =
      factored_gat_bf16[*width_index(tall_head_widths, options) - narrow_head_widths.size()];
  kernel.num_slices = static_cast<int>(options.heads);
  set_wide_gradient(options, factored_gradient_bf16, kernel);
}

WindowKernel window_kernel(const AttentionOptions& options) {
  WindowKernel kernel;
  switch (tall_kind(options)) {
    case TallKind::dots: set_dots(options, kernel); break;
    case TallKind::scaled_gat: set_scaled_gat(options, kernel); break;
    case TallKind::packed_gat: set_packed_gat(options, kernel); break;
    case TallKind::factored_gat: set_factored_gat(options, kernel); break;
  }
  return kernel;
}

double predicted_us(const AttentionProblem& problem) {
  const AttentionOptions& options = problem.options;
  const DeviceTraits& traits = device_traits(options.device);
  const double forward = predict_tall_attention_us(problem, traits);
  const double backward = !options.backward ? 0
                          : window_kernel(options).gradient.by_rows.launch == nullptr
                              ? predict_rows_backward_us(problem, traits)
                              : predict_tall_backward_us(problem, traits);
  return fitted_us(cost_fits::attention_tall, forward + backward);
}

}  // namespace

void append_cuda_tall_attention(std::vector<AttentionKernel>& table) {
  table.push_back(
      {windows_info("attention", "tall",
                    "windows of 64 rows on tensor cores, weights computed as operands; backward by "
                    "rows for dot products and wide heads in fp16, and for operands on no "
                    "boundaries of 16 bytes"),
       why_not, predicted_us, [](const AttentionProblem& problem) {
         return prepare_windows_attention(problem, window_kernel(problem.options));
       }});
}

}  // namespace tessera::ops

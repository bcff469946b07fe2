// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <optional>

#include "graph/degrees.hpp"
#include "ops/attention/cuda/cost.hpp"
#include "ops/attention/cuda/kernels.hpp"
#include "ops/attention/cuda/pairs/launch.hpp"
#include "ops/attention/cuda/row_side.hpp"
#include "ops/attention/cuda/total_sums.hpp"
#include "ops/cuda/boundaries.hpp"
#include "ops/plan/cost_fits.hpp"

namespace tessera::ops {
namespace {

bool has_gradient(const AttentionOptions& options) {
  return *width_index(pair_widths, options) < num_pair_gradients;
}

/// A head for a block, two rows for a warp.
LaneShape shape_of(const AttentionOptions& options) {
  return {.lanes = 16, .num_slices = static_cast<unsigned>(options.heads), .log_lanes = 4};
}

AttentionRows rows_of(const ConstOperand& operand) {
  return {operand.data, static_cast<std::uint32_t>(stride_bytes(operand)), 0};
}
AttentionSums sums_of(const Operand& operand) { return {operand.data, operand.stride}; }

/// GATv2 by pairs of rows. What the kernels are not for goes by rows: the backward pass of wide
/// heads, and runs whose operands lie on no boundaries of 16 bytes.
class CudaPairsAttention final : public PreparedAttention {
 public:
  explicit CudaPairsAttention(const AttentionProblem& problem)
      : options_(problem.options),
        shape_(shape_of(options_)),
        width_(*width_index(pair_widths, options_)),
        row_side_(cuda::device_rows(problem.graph, options_.place()), *row_degrees(problem.graph),
                  shape_, options_),
        by_rows_(prepare_rows_attention(problem)) {
    slots_ = workspace_.add<float>(checked_area(row_side_.schedule.num_slots, slot_size()));
    std::int64_t cut_rows = row_side_.schedule.num_cut_rows;
    if (options_.backward && has_gradient(options_)) {
      column_side_ = AttentionSide(cuda::device_columns(problem.graph, options_.place()),
                                   *column_degrees(problem.graph), shape_, options_);
      cut_rows = std::max<std::int64_t>(cut_rows, column_side_.schedule.num_cut_rows);
      prepare_backward(problem.graph);
    }
    workspace_.add_counters(checked_area(cut_rows, options_.heads));
    workspace_.cover(by_rows_->workspace());
  }

  void run(const AttentionInputs& inputs, const AttentionOutputs& outputs, Stream stream,
           const WorkspaceView& workspace) const override {
    if (!fit({inputs.target, inputs.source, inputs.value, outputs.output})) {
      by_rows_->run(inputs, outputs, stream, workspace);
      return;
    }
    RowsAttentionLaunch launch = launch_of(inputs, row_side_, workspace);
    launch.num_blocks = blocks_of(row_side_, forward_items());
    launch.own_scores = rows_of(inputs.target);
    launch.gathered_scores = rows_of(inputs.source);
    launch.gathered_values = rows_of(inputs.value);
    launch.output = sums_of(outputs.output);
    launch.log_sum = static_cast<float*>(outputs.log_sum.data);
    launch.log_sum_stride = outputs.log_sum.stride;
    launch.slots = slots_.in(workspace);
    launch.slot_size = slot_size();
    (is_bf16() ? pair_forward_bf16 : pair_forward_fp16)[width_](launch, stream);
  }

  void run_backward(const AttentionInputs& inputs, ConstOperand output, ConstOperand log_sum,
                    ConstOperand grad_output, const AttentionGradOutputs& gradients, Stream stream,
                    const WorkspaceView& workspace) const override {
    if (column_side_.rows == nullptr ||
        !fit({inputs.target, inputs.source, inputs.value, output, grad_output, gradients.target,
              gradients.source, gradients.value})) {
      by_rows_->run_backward(inputs, output, log_sum, grad_output, gradients, stream, workspace);
      return;
    }
    const bool of_vector = !gradients.vector.absent();
    RowsAttentionLaunch launch = launch_of(inputs, row_side_, workspace);
    launch.num_blocks = gradient_blocks(row_side_);
    launch.own_scores = rows_of(inputs.target);
    launch.gathered_scores = rows_of(inputs.source);
    launch.own_values = rows_of(grad_output);
    launch.gathered_values = rows_of(inputs.value);
    launch.outputs = rows_of(output);
    launch.log_sum = static_cast<float*>(const_cast<void*>(log_sum.data));
    launch.log_sum_stride = log_sum.stride;
    launch.row_state = row_state_.in(workspace);
    launch.score_gradient = sums_of(gradients.target);
    launch.slots = gradient_slots_.in(workspace);
    launch.slot_size = options_.features;
    if (of_vector) launch.vector_sums = vector_sums_.in(workspace);
    (is_bf16() ? pair_by_rows_bf16 : pair_by_rows_fp16)[width_](launch, stream);
    if (gradients.source.absent() && gradients.value.absent() && !of_vector) return;
    sweep_columns(inputs, grad_output, gradients, stream, workspace);
    if (!of_vector) return;
    store_vector(vector_sums_.in(workspace), num_warps(row_side_) + num_warps(column_side_),
                 gradients.vector, stream);
  }

  void weights(const AttentionInputs& inputs, ConstOperand log_sum, Operand weights, Stream stream,
               const WorkspaceView& workspace) const override {
    by_rows_->weights(inputs, log_sum, weights, stream, workspace);
  }

  WorkspaceNeed workspace() const override { return workspace_; }

  const char* backward_kernel() const override {
    return options_.backward && column_side_.rows == nullptr ? "attention/cuda/rows" : nullptr;
  }

 private:
  bool is_bf16() const { return options_.precision == Precision::bf16; }
  /// Features, bases and sums of all heads.
  std::int64_t slot_size() const { return options_.features + 2 * options_.heads; }

  void prepare_backward(const Graph& graph) {
    WorkspaceNeed need;
    row_state_ = need.add<AttentionRowState>(checked_area(graph.num_rows(), options_.heads));
    gradient_slots_ = need.add<float>(
        std::max(checked_area(row_side_.schedule.num_slots, options_.features),
                 checked_area(column_side_.schedule.num_slots, 2 * options_.features)));
    vector_sums_ = need.add<float>(
        checked_area(num_warps(row_side_) + num_warps(column_side_), options_.features));
    workspace_.cover(need);
  }

  void sweep_columns(const AttentionInputs& inputs, const ConstOperand& grad_output,
                     const AttentionGradOutputs& gradients, Stream stream,
                     const WorkspaceView& workspace) const {
    RowsAttentionLaunch launch = launch_of(inputs, column_side_, workspace);
    launch.num_blocks = gradient_blocks(column_side_);
    launch.own_scores = rows_of(inputs.source);
    launch.gathered_scores = rows_of(inputs.target);
    launch.own_values = rows_of(inputs.value);
    launch.gathered_values = rows_of(grad_output);
    launch.row_state = row_state_.in(workspace);
    launch.score_gradient = sums_of(gradients.source);
    launch.value_gradient = sums_of(gradients.value);
    launch.slots = gradient_slots_.in(workspace);
    launch.slot_size = 2 * options_.features;
    if (!gradients.vector.absent()) {
      launch.vector_sums = vector_sums_.in(workspace) + num_warps(row_side_) * options_.features;
    }
    (is_bf16() ? pair_by_columns_bf16 : pair_by_columns_fp16)[width_](launch, stream);
  }

  RowsAttentionLaunch launch_of(const AttentionInputs& inputs, const AttentionSide& side,
                                const WorkspaceView& workspace) const {
    RowsAttentionLaunch launch = side.launch(options_, inputs, workspace);
    launch.shape = shape_;
    return launch;
  }

  /// Items of a warp: what it finds out before its first serves the others, as long as the GPU has
  /// warps enough.
  std::int64_t forward_items() const {
    constexpr std::int64_t resident_warps = 16, most = 4;
    const std::int64_t warps =
        device_traits(options_.device).processors * resident_warps * options_.heads;
    return std::clamp<std::int64_t>(items_of(row_side_) * options_.heads / warps, 1, most);
  }
  /// No more than a GPU holds at once: a warp's part of the gradient of a costs as much as some of
  /// its rows.
  unsigned gradient_blocks(const AttentionSide& side) const {
    const std::int64_t most = device_traits(options_.device).processors * std::int64_t{8};
    return static_cast<unsigned>(std::clamp<std::int64_t>(blocks_of(side, 2), 1, most));
  }
  std::int64_t num_warps(const AttentionSide& side) const {
    return std::int64_t{gradient_blocks(side)} * rows_attention_warps;
  }
  std::int64_t items_of(const AttentionSide& side) const {
    const std::int64_t rows = shape_.groups();
    return side.schedule.pieces.size() + (std::int64_t{side.rows->num_rows} + rows - 1) / rows;
  }
  unsigned blocks_of(const AttentionSide& side, std::int64_t items_per_warp) const {
    const std::int64_t per_block = rows_attention_warps * items_per_warp;
    return static_cast<unsigned>((items_of(side) + per_block - 1) / per_block);
  }

  bool fit(std::initializer_list<ConstOperand> operands) const {
    return std::all_of(operands.begin(), operands.end(), [&](const ConstOperand& operand) {
      return operand.absent() ||
             (on_boundaries(operand, options_.features / options_.heads) && within_reach(operand));
    });
  }

  AttentionOptions options_;
  LaneShape shape_;
  std::size_t width_;  ///< among `pair_widths`
  AttentionSide row_side_;
  AttentionSide column_side_;  ///< where there is a backward pass
  std::unique_ptr<const PreparedAttention> by_rows_;
  WorkspaceNeed workspace_;
  WorkspacePart<float> slots_;
  WorkspacePart<AttentionRowState> row_state_;
  WorkspacePart<float> gradient_slots_;
  WorkspacePart<float> vector_sums_;  ///< of the warps of the sweep over rows, then of the other
};

std::string why_not(const AttentionProblem& problem) {
  const AttentionOptions& options = problem.options;
  if (options.form != AttentionForm::gatv2) return "GATv2 only";
  if (bytes_per_element(options.precision) != 2) return "16-bit features only";
  if (options.dropout > 0) return "dropout, which asks for the number of every edge";
  if (!width_index(pair_widths, options)) return "heads of 32, 64 or 128 features only";
  return {};
}

double predicted_us(const AttentionProblem& problem) {
  const DeviceTraits& traits = device_traits(problem.options.device);
  const double forward = predict_pairs_attention_us(problem, traits);
  const double backward = !problem.options.backward ? 0
                          : has_gradient(problem.options)
                              ? predict_pairs_backward_us(problem, traits)
                              : predict_rows_backward_us(problem, traits);
  return fitted_us(cost_fits::attention_pairs, forward + backward);
}

}  // namespace

void append_cuda_pairs_attention(std::vector<AttentionKernel>& table) {
  table.push_back(
      {.info = {.name = "attention/cuda/pairs",
                .description =
                    "eight edges of two rows at a time on tensor cores; backward of heads of 128 "
                    "features by rows, as are operands on no boundaries of 16 bytes",
                .op = "attention",
                .device = DeviceKind::cuda,
                .strict = false,
                .exact_nonfinite = false},
       .why_not = why_not,
       .predicted_us = predicted_us,
       .prepare = [](const AttentionProblem& problem) -> std::unique_ptr<const PreparedAttention> {
         return std::make_unique<CudaPairsAttention>(problem);
       }});
}

}  // namespace tessera::ops

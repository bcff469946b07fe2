// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "cuda/symmetry.hpp"
#include "graph/degrees.hpp"
#include "ops/attention/cuda/cost.hpp"
#include "ops/attention/cuda/kernels.hpp"
#include "ops/attention/cuda/row_side.hpp"
#include "ops/attention/cuda/rows/cosine.hpp"
#include "ops/attention/cuda/rows/lane_choice.hpp"
#include "ops/attention/cuda/total_sums.hpp"
#include "ops/attention/cuda/weights.hpp"
#include "ops/cuda/boundaries.hpp"
#include "ops/cuda/kernel_table.hpp"
#include "ops/plan/cost_fits.hpp"

namespace tessera::ops {
namespace {

constexpr auto rows_keys = collect_keys<RowsAttentionKey>([](auto add) {
  using enum AttentionForm;
  for (const Precision precision : kernel_precisions) {
    for (const AttentionForm form : {gat, gatv2, dot, cosine}) add({precision, form});
  }
});

/// Of a type and form; `mutual` is for cosines.
struct RowsKernels {
  const ByLanes<RowsAttentionFunction>& forward;
  const RowsAttentionBackward& backward;
  const ByLanes<MutualFunction>& mutual;
};

RowsKernels kernels_for(const AttentionOptions& options) {
  const RowsAttentionKey key{stored_as(options.precision), options.form};
  return {*kernels_of<rows_keys, RowsForwardKernels>(key),
          *kernels_of<rows_keys, RowsBackwardKernels>(key),
          *kernels_of<MutualKernels>(key.precision)};
}

AttentionRows rows_of(const ConstOperand& operand) {
  if (operand.absent()) return {};
  return {operand.data, static_cast<std::uint32_t>(stride_bytes(operand)),
          static_cast<VertexId>(std::max<std::int64_t>(0, operand.rows - 1))};
}
AttentionSums sums_of(const Operand& operand) { return {operand.data, operand.stride}; }

/// Attention by rows: forward over rows; backward over rows, then over columns. Cosines over a
/// graph whose edges all go both ways are differentiated in one sweep, unless dropout tells the
/// twins apart.
class CudaRowsAttention final : public PreparedAttention {
 public:
  explicit CudaRowsAttention(const AttentionProblem& problem)
      : problem_(problem),
        kernels_(kernels_for(options_)),
        score_cols_(options_.form == AttentionForm::gat ? options_.heads : options_.features) {
    const LaneShape shape = LaneShape::of(options_.heads, options_.features / options_.heads,
                                          expected_lane_vectors(problem));
    const Place place = options_.place();
    row_side_ =
        AttentionSide(cuda::device_rows(graph_, place), *row_degrees(graph_), shape, options_);
    if (is_cosine()) inverse_lengths_ = workspace_.add<float>(graph_.num_rows());
    slots_ = workspace_.add<float>(checked_area(row_side_.schedule.num_slots, slot_size(keeps())));
    std::int64_t cut_rows = row_side_.schedule.num_cut_rows;
    if (options_.backward) {
      mutual_ = is_cosine() && options_.dropout == 0 && cuda::is_symmetric(graph_, place);
      if (!mutual_) {
        column_side_ = AttentionSide(cuda::device_columns(graph_, place), *column_degrees(graph_),
                                     shape, options_);
        cut_rows = std::max<std::int64_t>(cut_rows, column_side_.schedule.num_cut_rows);
      }
      prepare_backward();
    }
    // A slice has a head at least. The last counter is that of all blocks.
    workspace_.add_counters(checked_area(cut_rows, options_.heads) + 1);
  }

  std::int64_t kept_numbers() const override {
    return keeps() ? checked_area(graph_.num_rows(), options_.features + options_.heads) : 0;
  }

  void run(const AttentionInputs& inputs, const AttentionOutputs& outputs, Stream stream,
           const WorkspaceView& workspace) const override {
    run_keeping(inputs, outputs, nullptr, stream, workspace);
  }

  void run_keeping(const AttentionInputs& inputs, const AttentionOutputs& outputs, float* kept,
                   Stream stream, const WorkspaceView& workspace) const override {
    RowsAttentionLaunch launch = launch_of(inputs, row_side_, workspace);
    if (is_cosine()) {
      float* const room = static_cast<float*>(outputs.inverse_lengths.data);
      float* const lengths = room == nullptr ? inverse_lengths_.in(workspace) : room;
      compute_inverse_lengths(inputs.value, lengths, stream);
      launch.inverse_lengths = lengths;
    }
    launch.gathered_values = rows_of(inputs.value);
    launch.output = sums_of(outputs.output);
    launch.log_sum = static_cast<float*>(outputs.log_sum.data);
    launch.log_sum_stride = outputs.log_sum.stride;
    launch.above = above_in(kept);
    launch.slots = slots_.in(workspace);
    launch.slot_size = slot_size(kept != nullptr);
    const std::size_t which =
        choose_lanes(problem_, AttentionSweep::forward, inputs, {outputs.output}, launch);
    kernels_.forward[which](launch, stream);
  }

  void run_backward(const AttentionInputs& inputs, ConstOperand output, ConstOperand log_sum,
                    ConstOperand grad_output, const AttentionGradOutputs& gradients, Stream stream,
                    const WorkspaceView& workspace) const override {
    run_backward_kept(inputs, output, log_sum, nullptr, grad_output, gradients, stream, workspace);
  }

  void run_backward_kept(const AttentionInputs& inputs, ConstOperand output, ConstOperand log_sum,
                         const float* kept, ConstOperand grad_output,
                         const AttentionGradOutputs& gradients, Stream stream,
                         const WorkspaceView& workspace) const override {
    if (is_cosine() && inputs.inverse_lengths.absent()) {
      compute_inverse_lengths(inputs.value, inverse_lengths_.in(workspace), stream);
    }
    if (mutual_ && !gradients.value.absent()) {
      sweep_mutual_rows(inputs, output, log_sum, grad_output, gradients, stream, workspace);
      return;
    }
    sweep_rows(inputs, output, log_sum, kept, grad_output, gradients, stream, workspace);
    if (gradients.source.absent() && gradients.value.absent()) return;
    RowsAttentionLaunch launch = launch_of(inputs, column_side_, workspace);
    std::swap(launch.own_scores, launch.gathered_scores);
    launch.own_values = rows_of(inputs.value);
    launch.gathered_values = rows_of(grad_output);
    launch.row_state = row_state_.in(workspace);
    launch.score_gradient = sums_of(gradients.source);
    launch.value_gradient = sums_of(gradients.value);
    launch.adds_to_gradient = is_cosine();
    launch.slots = gradient_slots_.in(workspace);
    launch.slot_size = score_cols_ + options_.features;
    const std::size_t which =
        choose_lanes(problem_, AttentionSweep::backward, inputs,
                     {grad_output, score_features(gradients.source), gradients.value}, launch);
    kernels_.backward.by_columns[which](launch, stream);
  }

  void weights(const AttentionInputs& inputs, ConstOperand log_sum, Operand weights, Stream stream,
               const WorkspaceView& workspace) const override {
    float* const lengths = inverse_lengths_.in(workspace);
    if (is_cosine()) compute_inverse_lengths(inputs.value, lengths, stream);
    write_attention_weights(*row_side_.rows, options_, inputs, log_sum, weights, stream, lengths);
  }

  WorkspaceNeed workspace() const override { return workspace_; }

 private:
  bool is_cosine() const { return options_.form == AttentionForm::cosine; }
  /// A row of sums written and read pays for the sweep over rows that it saves where rows have
  /// enough edges: it costs 12 to 25 % on graphs of 5 edges a row, and saves 2 % on one of 30.
  bool keeps() const {
    constexpr EdgeOffset enough_edges = 24;
    return options_.backward && options_.form == AttentionForm::gat &&
           graph_.num_edges() >= enough_edges * graph_.num_rows();
  }
  AttentionAbove above_in(float* kept) const {
    if (kept == nullptr) return {};
    return {kept, kept + graph_.num_rows() * options_.features};
  }
  /// What a piece of a row leaves: sums of one kind or two, and where their weights begin.
  std::int64_t slot_size(bool keeping) const {
    return (options_.features + options_.heads) * (keeping ? 2 : 1) + options_.heads;
  }
  /// What goes to targets by the sweep over rows.
  Operand target_gradient(const AttentionGradOutputs& gradients) const {
    return is_cosine() ? gradients.value : gradients.target;
  }
  const float* lengths_of(const AttentionInputs& inputs, const WorkspaceView& workspace) const {
    return inputs.inverse_lengths.absent() ? inverse_lengths_.in(workspace)
                                           : static_cast<const float*>(inputs.inverse_lengths.data);
  }

  void prepare_backward() {
    WorkspaceNeed need;
    if (is_cosine()) inverse_lengths_ = need.add<float>(graph_.num_rows());
    row_state_ = need.add<AttentionRowState>(checked_area(graph_.num_rows(), options_.heads));
    gradient_slots_ = need.add<float>(
        std::max(checked_area(row_side_.schedule.num_slots, score_cols_),
                 checked_area(column_side_.schedule.num_slots, score_cols_ + options_.features)));
    if (options_.form == AttentionForm::gatv2) {
      vector_sums_ = need.add<float>(checked_area(sharing_warps(), options_.features));
    } else if (options_.form != AttentionForm::gat) {
      if (mutual_) mutual_states_ = need.add<MutualState>(graph_.num_rows());
      const std::int64_t of_blocks = mutual_ ? mutual_blocks() : 0;
      scale_sums_ =
          need.add<double>(std::max(of_blocks, checked_area(sharing_warps(), options_.heads)));
    }
    workspace_.cover(need);
  }

  void sweep_rows(const AttentionInputs& inputs, const ConstOperand& output,
                  const ConstOperand& log_sum, const float* kept, const ConstOperand& grad_output,
                  const AttentionGradOutputs& gradients, Stream stream,
                  const WorkspaceView& workspace) const {
    const Operand to_target = target_gradient(gradients);
    const bool of_factor = is_cosine() && !gradients.vector.absent();
    const bool of_vector = !is_cosine() && !gradients.vector.absent();
    const bool of_scale = of_factor || gradients.scale != nullptr;
    RowsAttentionLaunch launch = launch_of(inputs, row_side_, workspace);
    launch.own_values = rows_of(grad_output);
    launch.gathered_values = rows_of(inputs.value);
    launch.outputs = rows_of(output);
    launch.log_sum = static_cast<float*>(const_cast<void*>(log_sum.data));
    launch.log_sum_stride = log_sum.stride;
    launch.row_state = row_state_.in(workspace);
    launch.above = above_in(const_cast<float*>(kept));
    launch.state_only = kept != nullptr || (to_target.absent() && !of_vector && !of_scale);
    launch.score_gradient = sums_of(to_target);
    launch.slots = gradient_slots_.in(workspace);
    launch.slot_size = score_cols_;
    if (of_vector) launch.vector_sums = vector_sums_.in(workspace);
    if (of_scale) launch.scale_sums = scale_sums_.in(workspace);
    const std::size_t which =
        choose_lanes(problem_, AttentionSweep::backward, inputs,
                     {output, grad_output, score_features(to_target)}, launch);
    if (of_vector || of_scale) launch.num_blocks = std::min(launch.num_blocks, sharing_blocks());
    kernels_.backward.by_rows[which](launch, stream);
    const std::int64_t num_warps = std::int64_t{launch.num_blocks} * rows_attention_warps;
    const std::int64_t num_sums = num_warps * launch.shape.num_slices;
    if (of_vector) {
      store_vector(vector_sums_.in(workspace), num_warps, gradients.vector, stream);
    }
    if (gradients.scale != nullptr) {
      store_scale(scale_sums_.in(workspace), num_sums, gradients.scale, stream);
    }
    if (of_factor) store_factor(scale_sums_.in(workspace), num_sums, gradients.vector, stream);
  }

  void sweep_mutual_rows(const AttentionInputs& inputs, const ConstOperand& output,
                         const ConstOperand& log_sum, const ConstOperand& grad_output,
                         const AttentionGradOutputs& gradients, Stream stream,
                         const WorkspaceView& workspace) const {
    MutualState* const states = mutual_states_.in(workspace);
    compute_mutual_states(output, grad_output, log_sum, lengths_of(inputs, workspace), states,
                          stream);
    MutualLaunch launch{launch_of(inputs, row_side_, workspace), rows_of(inputs.value),
                        rows_of(grad_output), states};
    launch.value_gradient = sums_of(gradients.value);
    launch.slots = gradient_slots_.in(workspace);
    launch.slot_size = options_.features;
    const std::size_t which = choose_lanes(problem_, AttentionSweep::backward, inputs,
                                           {grad_output, ConstOperand(gradients.value)}, launch);
    if (!gradients.vector.absent()) {
      launch.scale_sums = scale_sums_.in(workspace);
      launch.factor_gradient = gradients.vector.data;
      launch.num_blocks_done = workspace.counters + row_side_.schedule.num_cut_rows;
      // One at least: a graph without rows has a gradient, too.
      launch.num_blocks = std::clamp(launch.num_blocks, 1u, mutual_blocks());
    }
    kernels_.mutual[which](launch, stream);
  }

  /// Blocks among which sums over all edges are shared: no more than a GPU holds at once. Sums of
  /// vectors cost a warp as much as some of its rows.
  unsigned sharing_blocks() const {
    const std::int64_t items_per_warp = options_.form == AttentionForm::gatv2 ? 4 : 1;
    const std::int64_t most = std::int64_t{device_traits(options_.device).processors} * 8;
    return static_cast<unsigned>(std::clamp<std::int64_t>(blocks_of_rows(items_per_warp), 1, most));
  }
  /// The same where a block adds one number. Blocks that go over all rows lose step with each
  /// other, and with it what they share in the cache, so that where each has enough edges there are
  /// as many as rows ask for.
  unsigned mutual_blocks() const {
    constexpr EdgeOffset edges_per_block = 1024;
    const EdgeOffset wanted = std::min(graph_.num_edges() / edges_per_block, blocks_of_rows(1));
    return std::max(sharing_blocks(), static_cast<unsigned>(wanted));
  }
  /// Of one item per warp no launch has more: its items may be several rows.
  std::int64_t blocks_of_rows(std::int64_t items_per_warp) const {
    const std::int64_t items_per_block = items_per_warp * rows_attention_warps;
    const std::int64_t items = row_side_.schedule.pieces.size() + graph_.num_rows();
    return (items + items_per_block - 1) / items_per_block;
  }
  std::int64_t sharing_warps() const {
    return std::int64_t{sharing_blocks()} * rows_attention_warps;
  }

  RowsAttentionLaunch launch_of(const AttentionInputs& inputs, const AttentionSide& side,
                                const WorkspaceView& workspace) const {
    RowsAttentionLaunch launch = side.launch(options_, inputs, workspace);
    launch.own_scores = rows_of(is_cosine() ? inputs.value : inputs.target);
    launch.gathered_scores = rows_of(is_cosine() ? inputs.value : inputs.source);
    launch.positions = side.rows->positions.data();
    launch.scale = static_cast<float>(inputs.scale);
    launch.inverse_lengths = lengths_of(inputs, workspace);
    const Dropout dropout{options_.dropout, inputs.random, inputs.clock};
    launch.drops = dropout.active();
    launch.dropout = dropout.constants();
    launch.kept_factor = static_cast<float>(launch.dropout.kept_factor);
    return launch;
  }

  /// A gradient of scores, where these are features; else nothing.
  ConstOperand score_features(const Operand& gradient) const {
    return options_.form == AttentionForm::gat ? ConstOperand{} : ConstOperand{gradient};
  }

  AttentionProblem problem_;
  const Graph& graph_ = problem_.graph;
  const AttentionOptions& options_ = problem_.options;
  RowsKernels kernels_;
  std::int64_t score_cols_;
  AttentionSide row_side_;
  WorkspaceNeed workspace_;
  WorkspacePart<float> slots_;
  WorkspacePart<float> inverse_lengths_;  ///< cosine: the first part in both passes

  // What the backward pass needs, where there is one.
  bool mutual_ = false;  ///< one sweep for both sides, so that there are no columns
  AttentionSide column_side_;
  WorkspacePart<MutualState> mutual_states_;
  WorkspacePart<AttentionRowState> row_state_;
  WorkspacePart<float> gradient_slots_;
  WorkspacePart<float> vector_sums_;
  WorkspacePart<double> scale_sums_;
};

std::string why_not(const AttentionProblem& problem) {
  const AttentionOptions& options = problem.options;
  if (options.precision == Precision::fp64) return "fp64 exists on the CPU only";
  if (options.features == 0) return "no features";
  // Wherever operands lie: whatever is on no boundary goes to the last kernel of the list.
  if (!taken_by_rows(options)) return "heads of more than 2048 bytes";
  return {};
}

double predicted_us(const AttentionProblem& problem) {
  const DeviceTraits& traits = device_traits(problem.options.device);
  return fitted_us(cost_fits::attention_rows, predict_rows_attention_us(problem, traits) +
                                                  predict_rows_backward_us(problem, traits));
}

}  // namespace

std::unique_ptr<const PreparedAttention> prepare_rows_attention(const AttentionProblem& problem) {
  return std::make_unique<CudaRowsAttention>(problem);
}

void append_cuda_rows_attention(std::vector<AttentionKernel>& table) {
  table.push_back({{"attention/cuda/rows",
                    "one sweep: some lanes per edge, several edges in flight, short rows side by "
                    "side, long ones cut",
                    "attention", DeviceKind::cuda, true},
                   why_not,
                   predicted_us,
                   prepare_rows_attention});
}

}  // namespace tessera::ops

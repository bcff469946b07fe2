// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/attention/cuda/fused/cost.hpp"
#include "ops/attention/cuda/fused/launch.hpp"
#include "ops/attention/cuda/kernels.hpp"
#include "ops/attention/cuda/weights.hpp"
#include "ops/attention/on_unit_rows.hpp"
#include "ops/cuda/boundaries.hpp"

namespace tessera::ops {
namespace {

/// Warps among which sums over all edges are shared.
constexpr std::int64_t max_sharing_blocks = 528;

struct Functions {
  const AttentionForwardFunctions& forward;
  const AttentionBackwardFunctions& backward;
};

Functions functions_of(Precision precision) {
  switch (precision) {
    case Precision::bf16: return {attention_forward_bf16, attention_backward_bf16};
    case Precision::fp16: return {attention_forward_fp16, attention_backward_fp16};
    default: return {attention_forward_fp32, attention_backward_fp32};
  }
}

/// Slices for lanes that hold `count` features in each of at most `vectors` vectors.
Slices make_slices(std::int64_t heads, std::int64_t width, int count, int vectors) {
  const std::int64_t most = std::int64_t{32} * count * vectors;
  Slices slices;
  slices.per_head = std::max<std::int64_t>(1, (width + most - 1) / most);
  const std::int64_t fitting = width == 0 ? 32 : std::max<std::int64_t>(1, most / width);
  slices.heads = static_cast<int>(std::min<std::int64_t>({heads, fitting, 32}));
  slices.padded_heads = power_of_two(slices.heads);
  slices.features = std::min(slices.heads * width, most);
  slices.lanes = power_of_two((slices.features + count - 1) / count);
  slices.count = static_cast<unsigned>((heads + slices.heads - 1) / slices.heads * slices.per_head);
  return slices;
}

GpuRows rows_of(const ConstOperand& operand) { return {operand.data, operand.stride}; }
GpuOutput output_of(const Operand& operand) { return {operand.data, operand.stride}; }

/// The fused kernels: forward over rows; backward over rows, then over columns.
class CudaFusedAttention final : public PreparedAttention {
 public:
  explicit CudaFusedAttention(const AttentionProblem& problem)
      : graph_(problem.graph),
        options_(problem.options),
        width_(options_.features / options_.heads),
        score_cols_(options_.form == AttentionForm::gat ? options_.heads : options_.features),
        rows_(cuda::device_rows(graph_, options_.place())),
        row_cuts_(cuda::cut_long_rows(graph_.row_offsets().span(),
                                      longest_uncut_row(options_.heads), options_.place())),
        slots_(workspace_.add<float>(
            checked_area(row_cuts_.num_slots, options_.features + 2 * options_.heads))) {
    if (options_.backward) prepare_backward();
  }

  void run(const AttentionInputs& inputs, const AttentionOutputs& outputs, Stream stream,
           const WorkspaceView& workspace) const override {
    AttentionLaunch launch = launch_of(inputs, *rows_, row_cuts_);
    launch.fixed_scores = rows_of(inputs.target);
    launch.gathered_scores = rows_of(inputs.source);
    launch.gathered_values = rows_of(inputs.value);
    launch.output = output_of(outputs.output);
    launch.log_sum = static_cast<float*>(outputs.log_sum.data);
    launch.log_sum_stride = outputs.log_sum.stride;
    launch.slots = slots_.in(workspace);
    launch.slot_size = options_.features + 2 * options_.heads;
    const bool aligned = inputs_aligned(inputs) && heads_aligned(outputs.output);
    const AttentionForwardFunctions& functions = functions_of(options_.precision).forward;
    start(aligned ? functions.aligned : functions.scalar, aligned, launch, stream);
  }

  void run_backward(const AttentionInputs& inputs, ConstOperand output, ConstOperand log_sum,
                    ConstOperand grad_output, const AttentionGradOutputs& gradients, Stream stream,
                    const WorkspaceView& workspace) const override {
    compute_row_state(output, log_sum, grad_output, stream, workspace);
    const bool aligned =
        inputs_aligned(inputs) && heads_aligned(grad_output) && gradients_aligned(gradients);
    if (!gradients.target.absent() || !gradients.vector.absent() || gradients.scale != nullptr) {
      backward_by_rows(inputs, grad_output, gradients, aligned, stream, workspace);
    }
    if (!gradients.source.absent() || !gradients.value.absent()) {
      backward_by_columns(inputs, grad_output, gradients, aligned, stream, workspace);
    }
  }

  void weights(const AttentionInputs& inputs, ConstOperand log_sum, Operand weights, Stream stream,
               const WorkspaceView&) const override {
    write_attention_weights(*rows_, options_, inputs, log_sum, weights, stream);
  }

  WorkspaceNeed workspace() const override { return workspace_; }

 private:
  void prepare_backward() {
    const Place place = options_.place();
    columns_ = cuda::device_columns(graph_, place);
    column_cuts_ = cuda::cut_long_rows(columns_->host_offsets.span(),
                                       longest_uncut_row(options_.heads), place);
    WorkspaceNeed need;
    row_state_ = need.add<float>(checked_area(graph_.num_rows(), 2 * options_.heads));
    grad_slots_ = need.add<float>(
        std::max(checked_area(row_cuts_.num_slots, score_cols_),
                 checked_area(column_cuts_.num_slots, score_cols_ + options_.features)));
    if (options_.form == AttentionForm::gatv2) {
      vector_sums_ = need.add<float>(checked_area(sharing_warps(), options_.features));
    } else if (options_.form == AttentionForm::dot) {
      // Scalar loads need the most slices.
      scale_sums_ = need.add<double>(checked_area(
          sharing_warps(), make_slices(options_.heads, width_, 1, attention_vectors).count));
    }
    workspace_.cover(need);
  }

  static std::int64_t blocks_for(std::int64_t items) {
    return (items + attention_block_warps - 1) / attention_block_warps;
  }
  std::int64_t sharing_warps() const {
    const std::int64_t items = row_cuts_.pieces.size() + graph_.num_rows();
    return std::min(blocks_for(items), max_sharing_blocks) * attention_block_warps;
  }

  AttentionLaunch launch_of(const AttentionInputs& inputs, const cuda::DeviceRows& rows,
                            const cuda::Cuts& cuts) const {
    AttentionLaunch launch;
    launch.rows = cuts.rows(rows);
    launch.indices = rows.indices.data();
    launch.positions = rows.positions.data();
    launch.form = options_.form;
    launch.heads = options_.heads;
    launch.width = width_;
    launch.features = options_.features;
    launch.score_cols = score_cols_;
    launch.slope = static_cast<float>(options_.negative_slope);
    launch.scale = static_cast<float>(inputs.scale);
    const Dropout dropout{options_.dropout, inputs.random, inputs.clock};
    launch.drops = dropout.active();
    launch.dropout = dropout.constants();
    launch.vector = options_.form == AttentionForm::gatv2 ? inputs.vector.data : nullptr;
    launch.num_blocks =
        static_cast<unsigned>(blocks_for(launch.rows.num_pieces + launch.rows.num_rows));
    return launch;
  }

  void start(AttentionFunction function, bool aligned, AttentionLaunch& launch,
             Stream stream) const {
    const int count = aligned ? 16 / element_bytes() : 1;
    launch.slices = make_slices(options_.heads, width_, count, attention_vectors);
    launch.dot_lanes = power_of_two((width_ + count - 1) / count);
    function(launch, stream);
  }

  void compute_row_state(const ConstOperand& output, const ConstOperand& log_sum,
                         const ConstOperand& grad_output, Stream stream,
                         const WorkspaceView& workspace) const {
    RowStateLaunch launch;
    launch.num_rows = graph_.num_rows();
    launch.heads = options_.heads;
    launch.width = width_;
    launch.output = rows_of(output);
    launch.grad_output = rows_of(grad_output);
    launch.log_sum = static_cast<const float*>(log_sum.data);
    launch.log_sum_stride = log_sum.stride;
    launch.row_state = row_state_.in(workspace);
    functions_of(options_.precision).backward.row_state(launch, stream);
  }

  void backward_by_rows(const AttentionInputs& inputs, const ConstOperand& grad_output,
                        const AttentionGradOutputs& gradients, bool aligned, Stream stream,
                        const WorkspaceView& workspace) const {
    AttentionLaunch launch = launch_of(inputs, *rows_, row_cuts_);
    launch.fixed_scores = rows_of(inputs.target);
    launch.gathered_scores = rows_of(inputs.source);
    launch.fixed_values = rows_of(grad_output);
    launch.gathered_values = rows_of(inputs.value);
    launch.by_rows = true;
    launch.score_gradient = output_of(gradients.target);
    launch.slot_size = score_cols_;
    if (!gradients.vector.absent()) launch.vector_sums = vector_sums_.in(workspace);
    if (gradients.scale != nullptr) launch.scale_sums = scale_sums_.in(workspace);
    if (!gradients.vector.absent() || gradients.scale != nullptr) {
      launch.num_blocks = static_cast<unsigned>(sharing_warps() / attention_block_warps);
    }
    start_backward(launch, aligned, stream, workspace);
    const AttentionBackwardFunctions& functions = functions_of(options_.precision).backward;
    if (!gradients.vector.absent()) {
      functions.store_vector(vector_sums_.in(workspace), sharing_warps(), options_.features,
                             gradients.vector.data, stream);
    }
    if (gradients.scale != nullptr) {
      store_scale(scale_sums_.in(workspace), sharing_warps() * launch.slices.count, gradients.scale,
                  stream);
    }
  }

  void backward_by_columns(const AttentionInputs& inputs, const ConstOperand& grad_output,
                           const AttentionGradOutputs& gradients, bool aligned, Stream stream,
                           const WorkspaceView& workspace) const {
    AttentionLaunch launch = launch_of(inputs, *columns_, column_cuts_);
    launch.fixed_scores = rows_of(inputs.source);
    launch.gathered_scores = rows_of(inputs.target);
    launch.fixed_values = rows_of(inputs.value);
    launch.gathered_values = rows_of(grad_output);
    launch.by_rows = false;
    launch.score_gradient = output_of(gradients.source);
    launch.value_gradient = output_of(gradients.value);
    launch.slot_size = score_cols_ + options_.features;
    start_backward(launch, aligned, stream, workspace);
  }

  void start_backward(AttentionLaunch& launch, bool aligned, Stream stream,
                      const WorkspaceView& workspace) const {
    launch.row_state = row_state_.in(workspace);
    launch.slots = grad_slots_.in(workspace);
    const AttentionBackwardFunctions& functions = functions_of(options_.precision).backward;
    start(aligned ? functions.aligned : functions.scalar, aligned, launch, stream);
  }

  int element_bytes() const { return static_cast<int>(bytes_per_element(options_.precision)); }

  /// Whether every head of every row begins on a 16-byte boundary; absent operands do.
  bool heads_aligned(const ConstOperand& operand) const {
    return on_boundaries(operand, operand.absent() ? 0 : width_);
  }
  bool inputs_aligned(const AttentionInputs& inputs) const {
    if (!heads_aligned(inputs.value)) return false;
    return options_.form == AttentionForm::gat ||
           (heads_aligned(inputs.target) && heads_aligned(inputs.source) &&
            heads_aligned(inputs.vector));
  }
  bool gradients_aligned(const AttentionGradOutputs& gradients) const {
    if (!heads_aligned(gradients.value)) return false;
    return options_.form == AttentionForm::gat ||
           (heads_aligned(gradients.target) && heads_aligned(gradients.source));
  }

  Graph graph_;
  AttentionOptions options_;
  std::int64_t width_;
  std::int64_t score_cols_;
  std::shared_ptr<const cuda::DeviceRows> rows_;
  cuda::Cuts row_cuts_;
  WorkspaceNeed workspace_;
  WorkspacePart<float> slots_;

  // What the backward pass needs, where there is one.
  std::shared_ptr<const cuda::DeviceRows> columns_;
  cuda::Cuts column_cuts_;
  WorkspacePart<float> row_state_;
  WorkspacePart<float> grad_slots_;
  WorkspacePart<float> vector_sums_;
  WorkspacePart<double> scale_sums_;
};

std::unique_ptr<const PreparedAttention> prepare(const AttentionProblem& problem) {
  if (problem.options.form == AttentionForm::cosine) {
    return on_unit_rows(prepare(as_dot_products(problem)), problem);
  }
  return std::make_unique<CudaFusedAttention>(problem);
}

std::string why_not(const AttentionProblem& problem) {
  if (problem.options.precision == Precision::fp64) return "fp64 exists on the CPU only";
  return {};
}

double predicted_us(const AttentionProblem& problem) {
  return predict_fused_us(problem, device_traits(problem.options.device));
}

}  // namespace

void append_cuda_fused_attention(std::vector<AttentionKernel>& table) {
  table.push_back({{"attention/cuda/fused",
                    "a warp per row: one lane per score and exponential, then one per feature",
                    "attention", DeviceKind::cuda, true},
                   why_not,
                   predicted_us,
                   prepare});
}

}  // namespace tessera::ops

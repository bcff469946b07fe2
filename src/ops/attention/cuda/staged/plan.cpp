// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <fmt/format.h>

#include "cuda/edge_rows.hpp"
#include "ops/attention/cuda/fused/launch.hpp"
#include "ops/attention/cuda/kernels.hpp"
#include "ops/attention/cuda/staged/cost.hpp"
#include "ops/attention/cuda/staged/edges.hpp"
#include "ops/attention/cuda/widened.hpp"
#include "ops/edge_softmax/cuda/kernels.hpp"
#include "ops/edge_softmax/trial.hpp"
#include "ops/fastest.hpp"
#include "ops/sddmm/kernel.hpp"
#include "ops/sddmm/trial.hpp"
#include "ops/spmm/kernel.hpp"
#include "ops/spmm/trial.hpp"

namespace tessera::ops {
namespace {

/// What the two arrays of edges x heads may take.
constexpr double max_edge_bytes = 16e9;

/// How the stages may choose their kernels.
PlanOptions stage_options(const AttentionProblem& problem) {
  PlanOptions options = problem.options;
  options.kernel.clear();
  options.allow_nondeterministic = false;
  return options;
}

/// Those of targets and sources, and of output gradients and values.
SddmmProblem dot_products(const AttentionProblem& problem) {
  SddmmProblem dots;
  dots.graph = problem.graph.with_values({}).with_scales({}, {});
  dots.precision = problem.options.precision;
  dots.features = problem.options.features;
  dots.heads = problem.options.heads;
  dots.set_place(problem.options.place());
  return dots;
}

/// Over the sources of a target, or over the targets of a source.
SpmmProblem weighted_sums(const AttentionProblem& problem, SpmmPass pass) {
  SpmmProblem sums;
  sums.graph = problem.graph.with_values({}).with_scales({}, {});
  sums.precision = problem.options.precision;
  sums.features = problem.options.features;
  sums.pass = pass;
  sums.heads = problem.options.heads;
  sums.set_place(problem.options.place());
  sums.edge_values_expected = true;
  sums.own_weights_at_run = false;
  return sums;
}

EdgeSoftmaxProblem softmax_of_rows(const AttentionProblem& problem) {
  EdgeSoftmaxProblem softmax{problem.graph, {}};
  static_cast<PlanOptions&>(softmax.options) = stage_options(problem);
  softmax.options.precision = problem.options.precision;
  softmax.options.heads = problem.options.heads;
  return softmax;
}

bool is_narrow(const AttentionProblem& problem) {
  return bytes_per_element(problem.options.precision) == 2;
}

/// Attention by the kernels of other ops, one after another, with a number for each edge and head
/// in memory between them. In fp32: with 16 bits such a number is too coarse for an exponent.
class CudaStagedAttention final : public PreparedAttention {
 public:
  explicit CudaStagedAttention(const AttentionProblem& problem)
      : problem_(problem),
        heads_(problem.options.heads),
        edge_rows_(cuda::device_edge_rows(problem.graph, problem.options.place())),
        dots_(make_choice<SddmmTrial>(sddmm_kernels(), dot_products(problem),
                                      stage_options(problem))),
        softmax_(make_choice<EdgeSoftmaxTrial>(edge_softmax_kernels(), softmax_of_rows(problem),
                                               stage_options(problem))),
        row_sums_(sums(SpmmPass::forward)),
        scores_(edge_array()) {
    if (problem.options.backward) prepare_backward();
    WorkspaceNeed need = row_sums_.prepared->workspace();
    if (problem.options.backward) need.cover(column_sums_.prepared->workspace());
    stages_ = workspace_.add_for({softmax_.prepared->workspace(), need});
  }

  void run(const AttentionInputs& inputs, const AttentionOutputs& outputs, Stream stream,
           const WorkspaceView& workspace) const override {
    const Operand scores = edge_operand(scores_, workspace);
    const WorkspaceView of_stages = part_for(stages_, workspace);
    dots_.prepared->run(inputs.target, inputs.source, scores, stream);
    softmax().run_scaled(scores, static_cast<float>(inputs.scale), scores, outputs.log_sum, stream,
                         of_stages);
    const StagedLaunch launch = launch_of(inputs, workspace);
    if (launch.drops) drop_weights(launch, stream);
    add_weighted(*row_sums_.prepared, inputs.value, scores, outputs.output, stream, of_stages);
  }

  void run_backward(const AttentionInputs& inputs, ConstOperand output, ConstOperand log_sum,
                    ConstOperand grad_output, const AttentionGradOutputs& gradients, Stream stream,
                    const WorkspaceView& workspace) const override {
    compute_row_state(output, log_sum, grad_output, stream, workspace);
    const Operand weights = edge_operand(scores_, workspace);
    const Operand score_gradients = edge_operand(gradients_, workspace);
    const WorkspaceView of_stages = part_for(stages_, workspace);
    const bool of_scores =
        !gradients.target.absent() || !gradients.source.absent() || gradients.scale != nullptr;
    dots_.prepared->run(inputs.target, inputs.source, weights, stream);
    if (of_scores) dots_.prepared->run(grad_output, inputs.value, score_gradients, stream);
    StagedLaunch launch = launch_of(inputs, workspace);
    launch.row_state = row_state_.in(workspace);
    if (of_scores) launch.gradients = gradients_.in(workspace);
    if (gradients.scale != nullptr) launch.scale_sums = scale_sums_.in(workspace);
    differentiate_weights(launch, stream);
    if (gradients.scale != nullptr) {
      store_scale(scale_sums_.in(workspace), scale_sums_.size, gradients.scale, stream);
    }
    add_weighted(*column_sums_.prepared, grad_output, weights, gradients.value, stream, of_stages);
    add_weighted(*row_sums_.prepared, inputs.source, score_gradients, gradients.target, stream,
                 of_stages);
    add_weighted(*column_sums_.prepared, inputs.target, score_gradients, gradients.source, stream,
                 of_stages);
  }

  void weights(const AttentionInputs& inputs, ConstOperand log_sum, Operand weights, Stream stream,
               const WorkspaceView& workspace) const override {
    dots_.prepared->run(inputs.target, inputs.source, edge_operand(scores_, workspace), stream);
    StagedLaunch launch = launch_of(inputs, workspace);
    launch.log_sum = static_cast<const float*>(log_sum.data);
    launch.log_sum_stride = log_sum.stride;
    compute_weights(launch, weights, stream);
  }

  WorkspaceNeed workspace() const override { return workspace_; }

  std::vector<std::pair<const char*, Decision>> stages() const override {
    std::vector<std::pair<const char*, Decision>> stages = {{"dot products", dots_.decision},
                                                            {"softmax", softmax_.decision},
                                                            {"weighted sums", row_sums_.decision}};
    if (column_sums_.prepared != nullptr) {
      stages.emplace_back("weighted sums of the backward pass", column_sums_.decision);
    }
    return stages;
  }

 private:
  void prepare_backward() {
    column_sums_ = sums(SpmmPass::backward);
    gradients_ = edge_array();
    row_state_ = workspace_.add<float>(checked_area(problem_.graph.num_rows(), 2 * heads_));
    scale_sums_ = workspace_.add<double>(staged_blocks(num_numbers()));
  }

  /// Every softmax on a GPU is one.
  const PreparedCudaSoftmax& softmax() const {
    return dynamic_cast<const PreparedCudaSoftmax&>(*softmax_.prepared);
  }

  Choice<SpmmKernel> sums(SpmmPass pass) const {
    return make_choice<SpmmTrial>(spmm_kernels(), weighted_sums(problem_, pass),
                                  stage_options(problem_));
  }

  std::int64_t num_numbers() const { return problem_.graph.num_edges() * heads_; }

  /// In whole shares of a thread, so that none has to look where the array ends.
  WorkspacePart<float> edge_array() {
    const std::int64_t numbers = checked_area(problem_.graph.num_edges(), heads_);
    return workspace_.add<float>((numbers + staged_share - 1) / staged_share * staged_share);
  }

  Operand edge_operand(const WorkspacePart<float>& numbers, const WorkspaceView& workspace) const {
    return MatrixView<float>(numbers.in(workspace), problem_.graph.num_edges(), heads_,
                             problem_.options.device);
  }

  StagedLaunch launch_of(const AttentionInputs& inputs, const WorkspaceView& workspace) const {
    StagedLaunch launch;
    launch.num_numbers = num_numbers();
    launch.heads = heads_;
    launch.edge_rows = edge_rows_->view();
    launch.scale = static_cast<float>(inputs.scale);
    const Dropout dropout{problem_.options.dropout, inputs.random, inputs.clock};
    launch.drops = dropout.active();
    launch.dropout = dropout.constants();
    launch.scores = scores_.in(workspace);
    return launch;
  }

  void compute_row_state(const ConstOperand& output, const ConstOperand& log_sum,
                         const ConstOperand& grad_output, Stream stream,
                         const WorkspaceView& workspace) const {
    RowStateLaunch launch;
    launch.num_rows = problem_.graph.num_rows();
    launch.heads = heads_;
    launch.width = problem_.options.features / heads_;
    launch.output = {output.data, output.stride};
    launch.grad_output = {grad_output.data, grad_output.stride};
    launch.log_sum = static_cast<const float*>(log_sum.data);
    launch.log_sum_stride = log_sum.stride;
    launch.row_state = row_state_.in(workspace);
    attention_backward_fp32.row_state(launch, stream);
  }

  /// Nothing happens where the result is not wanted.
  static void add_weighted(const PreparedSpmm& sums, const ConstOperand& x, const Operand& weights,
                           const Operand& result, Stream stream, const WorkspaceView& workspace) {
    if (result.absent()) return;
    SpmmCall call;
    call.x = x;
    call.edge_values = weights;
    call.y = result;
    sums.run(call, stream, workspace);
  }

  AttentionProblem problem_;
  std::int64_t heads_;
  std::shared_ptr<const cuda::DeviceEdgeRows> edge_rows_;
  Choice<SddmmKernel> dots_;
  Choice<EdgeSoftmaxKernel> softmax_;
  Choice<SpmmKernel> row_sums_;
  WorkspaceNeed workspace_;
  WorkspacePart<float> scores_;  ///< then weights
  WorkspacePart<std::byte> stages_;

  // What the backward pass needs, where there is one.
  Choice<SpmmKernel> column_sums_;
  WorkspacePart<float> gradients_;
  WorkspacePart<float> row_state_;
  WorkspacePart<double> scale_sums_;
};

std::string why_not(const AttentionProblem& problem) {
  if (problem.options.form != AttentionForm::dot) return "dot products only";
  if (problem.options.precision == Precision::fp64) return "fp64 exists on the CPU only";
  const double bytes = 2 * edge_numbers(problem) * sizeof(float);
  if (bytes > max_edge_bytes) return fmt::format("edges would take {:.1f} GB", bytes / 1e9);
  return {};
}

double predicted_fp32_us(const AttentionProblem& problem) {
  const PlanOptions options = stage_options(problem);
  const double dropping = predict_dropping_us(problem, device_traits(problem.options.device));
  const double dots = fastest_us(sddmm_kernels(), dot_products(problem), options);
  const double softmax = fastest_us(edge_softmax_kernels(), softmax_of_rows(problem), options);
  const auto sums = [&](SpmmPass pass) {
    return fastest_us(spmm_kernels(), weighted_sums(problem, pass), options);
  };
  const double by_rows = sums(SpmmPass::forward);
  const double forward = dots + softmax + dropping + by_rows;
  const DeviceTraits& traits = device_traits(problem.options.device);
  if (!problem.options.backward) return predict_stages_us(problem, traits, forward, 3);
  // Gradients of weights take about what a softmax does.
  const double all =
      forward + 2 * dots + softmax + dropping + by_rows + 2 * sums(SpmmPass::backward);
  return predict_stages_us(problem, traits, all, 9);
}

double predicted_us(const AttentionProblem& problem) {
  const double copies =
      is_narrow(problem) ? predict_widening_us(problem, device_traits(problem.options.device)) : 0;
  return copies + predicted_fp32_us(in_fp32(problem));
}

}  // namespace

void append_cuda_staged_attention(std::vector<AttentionKernel>& table) {
  AttentionKernel kernel;
  kernel.info.name = "attention/cuda/staged";
  kernel.info.description =
      "dot products, softmax and weighted sums one after another in fp32, each by the kernel that "
      "is fastest for it";
  kernel.info.op = "attention";
  kernel.info.device = DeviceKind::cuda;
  kernel.info.strict = false;
  kernel.info.exact_nonfinite = false;
  kernel.info.repeated_edges = false;
  kernel.why_not = why_not;
  kernel.predicted_us = predicted_us;
  kernel.prepare = [](const AttentionProblem& problem) -> std::unique_ptr<const PreparedAttention> {
    auto staged = std::make_unique<CudaStagedAttention>(in_fp32(problem));
    if (!is_narrow(problem)) return staged;
    return widened(std::move(staged), problem);
  };
  table.push_back(std::move(kernel));
}

}  // namespace tessera::ops

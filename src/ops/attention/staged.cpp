// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "tessera/ops/sddmm.hpp"
#include "tessera/ops/spmm.hpp"

#include "ops/attention/edge_terms.hpp"
#include "ops/attention/kernel.hpp"
#include "ops/dense/dense_ops.hpp"
#include "ops/edge_softmax/trial.hpp"
#include "ops/plan/plan_record.hpp"
#include "ops/plan/registry.hpp"

#ifdef TESSERA_WITH_CUDA
#include "ops/attention/cuda/cost.hpp"
#include "ops/attention/cuda/kernels.hpp"
#include "ops/attention/cuda/widened.hpp"
#include "ops/attention/on_unit_rows.hpp"
#endif

namespace tessera::ops {
namespace {

const EdgeTermOps& edge_term_ops(Device device) {
#ifdef TESSERA_WITH_CUDA
  if (device.kind == DeviceKind::cuda) return cuda_edge_term_ops();
#endif
  static_cast<void>(device);
  return cpu_edge_term_ops();
}

/// The arithmetic of every stage. Where tf32 is allowed, fp32 is used: scores that are rounded
/// would be amplified by the softmax, and the numbers between the stages are of fp32 anyway.
Precision stage_precision(const AttentionProblem& problem) {
  const Precision precision = problem.options.precision;
  return precision == Precision::tf32 ? Precision::fp32 : precision;
}

/// Options of a stage: where and how the plan runs, with a kernel of its own choice. What its runs
/// need they are lent.
template <class Options>
Options stage_options(const AttentionProblem& problem) {
  Options options;
  static_cast<PlanOptions&>(options) = problem.options;
  options.kernel.clear();
  options.own_workspace = false;
  options.precision = stage_precision(problem);
  options.heads = problem.options.heads;
  return options;
}

/// What the first stage has of each edge: a number for each head, or (gatv2) for each feature.
std::int64_t raw_numbers(const AttentionProblem& problem) {
  const AttentionOptions& options = problem.options;
  return options.form == AttentionForm::gatv2 ? options.features : options.heads;
}

SddmmPlan plan_scores(const Graph& graph, const AttentionProblem& problem) {
  const bool adds = problem.options.form != AttentionForm::dot;
  auto options = stage_options<SddmmOptions>(problem);
  options.function = adds ? EdgeFunction::add : EdgeFunction::dot;
  options.heads = raw_numbers(problem);
  options.features = adds ? options.heads : problem.options.features;
  return plan_sddmm(graph, options);
}

SpmmPlan plan_sums(const Graph& graph, const AttentionProblem& problem) {
  auto options = stage_options<SpmmOptions>(problem);
  options.features = problem.options.features;
  options.edge_values_at_run = true;
  options.edge_values_expected = true;
  options.edge_value_gradient = problem.options.backward;
  return plan_spmm(graph, options);
}

EdgeSoftmaxProblem softmax_of_rows(const AttentionProblem& problem) {
  return {problem.graph, stage_options<EdgeSoftmaxOptions>(problem)};
}

/// Scores, softmax and weighted sums by the kernels of other ops, with a number for each edge and
/// head in memory between them (gatv2: for each feature, too), in fp32 or fp64: with 16 bits such a
/// number is too coarse for an exponent. Raw scores become scores by the edge's own term, if there
/// is one, and leaky_relu; dot products without terms are scores but for their scale.
class StagedAttention final : public PreparedAttention {
 public:
  explicit StagedAttention(const AttentionProblem& problem)
      : problem_(problem),
        ops_(edge_term_ops(problem.options.device)),
        graph_(problem.graph.with_values({}).with_scales({}, {})),
        scores_(plan_scores(graph_, problem)),
        sums_(plan_sums(graph_, problem)),
        softmax_(make_choice<EdgeSoftmaxTrial>(edge_softmax_kernels(), softmax_of_rows(problem),
                                               softmax_of_rows(problem).options)),
        weights_(edge_array(problem.options.heads)) {
    if (has_raw_scores()) raw_ = edge_array(raw_numbers(problem));
    if (problem.options.backward) prepare_backward();
    // The workspace of a plan on the CPU begins anywhere, and what is lent on a boundary.
    of_plans_ = workspace_.add<std::byte>(
        std::max(scores_.workspace_bytes(), sums_.workspace_bytes()) + WorkspaceNeed::alignment);
    of_softmax_ = workspace_.add_for({softmax_.prepared->workspace()});
  }

  void run(const AttentionInputs& inputs, const AttentionOutputs& outputs, Stream stream,
           const WorkspaceView& workspace) const override {
    const Operand weights = numbers(weights_, workspace);
    compute_weights(inputs, weights, outputs.log_sum, stream, workspace);
    drop(inputs, weights, stream);
    SpmmInputs summands;
    summands.x = inputs.value;
    summands.edge_values = weights;
    ops::run(sums_, summands, SpmmOutputs{outputs.output}, stream, lent(workspace));
  }

  void run_backward(const AttentionInputs& inputs, ConstOperand output, ConstOperand log_sum,
                    ConstOperand grad_output, const AttentionGradOutputs& gradients, Stream stream,
                    const WorkspaceView& workspace) const override {
    // Scores with terms of edges have no gradient of the scale.
    double* const of_scale = has_raw_scores() ? nullptr : gradients.scale;
    const bool of_scores = !gradients.target.absent() || !gradients.source.absent() ||
                           !gradients.edge_term.absent() || !gradients.vector.absent() ||
                           of_scale != nullptr;
    const Operand weights = numbers(weights_, workspace);
    const Operand of_weights = of_scores ? numbers(gradients_, workspace) : Operand{};
    if (has_raw_scores()) {
      compute_weights(inputs, weights, {}, stream, workspace);
    } else {
      compute_scores(inputs, stream, workspace);
    }
    SpmmGradInputs summed;
    summed.grad_y = grad_output;
    summed.x = inputs.value;
    summed.edge_values = weights;
    SpmmGradOutputs of_sums;
    of_sums.grad_edge_values = of_weights;
    if (of_scores) ops::run_backward(sums_, summed, of_sums, stream, lent(workspace));
    if (has_raw_scores()) {
      if (of_scores) {
        drop(inputs, of_weights, stream);
        softmax_.prepared->run_backward(weights, of_weights, of_weights, stream,
                                        part_for(of_softmax_, workspace));
      }
      drop(inputs, weights, stream);
    } else {
      ops_.differentiate_weights({edge_rows_.get(), weights, inputs.scale, output, grad_output,
                                  log_sum, dropout_of(inputs), of_weights, of_scale,
                                  row_state_.in(workspace), scale_sums_.in(workspace)},
                                 stream);
    }
    of_sums = {};
    of_sums.grad_x = gradients.value;
    if (!gradients.value.absent()) {
      ops::run_backward(sums_, summed, of_sums, stream, lent(workspace));
    }
    if (!of_scores) return;
    const Operand of_raw = by_vector() ? raw(workspace) : of_weights;
    if (has_raw_scores()) {
      ops_.differentiate(
          terms_of(inputs, workspace), of_weights,
          {of_raw, gradients.edge_term, gradients.vector, sums_of_vector_.in(workspace)}, stream);
    }
    if (gradients.target.absent() && gradients.source.absent()) return;
    ops::run_backward(scores_, inputs.target, inputs.source, of_raw, gradients.target,
                      gradients.source, stream, lent(workspace));
  }

  void weights(const AttentionInputs& inputs, ConstOperand, Operand weights, Stream stream,
               const WorkspaceView& workspace) const override {
    const Operand own = numbers(weights_, workspace);
    if (weights.type == own.type) {
      compute_weights(inputs, weights, {}, stream, workspace);
      return;
    }
    // The caller's weights have 16 bits where only the operands were widened.
    compute_weights(inputs, own, {}, stream, workspace);
    dense_ops(problem_.options.device).run(CopyCall{own, weights}, stream);
  }

  WorkspaceNeed workspace() const override { return workspace_; }

  std::vector<std::pair<const char*, Decision>> stages() const override {
    return {{"scores", PlanAccess::record<PlanRecord>(scores_).decision},
            {"softmax", softmax_.decision},
            {"weighted sums", PlanAccess::record<PlanRecord>(sums_).decision}};
  }

 private:
  bool by_vector() const { return problem_.options.form == AttentionForm::gatv2; }
  bool has_raw_scores() const {
    return problem_.options.form != AttentionForm::dot || problem_.options.edge_terms;
  }
  Dropout dropout_of(const AttentionInputs& inputs) const {
    return {problem_.options.dropout, inputs.random, inputs.clock};
  }

  void drop(const AttentionInputs& inputs, const Operand& numbers, Stream stream) const {
    const Dropout dropout = dropout_of(inputs);
    if (dropout.active()) ops_.drop(numbers, dropout.constants(), stream);
  }

  void prepare_backward() {
    const AttentionOptions& options = problem_.options;
    gradients_ = edge_array(options.heads);
    if (!has_raw_scores()) {
      edge_rows_ = ops_.edge_rows(graph_, options.place());
      row_state_ = workspace_.add<float>(checked_area(graph_.num_rows(), 2 * options.heads));
      scale_sums_ = workspace_.add<double>(WeightsCall::most_scale_sums);
    }
    if (by_vector()) {
      sums_of_vector_ = workspace_.add<double>(
          checked_area(EdgeTermsCall::num_pieces(graph_.num_edges()), options.features));
    }
  }

  /// In whole shares of a thread, so that none has to look where the array ends.
  WorkspacePart<std::byte> edge_array(std::int64_t numbers_of_edge) {
    constexpr std::int64_t share = WeightsCall::share;
    const auto bytes = static_cast<std::int64_t>(bytes_per_element(problem_.options.precision));
    const std::int64_t numbers = checked_area(problem_.graph.num_edges(), numbers_of_edge);
    return workspace_.add<std::byte>(checked_area((numbers + share - 1) / share * share, bytes));
  }

  Operand view(const WorkspacePart<std::byte>& part, std::int64_t cols,
               const WorkspaceView& workspace) const {
    return {part.in(workspace),
            storage_of(problem_.options.precision),
            problem_.options.device,
            problem_.graph.num_edges(),
            cols,
            cols};
  }
  /// Edges x heads, side by side.
  Operand numbers(const WorkspacePart<std::byte>& part, const WorkspaceView& workspace) const {
    return view(part, problem_.options.heads, workspace);
  }
  Operand raw(const WorkspaceView& workspace) const {
    return view(raw_, raw_numbers(problem_), workspace);
  }

  Workspace lent(const WorkspaceView& workspace) const {
    void* memory = of_plans_.in(workspace);
    auto bytes = static_cast<std::size_t>(of_plans_.size);
    memory = std::align(WorkspaceNeed::alignment, bytes - WorkspaceNeed::alignment, memory, bytes);
    return {memory, static_cast<std::int64_t>(bytes)};
  }

  EdgeTermsCall terms_of(const AttentionInputs& inputs, const WorkspaceView& workspace) const {
    const bool is_dot = problem_.options.form == AttentionForm::dot;
    return {problem_.options.heads,
            raw(workspace),
            inputs.edge_term,
            is_dot ? inputs.scale : 1,
            is_dot ? 1 : problem_.options.negative_slope,
            by_vector(),
            inputs.vector};
  }

  /// Into the place of weights; raw scores stay.
  void compute_scores(const AttentionInputs& inputs, Stream stream,
                      const WorkspaceView& workspace) const {
    const Operand scores = numbers(weights_, workspace);
    ops::run(scores_, inputs.target, inputs.source, has_raw_scores() ? raw(workspace) : scores,
             stream, lent(workspace));
    if (has_raw_scores()) ops_.score(terms_of(inputs, workspace), scores, stream);
  }
  /// Before dropout.
  void compute_weights(const AttentionInputs& inputs, const Operand& weights,
                       const Operand& log_sum, Stream stream,
                       const WorkspaceView& workspace) const {
    compute_scores(inputs, stream, workspace);
    softmax_.prepared->run_scaled(numbers(weights_, workspace), has_raw_scores() ? 1 : inputs.scale,
                                  weights, log_sum, stream, part_for(of_softmax_, workspace));
  }

  AttentionProblem problem_;
  const EdgeTermOps& ops_;
  Graph graph_;
  SddmmPlan scores_;
  SpmmPlan sums_;
  Choice<EdgeSoftmaxKernel> softmax_;
  WorkspaceNeed workspace_;
  WorkspacePart<std::byte> weights_;  ///< scores before the softmax
  WorkspacePart<std::byte> raw_;
  WorkspacePart<std::byte> of_plans_, of_softmax_;

  // What the backward pass needs, where there is one.
  std::shared_ptr<const void> edge_rows_;
  WorkspacePart<std::byte> gradients_;
  WorkspacePart<float> row_state_;
  WorkspacePart<double> scale_sums_, sums_of_vector_;
};

std::string why_not_with_terms(const AttentionProblem& problem) {
  if (!problem.options.edge_terms) return "with a term for each edge only";
  const Precision precision = stage_precision(problem);
  if (precision == Precision::fp32) return {};
  if (precision == Precision::fp64) {
    return problem.options.device.kind == DeviceKind::cpu ? "" : "fp64 exists on the CPU only";
  }
  return "terms of edges are of fp32 and fp64";
}

AttentionKernel kernel_with_terms() {
  return {{.name = "attention/cpu/terms",
           .description = "with a term for each edge: scores, softmax and weighted sums one after "
                          "another, each by the kernel that is fastest for it",
           .op = "attention"},
          why_not_with_terms,
          [](const AttentionProblem&) { return 0.0; },  // it competes with no other
          [](const AttentionProblem& problem) -> std::unique_ptr<const PreparedAttention> {
            return std::make_unique<StagedAttention>(problem);
          }};
}

#ifdef TESSERA_WITH_CUDA

/// 16-bit operands are copied, and rows of cosines made of unit length. Without features, the
/// scores of GATv2 are as those of dot products: sums of nothing.
std::unique_ptr<const PreparedAttention> prepare_on_gpu(const AttentionProblem& problem) {
  if (problem.options.form == AttentionForm::gatv2 && problem.options.features == 0) {
    return prepare_on_gpu(as_dot_products(problem));
  }
  if (problem.options.form == AttentionForm::cosine) {
    return on_unit_rows(prepare_on_gpu(as_dot_products(problem)), problem);
  }
  if (bytes_per_element(problem.options.precision) == 2) {
    return widened(prepare_on_gpu(in_fp32(problem)), problem);
  }
  return std::make_unique<StagedAttention>(problem);
}

/// Heads that rows do not take, and no features at all, are served here, too.
std::string why_not_exact(const AttentionProblem& problem) {
  if (problem.options.edge_terms) return why_not_with_terms(problem);
  if (problem.options.precision == Precision::fp64) return "fp64 exists on the CPU only";
  return taken_by_rows(problem.options) ? "terms of edges and very wide heads only" : "";
}

AttentionKernel exact_kernel() {
  AttentionKernel kernel = kernel_with_terms();
  kernel.info.name = "attention/cuda/terms";
  kernel.info.description += "; heads of more than 2048 bytes, too";
  kernel.info.device = DeviceKind::cuda;
  kernel.why_not = why_not_exact;
  // Of wide heads it competes with the kernel below, whose stages are faster.
  kernel.predicted_us = [](const AttentionProblem& problem) {
    const AttentionOptions& options = problem.options;
    return options.edge_terms || options.form != AttentionForm::dot
               ? 0.0
               : 2 * predict_staged_us(problem);
  };
  kernel.prepare = [](const AttentionProblem& problem) {
    AttentionProblem exact = problem;
    if (!problem.options.edge_terms) exact.options.strict = exact.options.exact_nonfinite = true;
    return prepare_on_gpu(exact);
  };
  return kernel;
}

AttentionKernel staged_kernel() {
  return {{.name = "attention/cuda/staged",
           .description = "dot products, softmax and weighted sums one after another in fp32, each "
                          "by the kernel that is fastest for it",
           .op = "attention",
           .device = DeviceKind::cuda,
           .strict = false,
           .exact_nonfinite = false,
           .repeated_edges = false},
          why_not_staged,
          predict_staged_us,
          prepare_on_gpu};
}

#endif

}  // namespace

std::span<const AttentionKernel> staged_attention_kernels() {
  static const std::vector<AttentionKernel> table = [] {
    std::vector<AttentionKernel> kernels{kernel_with_terms()};
#ifdef TESSERA_WITH_CUDA
    kernels.push_back(exact_kernel());
    kernels.push_back(staged_kernel());
#endif
    return kernels;
  }();
  return table;
}

}  // namespace tessera::ops

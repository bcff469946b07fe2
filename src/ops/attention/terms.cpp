// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/terms.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "tessera/ops/sddmm.hpp"
#include "tessera/ops/spmm.hpp"

#include "ops/attention/edge_terms.hpp"
#include "ops/edge_softmax/trial.hpp"
#include "ops/plan_record.hpp"
#include "ops/registry.hpp"

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

/// Attention with a term for each edge: scores, softmax and weighted sums by the kernels of other
/// ops, with a number for each edge and head in memory between them (gatv2: for each feature, too).
class AttentionWithTerms final : public PreparedAttention {
 public:
  explicit AttentionWithTerms(const AttentionProblem& problem)
      : problem_(problem),
        ops_(edge_term_ops(problem.options.device)),
        graph_(problem.graph.with_values({}).with_scales({}, {})),
        scores_(plan_scores(graph_, problem)),
        sums_(plan_sums(graph_, problem)),
        softmax_(make_choice<EdgeSoftmaxTrial>(edge_softmax_kernels(), softmax_of_rows(problem),
                                               softmax_of_rows(problem).options)),
        raw_(edge_array(raw_numbers(problem))),
        weights_(edge_array(problem.options.heads)) {
    if (problem.options.backward) {
      dropped_ = edge_array(problem.options.heads);
      gradients_ = edge_array(problem.options.heads);
      if (by_vector()) {
        sums_of_vector_ = workspace_.add<double>(checked_area(
            VectorTermsCall::num_pieces(graph_.num_edges()), problem.options.features));
      }
    }
    // The workspace of a plan on the CPU begins anywhere, and what is lent on a boundary.
    of_plans_ = workspace_.add<std::byte>(
        std::max(scores_.workspace_bytes(), sums_.workspace_bytes()) + WorkspaceNeed::alignment);
    of_softmax_ = workspace_.add_for({softmax_.prepared->workspace()});
  }

  void run(const AttentionInputs& inputs, const AttentionOutputs& outputs, Stream stream,
           const WorkspaceView& workspace) const override {
    compute_weights(inputs, outputs.log_sum, stream, workspace);
    const Operand weights = numbers(weights_, workspace);
    drop(inputs, weights, stream);
    SpmmInputs summands;
    summands.x = inputs.value;
    summands.edge_values = weights;
    ops::run(sums_, summands, SpmmOutputs{outputs.output}, stream, lent(workspace));
  }

  void run_backward(const AttentionInputs& inputs, ConstOperand, ConstOperand,
                    ConstOperand grad_output, const AttentionGradOutputs& gradients, Stream stream,
                    const WorkspaceView& workspace) const override {
    compute_weights(inputs, {}, stream, workspace);
    const Operand weights = numbers(weights_, workspace);
    const Operand dropped = numbers(dropped_, workspace);
    const Operand of_numbers = numbers(gradients_, workspace);
    const bool of_scores = !gradients.target.absent() || !gradients.source.absent() ||
                           !gradients.edge_term.absent() || !gradients.vector.absent();
    SpmmGradInputs summed;
    summed.grad_y = grad_output;
    summed.x = inputs.value;
    summed.edge_values = weights;
    if (problem_.options.dropout > 0) {
      ops_.copy(weights, dropped, stream);
      drop(inputs, dropped, stream);
      summed.edge_values = dropped;
    }
    SpmmGradOutputs of_sums;
    of_sums.grad_x = gradients.value;
    if (of_scores) of_sums.grad_edge_values = of_numbers;
    ops::run_backward(sums_, summed, of_sums, stream, lent(workspace));
    if (!of_scores) return;
    drop(inputs, of_numbers, stream);
    softmax_.prepared->run_backward(weights, of_numbers, of_numbers, stream,
                                    part_for(of_softmax_, workspace));
    if (by_vector()) {
      ops_.differentiate_by_vector(
          vector_terms_of(inputs, workspace), of_numbers,
          {raw(workspace), gradients.edge_term, gradients.vector, sums_of_vector_.in(workspace)},
          stream);
    } else {
      ops_.differentiate(terms_of(inputs, workspace), of_numbers, gradients.edge_term, stream);
    }
    if (gradients.target.absent() && gradients.source.absent()) return;
    ops::run_backward(scores_, inputs.target, inputs.source,
                      by_vector() ? raw(workspace) : of_numbers, gradients.target, gradients.source,
                      stream, lent(workspace));
  }

  void weights(const AttentionInputs& inputs, ConstOperand, Operand weights, Stream stream,
               const WorkspaceView& workspace) const override {
    compute_weights(inputs, {}, stream, workspace);
    ops_.copy(numbers(weights_, workspace), weights, stream);
  }

  WorkspaceNeed workspace() const override { return workspace_; }

  std::vector<std::pair<const char*, Decision>> stages() const override {
    return {{"scores", PlanAccess::record<PlanRecord>(scores_).decision},
            {"softmax", softmax_.decision},
            {"weighted sums", PlanAccess::record<PlanRecord>(sums_).decision}};
  }

 private:
  bool by_vector() const { return problem_.options.form == AttentionForm::gatv2; }

  WorkspacePart<std::byte> edge_array(std::int64_t numbers_of_edge) {
    const auto bytes = static_cast<std::int64_t>(bytes_per_element(problem_.options.precision));
    const std::int64_t numbers = checked_area(problem_.graph.num_edges(), numbers_of_edge);
    return workspace_.add<std::byte>(checked_area(numbers, bytes));
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
    const Operand scores = raw(workspace);
    const bool is_dot = problem_.options.form == AttentionForm::dot;
    return {scores.rows * scores.cols,
            scores.cols,
            scores,
            inputs.edge_term,
            is_dot ? inputs.scale : 1,
            is_dot ? 1 : problem_.options.negative_slope};
  }

  VectorTermsCall vector_terms_of(const AttentionInputs& inputs,
                                  const WorkspaceView& workspace) const {
    return {problem_.options.heads, raw(workspace), inputs.edge_term, inputs.vector,
            problem_.options.negative_slope};
  }

  /// The weights before dropout; raw scores stay.
  void compute_weights(const AttentionInputs& inputs, const Operand& log_sum, Stream stream,
                       const WorkspaceView& workspace) const {
    const Operand scores = numbers(weights_, workspace);
    ops::run(scores_, inputs.target, inputs.source, raw(workspace), stream, lent(workspace));
    if (by_vector()) {
      ops_.score_by_vector(vector_terms_of(inputs, workspace), scores, stream);
    } else {
      ops_.add(terms_of(inputs, workspace), scores, stream);
    }
    ops_.softmax(*softmax_.prepared, graph_, scores, log_sum, stream,
                 part_for(of_softmax_, workspace));
  }

  void drop(const AttentionInputs& inputs, const Operand& numbers, Stream stream) const {
    const Dropout dropout{problem_.options.dropout, inputs.random, inputs.clock};
    if (dropout.active()) ops_.drop(numbers, dropout.constants(), stream);
  }

  AttentionProblem problem_;
  const EdgeTermOps& ops_;
  Graph graph_;
  SddmmPlan scores_;
  SpmmPlan sums_;
  Choice<EdgeSoftmaxKernel> softmax_;
  WorkspaceNeed workspace_;
  WorkspacePart<std::byte> raw_, weights_;
  WorkspacePart<std::byte> dropped_, gradients_;  ///< of the backward pass, where there is one
  WorkspacePart<double> sums_of_vector_;          ///< the same, of gatv2
  WorkspacePart<std::byte> of_plans_, of_softmax_;
};

std::string why_not(const AttentionProblem& problem) {
  if (!problem.options.edge_terms) return "with a term for each edge only";
  const Precision precision = stage_precision(problem);
  if (precision == Precision::fp32) return {};
  if (precision == Precision::fp64) {
    return problem.options.device.kind == DeviceKind::cpu ? "" : "fp64 exists on the CPU only";
  }
  return "terms of edges are of fp32 and fp64";
}

/// It competes with no other.
double predicted_us(const AttentionProblem&) { return 0; }

AttentionKernel kernel_on(DeviceKind device, const char* name) {
  AttentionKernel kernel;
  kernel.info.name = name;
  kernel.info.description =
      "with a term for each edge: scores, softmax and weighted sums one after another, each by the "
      "kernel that is fastest for it";
  kernel.info.op = "attention";
  kernel.info.device = device;
  kernel.why_not = why_not;
  kernel.predicted_us = predicted_us;
  kernel.prepare = [](const AttentionProblem& problem) -> std::unique_ptr<const PreparedAttention> {
    return std::make_unique<AttentionWithTerms>(problem);
  };
  return kernel;
}

}  // namespace

std::span<const AttentionKernel> attention_kernels_with_terms() {
  static const std::vector<AttentionKernel> table = [] {
    std::vector<AttentionKernel> kernels{kernel_on(DeviceKind::cpu, "attention/cpu/terms")};
#ifdef TESSERA_WITH_CUDA
    kernels.push_back(kernel_on(DeviceKind::cuda, "attention/cuda/terms"));
#endif
    return kernels;
  }();
  return table;
}

}  // namespace tessera::ops

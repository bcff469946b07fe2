// SPDX-License-Identifier: Apache-2.0
#include "ops/check.hpp"
#include "ops/scales.hpp"
#include "ops/sddmm/kernel.hpp"
#include "ops/spmm/kernel.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/ops/spmm.hpp"

namespace tessera::ops {
namespace {

bool of_winners(Reduction reduction) {
  return reduction == Reduction::max || reduction == Reduction::min;
}

/// The gradient of an edge's value is a dot product of the features of its two ends.
SddmmProblem edge_gradient_problem(const SpmmProblem& problem) {
  SddmmProblem dots;
  dots.graph = problem.graph;
  dots.precision = problem.precision;
  dots.features = problem.features;
  dots.factor = problem.reduction == Reduction::mean ? EdgeFactor::mean_scales : EdgeFactor::scales;
  return dots;
}

/// The same for max and min: over the elements that the edge's source won.
template <class T>
void won_edge_gradients(const SpmmProblem& problem, const SpmmGradInputs& inputs,
                        const Operand& grad_edge_values) {
  using S = SumOf<T>;
  const Graph& graph = problem.graph;
  const auto grad_y = inputs.grad_y.as<T>();
  const auto x = inputs.x.as<T>();
  const auto result = grad_edge_values.as<T>();
  parallel_for(graph.num_rows(), 64, [&](std::int64_t row) {
    const S row_scale = graph.has_row_scale() ? static_cast<S>(graph.row_scale()[row]) : S(1);
    for (EdgeOffset edge = graph.row_offsets()[row]; edge < graph.row_offsets()[row + 1]; ++edge) {
      const VertexId col = graph.col_indices()[edge];
      double sum = 0;
      for (std::int64_t k = 0; k < problem.features; ++k) {
        if (inputs.winners(row, k) != col) continue;
        sum += static_cast<double>(grad_y(row, k)) * static_cast<double>(x(col, k));
      }
      const S col_scale = graph.has_col_scale() ? static_cast<S>(graph.col_scale()[col]) : S(1);
      result(edge, 0) = static_cast<T>(static_cast<S>(sum) * row_scale * col_scale);
    }
  });
}

}  // namespace

struct SpmmBackwardPlan::State {
  SpmmProblem problem;
  SpmmOptions options;
  Explanation explanation;
  std::unique_ptr<const PreparedSpmm> grad_x;
  std::unique_ptr<const PreparedSddmm> grad_edge_values;  ///< none for max and min
};

const Graph& SpmmBackwardPlan::graph() const noexcept { return state_->problem.graph; }
const SpmmOptions& SpmmBackwardPlan::options() const noexcept { return state_->options; }
Explanation SpmmBackwardPlan::explain() const { return state_->explanation; }

SpmmBackwardPlan plan_spmm_backward(const Graph& graph, const SpmmOptions& options) {
  check_features(options.features);
  auto state = std::make_shared<SpmmBackwardPlan::State>();
  state->problem = {graph, options.reduction, options.precision, options.features,
                    SpmmPass::backward};
  state->problem.device = options.device;
  state->options = options;
  auto [kernel, explanation] = choose_kernel(spmm_kernels(), state->problem, options);
  state->explanation = std::move(explanation);
  state->grad_x = kernel->prepare(state->problem);
  if (!of_winners(options.reduction)) {
    const SddmmProblem dots = edge_gradient_problem(state->problem);
    PlanOptions any = options;
    any.kernel.clear();
    state->grad_edge_values = choose_kernel(sddmm_kernels(), dots, any).kernel->prepare(dots);
  }
  return SpmmBackwardPlan(std::move(state));
}

void run(const SpmmBackwardPlan& plan, const SpmmGradInputs& inputs, const SpmmGradOutputs& outputs,
         Stream stream) {
  const SpmmBackwardPlan::State& state = plan.state();
  const Graph& graph = plan.graph();
  const SpmmOptions& options = plan.options();
  const Expected of_targets{options.precision, graph.num_rows(), options.features};
  const Expected of_sources{options.precision, graph.num_cols(), options.features};
  const Expected of_edges{options.precision, graph.num_edges(), 1};
  check_operand("grad_y", inputs.grad_y, of_targets);
  if (!inputs.edge_values.absent()) check_operand("edge_values", inputs.edge_values, of_edges);
  if (of_winners(options.reduction)) {
    const MatrixView<const VertexId>& winners = inputs.winners;
    check_shape("winners", winners.data, winners.rows, winners.cols, winners.stride,
                graph.num_rows(), options.features);
  }
  if (!outputs.grad_x.absent()) {
    check_operand("grad_x", outputs.grad_x, of_sources);
    check_apart("grad_x", outputs.grad_x, "grad_y", inputs.grad_y);
  }
  if (!outputs.grad_edge_values.absent()) {
    check_operand("x", inputs.x, of_sources);
    check_operand("grad_edge_values", outputs.grad_edge_values, of_edges);
    check_apart("grad_edge_values", outputs.grad_edge_values, "grad_y", inputs.grad_y);
    check_apart("grad_edge_values", outputs.grad_edge_values, "x", inputs.x);
  }

  if (!outputs.grad_x.absent()) {
    state.grad_x->run({inputs.grad_y, inputs.edge_values, inputs.winners, outputs.grad_x, {}},
                      stream);
  }
  if (outputs.grad_edge_values.absent()) return;
  if (state.grad_edge_values != nullptr) {
    state.grad_edge_values->run(inputs.grad_y, inputs.x, outputs.grad_edge_values, stream);
  } else {
    visit_precision(options.precision, [&]<class T>() {
      won_edge_gradients<T>(state.problem, inputs, outputs.grad_edge_values);
    });
  }
}

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "ops/check.hpp"
#include "ops/sddmm/kernel.hpp"
#include "ops/sddmm/trial.hpp"
#include "ops/spmm/trial.hpp"
#include "ops/spmm/weights_fit.hpp"
#include "ops/spmm/winner_gradients.hpp"
#include "tessera/core/error.hpp"
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
  dots.set_place(problem.place());
  return dots;
}

std::unique_ptr<const WinnerGradients> winner_gradients(const SpmmProblem& problem) {
#ifdef TESSERA_WITH_CUDA
  if (problem.device.kind == DeviceKind::cuda) return cuda_winner_gradients(problem);
#endif
  return cpu_winner_gradients(problem);
}

}  // namespace

struct SpmmBackwardPlan::State {
  SpmmProblem problem;
  SpmmOptions options;
  Explanation explanation;
  std::unique_ptr<const PreparedSpmm> grad_x;
  std::unique_ptr<const PreparedSddmm> grad_edge_values;      ///< of sum and mean
  std::unique_ptr<const WinnerGradients> grad_winner_values;  ///< of max and min
  std::optional<PlanWorkspace> workspace;                     ///< the last member: see there
};

const Graph& SpmmBackwardPlan::graph() const noexcept { return state_->problem.graph; }
const SpmmOptions& SpmmBackwardPlan::options() const noexcept { return state_->options; }
Explanation SpmmBackwardPlan::explain() const { return state_->explanation; }
std::int64_t SpmmBackwardPlan::workspace_bytes() const noexcept {
  return state_->workspace->bytes() + state_->grad_x->own_bytes();
}

SpmmBackwardPlan plan_spmm_backward(const Graph& graph, const SpmmOptions& options) {
  check_features(options.features);
  auto state = std::make_shared<SpmmBackwardPlan::State>();
  state->problem = {graph, options.reduction, options.precision, options.features,
                    SpmmPass::backward};
  state->problem.set_place(options.place());
  state->problem.edge_values_at_run = options.edge_values_at_run;
  state->problem.edge_values_expected = expects_edge_values(options);
  check_weights_fit(state->problem);
  state->options = options;
  auto choice = make_choice<SpmmTrial>(spmm_kernels(), state->problem, options);
  state->explanation = std::move(choice.explanation);
  state->grad_x = std::move(choice.prepared);
  if (options.edge_value_gradient && of_winners(options.reduction)) {
    state->grad_winner_values = winner_gradients(state->problem);
  } else if (options.edge_value_gradient) {
    const SddmmProblem dots = edge_gradient_problem(state->problem);
    PlanOptions any = options;
    any.kernel.clear();
    state->grad_edge_values = make_choice<SddmmTrial>(sddmm_kernels(), dots, any).prepared;
  }
  state->workspace.emplace(state->grad_x->workspace(), options.place(), options.own_workspace);
  synchronise(options.device, options.stream);
  return SpmmBackwardPlan(std::move(state));
}

void run(const SpmmBackwardPlan& plan, const SpmmGradInputs& inputs, const SpmmGradOutputs& outputs,
         Stream stream, Workspace workspace) {
  const SpmmBackwardPlan::State& state = plan.state();
  const Graph& graph = plan.graph();
  const SpmmOptions& options = plan.options();
  const ElementType type = storage_of(options.precision);
  const Expected of_targets{type, graph.num_rows(), options.features};
  const Expected of_sources{type, graph.num_cols(), options.features};
  const Expected of_edges{type, graph.num_edges(), 1};
  const Checker check("spmm backward", options.device);
  check.matrix(inputs.grad_y, "grad_y", of_targets);
  if (!inputs.edge_values.absent()) {
    check_values_were_planned(options.edge_values_at_run);
    check.matrix(inputs.edge_values, "edge_values", of_edges);
  }
  if (of_winners(options.reduction)) {
    check.matrix(inputs.winners, "winners",
                 {ElementType::int32, graph.num_rows(), options.features});
  }
  if (!outputs.grad_x.absent()) {
    check.matrix(outputs.grad_x, "grad_x", of_sources);
    check.apart(outputs.grad_x, "grad_x", inputs.grad_y, "grad_y");
  }
  if (!outputs.grad_edge_values.absent()) {
    if (!options.edge_value_gradient) {
      throw Error(ErrorCode::invalid_argument, "the plan has no gradient of edge values",
                  "grad_edge_values", "plan with edge_value_gradient");
    }
    check.matrix(inputs.x, "x", of_sources);
    check.matrix(outputs.grad_edge_values, "grad_edge_values", of_edges);
    check.apart(outputs.grad_edge_values, "grad_edge_values", inputs.grad_y, "grad_y");
    check.apart(outputs.grad_edge_values, "grad_edge_values", inputs.x, "x");
  }

  const OnDevice current(options.device);
  const WorkspaceUse use(*state.workspace, workspace, stream);
  if (!outputs.grad_x.absent()) {
    state.grad_x->run({inputs.grad_y, inputs.edge_values, inputs.winners, outputs.grad_x, {}},
                      stream, use.view());
  }
  if (outputs.grad_edge_values.absent()) return;
  if (state.grad_edge_values != nullptr) {
    state.grad_edge_values->run(inputs.grad_y, inputs.x, outputs.grad_edge_values, stream);
  } else {
    state.grad_winner_values->run(inputs, outputs.grad_edge_values, stream);
  }
}

}  // namespace tessera::ops

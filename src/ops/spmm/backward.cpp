// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ops/plan/check.hpp"
#include "ops/sddmm/trial.hpp"
#include "ops/spmm/record.hpp"
#include "ops/spmm/row_order.hpp"
#include "ops/spmm/trial.hpp"
#include "tessera/core/error.hpp"
#include "tessera/detail/ops/plan_only.hpp"
#include "tessera/ops/spmm.hpp"

namespace tessera::ops {
namespace {

/// The gradient of an edge's value is a dot product of the features of its two ends.
SddmmProblem edge_gradient_problem(const SpmmProblem& problem) {
  SddmmProblem dots;
  dots.graph = problem.graph;
  dots.precision = problem.precision;
  dots.features = problem.features;
  dots.heads = problem.heads;
  if (problem.reduction == Reduction::mean) {
    dots.factor = EdgeFactor::mean_scales;
  } else if (problem.graph.has_row_scale() || problem.graph.has_col_scale()) {
    dots.factor = EdgeFactor::scales;
  }
  dots.set_place(problem.place());
  return dots;
}

}  // namespace

void plan_gradients(SpmmRecord& record) {
  const SpmmOptions& options = record.options;
  SpmmProblem problem = spmm_problem(record.graph, options, SpmmPass::backward);
  check_weights_fit(problem);
  PlanOptions how = options;
  how.kernel = options.backward_kernel;
  problem.reorders = should_reorder(problem, how);
  auto choice = make_choice<SpmmTrial>(spmm_kernels(), problem, how);
  record.has_backward = true;
  record.grad_x = std::move(choice.prepared);
  if (options.edge_value_gradient && has_winners(options.reduction)) {
    record.edge_value_gradients = winner_gradients(problem);
  } else if (options.edge_value_gradient) {
    PlanOptions any = options;
    any.kernel.clear();
    auto dots = make_choice<SddmmTrial>(sddmm_kernels(), edge_gradient_problem(problem), any);
    const std::shared_ptr<const PreparedSddmm> prepared = std::move(dots.prepared);
    record.edge_value_gradients = [prepared](const SpmmGradInputs& inputs, const Operand& gradients,
                                             Stream stream) {
      prepared->run(inputs.grad_y, inputs.x, gradients, stream);
    };
    choice.decision.add_child("gradient of edge values", std::move(dots.decision));
  }
  record.decision.add_child("backward", std::move(choice.decision));
}

void run_backward(const SpmmPlan& plan, const SpmmGradInputs& inputs,
                  const SpmmGradOutputs& outputs, Stream stream, Workspace workspace) {
  require_backward(plan);
  const auto& record = PlanAccess::record<SpmmRecord>(plan);
  const SpmmOptions& options = record.options;
  const ElementType type = storage_of(options.precision);
  const Expected of_targets{type, record.num_rows, options.features};
  const Expected of_sources{type, record.num_cols, options.features};
  const Expected of_edges{type, record.num_edges, options.heads};
  const Checker check("spmm backward", options.device);
  check.matrix(inputs.grad_y, "grad_y", of_targets);
  const bool wants_values = options.heads > 1 && record.num_edges > 0 && !outputs.grad_x.absent();
  if (!inputs.edge_values.absent() || wants_values) {
    check_values_were_planned(options);
    check.matrix(inputs.edge_values, "edge_values", of_edges);
  }
  if (has_winners(options.reduction)) {
    check.matrix(inputs.winners, "winners",
                 {ElementType::int32, record.num_rows, options.features});
  }
  if (!outputs.grad_x.absent()) {
    check_residual(check, options.backward_epilogue, inputs.residual, inputs.residual_scale,
                   of_sources, outputs.grad_x);
    check.matrix(outputs.grad_x, "grad_x", of_sources);
    check.apart(outputs.grad_x, "grad_x", inputs.grad_y, "grad_y");
  }
  if (!outputs.grad_edge_values.absent()) {
    if (!options.edge_value_gradient) {
      refuse("the plan has no gradient of edge values", "grad_edge_values",
             "plan with edge_value_gradient");
    }
    if (!record.edge_value_gradients) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("the gradient of edge values of a {} over edges in no order",
                              to_string(options.reduction)),
                  "grad_edge_values", "make a graph of the edges and plan on that");
    }
    check.matrix(inputs.x, "x", of_sources);
    check.matrix(outputs.grad_edge_values, "grad_edge_values", of_edges);
    check.apart(outputs.grad_edge_values, "grad_edge_values",
                {{inputs.grad_y, "grad_y"}, {inputs.x, "x"}});
  }

  if (plans_only()) return;
  const OnDevice current(options.device);
  const WorkspaceUse use(*record.workspace, workspace, stream);
  if (!outputs.grad_x.absent()) {
    SpmmCall call{inputs.grad_y, inputs.edge_values, inputs.winners, outputs.grad_x, {}};
    call.residual = inputs.residual;
    call.residual_scale = inputs.residual_scale;
    record.grad_x->run(call, stream, use.view());
  }
  if (!outputs.grad_edge_values.absent()) {
    record.edge_value_gradients(inputs, outputs.grad_edge_values, stream);
  }
}

}  // namespace tessera::ops

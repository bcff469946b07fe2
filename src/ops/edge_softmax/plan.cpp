// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/ops/edge_softmax.hpp"

#include "ops/check.hpp"
#include "ops/check_options.hpp"
#include "ops/edge_softmax/kernel.hpp"
#include "ops/edge_softmax/trial.hpp"
#include "ops/plan_only.hpp"
#include "ops/plan_record.hpp"
#include "ops/planning_scope.hpp"

namespace tessera::ops {

namespace {

/// What a plan of edge_softmax keeps. One kernel has both passes.
struct EdgeSoftmaxRecord final : PlanRecord {
  std::int64_t workspace_bytes() const noexcept override {
    return workspace->bytes() + prepared->own_bytes();
  }

  EdgeSoftmaxOptions options;
  std::unique_ptr<const PreparedEdgeSoftmax> prepared;
  std::optional<PlanWorkspace> workspace;  ///< the last member: see there
};

Expected edge_numbers(const EdgeSoftmaxPlan& plan) {
  return {storage_of(plan.options().precision), plan.graph().num_edges(), plan.options().heads};
}

}  // namespace

EdgeSoftmaxPlan plan_edge_softmax(const Graph& graph, const EdgeSoftmaxOptions& options) {
  check_plan_options(options, options.precision);
  if (options.heads < 1) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} heads", options.heads), "heads");
  }
  auto record = std::make_shared<EdgeSoftmaxRecord>();
  record->graph = graph;
  record->options = options;
  const PlanningScope planning(graph, options, false);
  auto choice = make_choice<EdgeSoftmaxTrial>(edge_softmax_kernels(),
                                              EdgeSoftmaxProblem{graph, options}, options);
  record->kernel = &choice.kernel->info;
  record->decision = std::move(choice.decision);
  record->prepared = std::move(choice.prepared);
  record->has_backward = options.backward;
  record->workspace.emplace(record->prepared->workspace(), options.place(), options.own_workspace);
  if (options.backward) record->decision.add_child("backward", by_same_kernel(*record));
  return PlanAccess::make(std::shared_ptr<const EdgeSoftmaxRecord>(std::move(record)));
}

void run(const EdgeSoftmaxPlan& plan, ConstOperand scores, Operand weights, Stream stream,
         Workspace workspace) {
  const Checker check("edge_softmax", plan.options().device);
  check.matrix(scores, "scores", edge_numbers(plan));
  check.matrix(weights, "weights", edge_numbers(plan));
  check.apart_or_same(weights, "weights", scores, "scores");
  if (plans_only()) return;
  const OnDevice current(plan.options().device);
  const auto& record = PlanAccess::record<EdgeSoftmaxRecord>(plan);
  const WorkspaceUse use(*record.workspace, workspace, stream);
  record.prepared->run(scores, weights, stream, use.view());
}

void run_backward(const EdgeSoftmaxPlan& plan, ConstOperand weights, ConstOperand grad_weights,
                  Operand grad_scores, Stream stream, Workspace workspace) {
  require_backward(plan);
  const Checker check("edge_softmax backward", plan.options().device);
  check.matrix(weights, "weights", edge_numbers(plan));
  check.matrix(grad_weights, "gradient of weights", edge_numbers(plan));
  check.matrix(grad_scores, "gradient of scores", edge_numbers(plan));
  check.apart(grad_scores, "gradient of scores", weights, "weights");
  check.apart_or_same(grad_scores, "gradient of scores", grad_weights, "gradient of weights");
  if (plans_only()) return;
  const OnDevice current(plan.options().device);
  const auto& record = PlanAccess::record<EdgeSoftmaxRecord>(plan);
  const WorkspaceUse use(*record.workspace, workspace, stream);
  record.prepared->run_backward(weights, grad_weights, grad_scores, stream, use.view());
}

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "tessera/ops/edge_softmax.hpp"

#include "ops/edge_softmax/kernel.hpp"
#include "ops/edge_softmax/trial.hpp"
#include "ops/plan/check.hpp"
#include "ops/plan/expected.hpp"
#include "ops/plan/plan_record.hpp"
#include "ops/plan/planning_scope.hpp"
#include "tessera/detail/ops/plan_only.hpp"
#include "tessera/ops/expected.hpp"

namespace tessera::ops {

namespace {

/// One kernel has both passes.
using EdgeSoftmaxRecord = KernelRecord<EdgeSoftmaxOptions, PreparedEdgeSoftmax>;

Expected edge_numbers(const EdgeSoftmaxPlan& plan) {
  return {storage_of(plan.options().precision), plan.graph().num_edges(), plan.options().heads};
}

void check_options(const EdgeSoftmaxOptions& options) {
  check_plan_options(options, options.precision);
  if (options.heads < 1) refuse(fmt::format("{} heads", options.heads), "heads");
}

}  // namespace

EdgeSoftmaxPlan plan_edge_softmax(const Graph& graph, const EdgeSoftmaxOptions& options) {
  check_options(options);
  auto record = std::make_shared<EdgeSoftmaxRecord>();
  record->graph = graph;
  record->options = options;
  const PlanningScope planning(graph, options, false);
  record->forward = record->take(make_choice<EdgeSoftmaxTrial>(
      edge_softmax_kernels(), EdgeSoftmaxProblem{graph, options}, options));
  record->has_backward = options.backward;
  if (options.backward) record->decision.add_child("backward", by_same_kernel(*record));
  const WorkspaceNeed need = record->forward->workspace();
  return PlanAccess::finish(std::move(record), need);
}

Explanation expected(const Graph& graph, const EdgeSoftmaxOptions& options,
                     const DeviceProfile& gpu) {
  const ExpectedOn there(gpu);
  const auto on_gpu = on_a_gpu(options);
  check_options(on_gpu);
  const PlanningScope planning(graph, on_gpu, false);
  return there.choice(edge_softmax_kernels(), EdgeSoftmaxProblem{graph, on_gpu}, on_gpu);
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
  record.forward->run(scores, weights, stream, use.view());
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
  record.forward->run_backward(weights, grad_weights, grad_scores, stream, use.view());
}

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/ops/edge_difference.hpp"

#include "ops/edge_difference/kernel.hpp"
#include "ops/edge_difference/trial.hpp"
#include "ops/plan/check.hpp"
#include "ops/plan/plan_record.hpp"
#include "ops/plan/planning_scope.hpp"
#include "tessera/detail/ops/plan_only.hpp"

namespace tessera::ops {
namespace {

/// One kernel has both passes.
using EdgeDifferenceRecord = KernelRecord<EdgeDifferenceOptions, PreparedEdgeDifference>;

Expected of_vertices(const EdgeDifferencePlan& plan) {
  return {storage_of(plan.options().precision), plan.graph().num_rows(), plan.options().features};
}
Expected of_edges(const EdgeDifferencePlan& plan) {
  return {storage_of(plan.options().precision), plan.graph().num_edges(), plan.options().features};
}

}  // namespace

EdgeDifferencePlan plan_edge_difference(const Graph& graph, const EdgeDifferenceOptions& options) {
  check_plan_options(options, options.precision);
  if (options.features < 0 || !graph.is_square()) {
    refuse(fmt::format("{} features on a graph of {} x {}", options.features, graph.num_rows(),
                       graph.num_cols()),
           "edge_difference", "use a square graph");
  }
  auto record = std::make_shared<EdgeDifferenceRecord>();
  record->graph = graph;
  record->options = options;
  const PlanningScope planning(graph, options, false);
  record->forward = record->take(make_choice<EdgeDifferenceTrial>(
      edge_difference_kernels(), EdgeDifferenceProblem{graph, options}, options));
  record->has_backward = options.backward;
  if (options.backward) record->decision.add_child("backward", by_same_kernel(*record));
  const WorkspaceNeed need = record->forward->workspace();
  return PlanAccess::finish(std::move(record), need);
}

void run(const EdgeDifferencePlan& plan, ConstOperand x, Operand differences, Stream stream,
         Workspace workspace) {
  const Checker check("edge_difference", plan.options().device);
  check.matrix(x, "x", of_vertices(plan));
  check.matrix(differences, "differences", of_edges(plan));
  check.apart(differences, "differences", x, "x");
  if (plans_only()) return;
  const OnDevice current(plan.options().device);
  const auto& record = PlanAccess::record<EdgeDifferenceRecord>(plan);
  const WorkspaceUse use(*record.workspace, workspace, stream);
  record.forward->run(x, differences, stream, use.view());
}

void run_backward(const EdgeDifferencePlan& plan, ConstOperand grad_differences, Operand grad_x,
                  Stream stream, Workspace workspace) {
  require_backward(plan);
  const Checker check("edge_difference backward", plan.options().device);
  check.matrix(grad_differences, "gradient of differences", of_edges(plan));
  check.matrix(grad_x, "gradient of x", of_vertices(plan));
  check.apart(grad_x, "gradient of x", grad_differences, "gradient of differences");
  if (plans_only()) return;
  const OnDevice current(plan.options().device);
  const auto& record = PlanAccess::record<EdgeDifferenceRecord>(plan);
  const WorkspaceUse use(*record.workspace, workspace, stream);
  record.forward->run_backward(grad_differences, grad_x, stream, use.view());
}

}  // namespace tessera::ops

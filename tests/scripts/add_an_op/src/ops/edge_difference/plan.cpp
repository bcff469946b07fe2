// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/ops/edge_difference.hpp"

#include "ops/check.hpp"
#include "ops/check_options.hpp"
#include "ops/edge_difference/kernel.hpp"
#include "ops/edge_difference/trial.hpp"
#include "ops/plan_only.hpp"
#include "ops/plan_record.hpp"
#include "ops/planning_scope.hpp"

namespace tessera::ops {
namespace {

/// What a plan of edge_difference keeps. One kernel has both passes.
struct EdgeDifferenceRecord final : PlanRecord {
  std::int64_t workspace_bytes() const noexcept override { return workspace->bytes(); }

  EdgeDifferenceOptions options;
  std::unique_ptr<const PreparedEdgeDifference> prepared;
  std::optional<PlanWorkspace> workspace;  ///< the last member: see there
};

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
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} features on a graph of {} x {}", options.features, graph.num_rows(),
                            graph.num_cols()),
                "edge_difference", "use a square graph");
  }
  auto record = std::make_shared<EdgeDifferenceRecord>();
  record->graph = graph;
  record->options = options;
  const PlanningScope planning(graph, options, false);
  auto choice = make_choice<EdgeDifferenceTrial>(edge_difference_kernels(),
                                                 EdgeDifferenceProblem{graph, options}, options);
  record->kernel = &choice.kernel->info;
  record->decision = std::move(choice.decision);
  record->prepared = std::move(choice.prepared);
  record->has_backward = options.backward;
  record->workspace.emplace(record->prepared->workspace(), options.place(), options.own_workspace);
  if (options.backward) record->decision.add_child("backward", by_same_kernel(*record));
  return PlanAccess::make(std::shared_ptr<const EdgeDifferenceRecord>(std::move(record)));
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
  record.prepared->run(x, differences, stream, use.view());
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
  record.prepared->run_backward(grad_differences, grad_x, stream, use.view());
}

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/ops/edge_softmax.hpp"

#include "ops/check.hpp"
#include "ops/edge_softmax/kernel.hpp"
#include "ops/edge_softmax/trial.hpp"

namespace tessera::ops {

struct EdgeSoftmaxPlan::State {
  EdgeSoftmaxProblem problem;
  const EdgeSoftmaxKernel* kernel = nullptr;
  Explanation explanation;
  std::unique_ptr<const PreparedEdgeSoftmax> prepared;
  std::optional<PlanWorkspace> workspace;  ///< the last member: see there
};

const Graph& EdgeSoftmaxPlan::graph() const noexcept { return state_->problem.graph; }
const EdgeSoftmaxOptions& EdgeSoftmaxPlan::options() const noexcept {
  return state_->problem.options;
}
const KernelInfo& EdgeSoftmaxPlan::kernel() const noexcept { return state_->kernel->info; }
Explanation EdgeSoftmaxPlan::explain() const { return state_->explanation; }
std::int64_t EdgeSoftmaxPlan::workspace_bytes() const noexcept {
  return state_->workspace->bytes() + state_->prepared->own_bytes();
}

namespace {

Expected edge_numbers(const EdgeSoftmaxPlan& plan) {
  return {storage_of(plan.options().precision), plan.graph().num_edges(), plan.options().heads};
}

}  // namespace

EdgeSoftmaxPlan plan_edge_softmax(const Graph& graph, const EdgeSoftmaxOptions& options) {
  if (options.heads < 1) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} heads", options.heads), "heads");
  }
  auto state = std::make_shared<EdgeSoftmaxPlan::State>();
  state->problem = {graph, options};
  auto choice = make_choice<EdgeSoftmaxTrial>(edge_softmax_kernels(), state->problem, options);
  state->kernel = choice.kernel;
  state->explanation = std::move(choice.explanation);
  state->prepared = std::move(choice.prepared);
  state->workspace.emplace(state->prepared->workspace(), options.place(), options.own_workspace);
  synchronise(options.device, options.stream);
  return EdgeSoftmaxPlan(std::move(state));
}

void run(const EdgeSoftmaxPlan& plan, ConstOperand scores, Operand weights, Stream stream,
         Workspace workspace) {
  const Checker check("edge_softmax", plan.options().device);
  check.matrix(scores, "scores", edge_numbers(plan));
  check.matrix(weights, "weights", edge_numbers(plan));
  check.apart_or_same(weights, "weights", scores, "scores");
  const OnDevice current(plan.options().device);
  const WorkspaceUse use(*plan.state().workspace, workspace, stream);
  plan.state().prepared->run(scores, weights, stream, use.view());
}

void run_backward(const EdgeSoftmaxPlan& plan, ConstOperand weights, ConstOperand grad_weights,
                  Operand grad_scores, Stream stream, Workspace workspace) {
  const Checker check("edge_softmax backward", plan.options().device);
  check.matrix(weights, "weights", edge_numbers(plan));
  check.matrix(grad_weights, "gradient of weights", edge_numbers(plan));
  check.matrix(grad_scores, "gradient of scores", edge_numbers(plan));
  check.apart(grad_scores, "gradient of scores", weights, "weights");
  check.apart_or_same(grad_scores, "gradient of scores", grad_weights, "gradient of weights");
  const OnDevice current(plan.options().device);
  const WorkspaceUse use(*plan.state().workspace, workspace, stream);
  plan.state().prepared->run_backward(weights, grad_weights, grad_scores, stream, use.view());
}

}  // namespace tessera::ops

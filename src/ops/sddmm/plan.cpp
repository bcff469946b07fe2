// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/sddmm.hpp"

#include <optional>

#include <fmt/format.h>

#include "ops/check.hpp"
#include "ops/sddmm/kernel.hpp"
#include "ops/sddmm/trial.hpp"
#include "ops/spmm/kernel.hpp"
#include "ops/spmm/trial.hpp"
#include "tessera/core/error.hpp"

namespace tessera::ops {

const char* to_string(EdgeFunction function) noexcept {
  return function == EdgeFunction::dot ? "dot" : "add";
}

struct SddmmPlan::State {
  SddmmProblem problem;
  SddmmOptions options;
  const SddmmKernel* kernel = nullptr;
  Explanation explanation;
  std::unique_ptr<const PreparedSddmm> prepared;

  // Gradients are sums over rows and columns; null where there is no backward pass.
  std::unique_ptr<const PreparedSpmm> grad_u;
  std::unique_ptr<const PreparedSpmm> grad_v;
  std::optional<PlanWorkspace> workspace;  ///< the last member: see there
};

namespace {

std::unique_ptr<const PreparedSpmm> prepare_gradient(const SddmmProblem& problem,
                                                     const PlanOptions& options, SpmmPass pass) {
  SpmmProblem sums;
  sums.graph = problem.graph.with_values({}).with_scales({}, {});
  sums.precision = problem.precision;
  sums.features = problem.features;
  sums.pass = pass;
  sums.heads = problem.function == EdgeFunction::dot ? problem.heads : 1;
  sums.edge_values_expected = problem.function == EdgeFunction::dot;
  sums.edge_features = problem.function == EdgeFunction::add;
  sums.set_place(problem.place());
  PlanOptions any = options;
  any.kernel.clear();
  any.stored_only = false;
  return make_choice<SpmmTrial>(spmm_kernels(), sums, any).prepared;
}

}  // namespace

const Graph& SddmmPlan::graph() const noexcept { return state_->problem.graph; }
const SddmmOptions& SddmmPlan::options() const noexcept { return state_->options; }
const KernelInfo& SddmmPlan::kernel() const noexcept { return state_->kernel->info; }
Explanation SddmmPlan::explain() const { return state_->explanation; }
std::int64_t SddmmPlan::workspace_bytes() const noexcept {
  const auto own = [](const auto& gradient) { return gradient ? gradient->own_bytes() : 0; };
  return state_->workspace->bytes() + own(state_->grad_u) + own(state_->grad_v);
}

SddmmPlan plan_sddmm(const Graph& graph, const SddmmOptions& options) {
  check_features(options.features);
  if (options.heads < 1 || options.features % options.heads != 0) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} features cannot be shared by {} heads", options.features, options.heads),
        "heads", "choose a number of heads that divides the features");
  }
  if (options.function == EdgeFunction::add && options.features != options.heads) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("add needs one feature per head, not {} features for {} heads",
                            options.features, options.heads),
                "heads", "set heads to the number of features");
  }
  auto state = std::make_shared<SddmmPlan::State>();
  state->problem = {graph, options.function, options.precision, options.features, options.heads};
  state->problem.set_place(options.place());
  state->options = options;
  auto choice = make_choice<SddmmTrial>(sddmm_kernels(), state->problem, options);
  state->kernel = choice.kernel;
  state->explanation = std::move(choice.explanation);
  state->prepared = std::move(choice.prepared);
  WorkspaceNeed need;
  if (options.backward) {
    state->grad_u = prepare_gradient(state->problem, options, SpmmPass::forward);
    state->grad_v = prepare_gradient(state->problem, options, SpmmPass::backward);
    need.cover(state->grad_u->workspace());
    need.cover(state->grad_v->workspace());
  }
  state->workspace.emplace(need, options.place(), options.own_workspace);
  synchronise(options.device, options.stream);
  return SddmmPlan(std::move(state));
}

void run(const SddmmPlan& plan, ConstOperand u, ConstOperand v, Operand edges, Stream stream,
         Workspace workspace) {
  const Graph& graph = plan.graph();
  const SddmmOptions& options = plan.options();
  const ElementType type = storage_of(options.precision);
  const Checker check("sddmm", options.device);
  check.matrix(u, "u", {type, graph.num_rows(), options.features});
  check.matrix(v, "v", {type, graph.num_cols(), options.features});
  check.matrix(edges, "edges", {type, graph.num_edges(), options.heads});
  check.apart(edges, "edges", u, "u");
  check.apart(edges, "edges", v, "v");
  const OnDevice current(options.device);
  const WorkspaceUse use(*plan.state().workspace, workspace, stream);
  plan.state().prepared->run(u, v, edges, stream);
}

void run_backward(const SddmmPlan& plan, ConstOperand u, ConstOperand v, ConstOperand grad_edges,
                  Operand grad_u, Operand grad_v, Stream stream, Workspace workspace) {
  const Graph& graph = plan.graph();
  const SddmmOptions& options = plan.options();
  const bool is_dot = options.function == EdgeFunction::dot;
  const ElementType type = storage_of(options.precision);
  const Expected of_targets{type, graph.num_rows(), options.features};
  const Expected of_sources{type, graph.num_cols(), options.features};
  const Checker check("sddmm backward", options.device);
  check.matrix(grad_edges, "grad_edges", {type, graph.num_edges(), options.heads});
  const auto check_gradient = [&](const char* name, const Operand& gradient,
                                  const Expected& expected, const char* input_name,
                                  const ConstOperand& input, const Expected& expected_input) {
    if (gradient.absent()) return;
    check.matrix(gradient, name, expected);
    check.apart(gradient, name, grad_edges, "grad_edges");
    if (!is_dot) return;
    check.matrix(input, input_name, expected_input);
    check.apart(gradient, name, input, input_name);
  };
  check_gradient("grad_u", grad_u, of_targets, "v", v, of_sources);
  check_gradient("grad_v", grad_v, of_sources, "u", u, of_targets);
  if (!options.backward) {
    throw Error(ErrorCode::invalid_argument, "the plan has no backward pass", "sddmm",
                "plan with backward");
  }
  const OnDevice current(options.device);
  const WorkspaceUse use(*plan.state().workspace, workspace, stream);
  const auto run_gradient = [&](const PreparedSpmm& sums, const ConstOperand& input,
                                const Operand& gradient) {
    if (gradient.absent()) return;
    SpmmCall call;
    call.x = is_dot ? input : grad_edges;
    if (is_dot) call.edge_values = grad_edges;
    call.y = gradient;
    sums.run(call, stream, use.view());
  };
  run_gradient(*plan.state().grad_u, v, grad_u);
  run_gradient(*plan.state().grad_v, u, grad_v);
}

}  // namespace tessera::ops

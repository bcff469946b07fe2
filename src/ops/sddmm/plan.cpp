// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/sddmm.hpp"

#include <optional>

#include <fmt/format.h>

#include "ops/plan/check.hpp"
#include "ops/plan/expected.hpp"
#include "ops/plan/plan_record.hpp"
#include "ops/plan/planning_scope.hpp"
#include "ops/sddmm/kernel.hpp"
#include "ops/sddmm/trial.hpp"
#include "ops/spmm/kernel.hpp"
#include "ops/spmm/trial.hpp"
#include "tessera/core/error.hpp"
#include "tessera/detail/ops/plan_only.hpp"
#include "tessera/ops/expected.hpp"

namespace tessera::ops {

const char* to_string(EdgeFunction function) noexcept {
  return function == EdgeFunction::dot ? "dot" : "add";
}

namespace {

/// What a plan of sddmm keeps.
struct SddmmRecord final : PlanRecord {
  std::int64_t workspace_bytes() const noexcept override {
    const std::int64_t own = has_backward ? grad_u->own_bytes() + grad_v->own_bytes() : 0;
    return workspace->bytes() + own;
  }

  SddmmOptions options;
  std::unique_ptr<const PreparedSddmm> forward;
  std::unique_ptr<const PreparedSpmm> grad_u;  ///< sums over rows; null without a backward pass
  std::unique_ptr<const PreparedSpmm> grad_v;  ///< sums over columns
  std::optional<PlanWorkspace> workspace;      ///< the last member: see there
};

/// Gradients are sums over the edges of a vertex, weighted with the gradients of dot products.
SpmmProblem gradient_problem(const SddmmRecord& record, SpmmPass pass) {
  const SddmmOptions& options = record.options;
  const bool weighted = options.function == EdgeFunction::dot;
  SpmmProblem sums;
  sums.graph = record.graph.with_values({}).with_scales({}, {});
  sums.precision = options.precision;
  sums.features = options.features;
  sums.pass = pass;
  sums.heads = weighted ? options.heads : 1;
  sums.edge_values_at_run = weighted;
  sums.edge_values_expected = weighted;
  sums.own_weights_at_run = !weighted;
  sums.edge_features = !weighted;
  sums.set_place(options.place());
  return sums;
}

void plan_gradients(SddmmRecord& record) {
  PlanOptions any = record.options;
  any.kernel.clear();
  auto of_rows =
      make_choice<SpmmTrial>(spmm_kernels(), gradient_problem(record, SpmmPass::forward), any);
  auto of_columns =
      make_choice<SpmmTrial>(spmm_kernels(), gradient_problem(record, SpmmPass::backward), any);
  Decision backward({fmt::format("gradient of u by {}, of v by {}", of_rows.kernel->info.name,
                                 of_columns.kernel->info.name),
                     {}});
  backward.add_child("gradient of u", std::move(of_rows.decision));
  backward.add_child("gradient of v", std::move(of_columns.decision));
  record.decision.add_child("backward", std::move(backward));
  record.has_backward = true;
  record.grad_u = std::move(of_rows.prepared);
  record.grad_v = std::move(of_columns.prepared);
}

SddmmProblem checked_problem(const Graph& graph, const SddmmOptions& options) {
  check_plan_options(options, options.precision);
  check_enum("function", options.function, EdgeFunction::add);
  check_features(options.features);
  if (options.heads < 1 || options.features % options.heads != 0) {
    refuse(fmt::format("{} features cannot be shared by {} heads", options.features, options.heads),
           "heads", "choose a number of heads that divides the features");
  }
  if (options.function == EdgeFunction::add && options.features != options.heads) {
    refuse(fmt::format("add needs one feature per head, not {} features for {} heads",
                       options.features, options.heads),
           "heads", "set heads to the number of features");
  }
  SddmmProblem problem{graph, options.function, options.precision, options.features, options.heads};
  problem.set_place(options.place());
  return problem;
}

}  // namespace

SddmmPlan plan_sddmm(const Graph& graph, const SddmmOptions& options) {
  const SddmmProblem problem = checked_problem(graph, options);
  auto record = std::make_shared<SddmmRecord>();
  record->graph = graph;
  record->options = options;
  const PlanningScope planning(graph, options, options.backward, true);
  auto choice = make_choice<SddmmTrial>(sddmm_kernels(), problem, options);
  record->forward = record->take(choice);
  WorkspaceNeed need;
  if (options.backward) {
    plan_gradients(*record);
    need.cover(record->grad_u->workspace());
    need.cover(record->grad_v->workspace());
  }
  return PlanAccess::finish(std::move(record), need);
}

Explanation expected(const Graph& graph, const SddmmOptions& options, const DeviceProfile& gpu) {
  const ExpectedOn there(gpu);
  const auto on_gpu = on_a_gpu(options);
  const SddmmProblem problem = checked_problem(graph, on_gpu);
  const PlanningScope planning(graph, on_gpu, false, true);
  return there.choice(sddmm_kernels(), problem, on_gpu);
}

void run(const SddmmPlan& plan, ConstOperand u, ConstOperand v, Operand edges, Stream stream,
         Workspace workspace) {
  const auto& record = PlanAccess::record<SddmmRecord>(plan);
  const Graph& graph = record.graph;
  const SddmmOptions& options = record.options;
  const ElementType type = storage_of(options.precision);
  const Checker check("sddmm", options.device);
  check.matrix(u, "u", {type, graph.num_rows(), options.features});
  check.matrix(v, "v", {type, graph.num_cols(), options.features});
  check.matrix(edges, "edges", {type, graph.num_edges(), options.heads});
  check.apart(edges, "edges", {{u, "u"}, {v, "v"}});
  if (plans_only()) return;
  const OnDevice current(options.device);
  const WorkspaceUse use(*record.workspace, workspace, stream);
  record.forward->run(u, v, edges, stream);
}

void run_backward(const SddmmPlan& plan, ConstOperand u, ConstOperand v, ConstOperand grad_edges,
                  Operand grad_u, Operand grad_v, Stream stream, Workspace workspace) {
  require_backward(plan);
  const auto& record = PlanAccess::record<SddmmRecord>(plan);
  const Graph& graph = record.graph;
  const SddmmOptions& options = record.options;
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
  if (plans_only()) return;
  const OnDevice current(options.device);
  const WorkspaceUse use(*record.workspace, workspace, stream);
  const auto run_gradient = [&](const PreparedSpmm& sums, const ConstOperand& input,
                                const Operand& gradient) {
    if (gradient.absent()) return;
    SpmmCall call;
    call.x = is_dot ? input : grad_edges;
    if (is_dot) call.edge_values = grad_edges;
    call.y = gradient;
    sums.run(call, stream, use.view());
  };
  run_gradient(*record.grad_u, v, grad_u);
  run_gradient(*record.grad_v, u, grad_v);
}

}  // namespace tessera::ops

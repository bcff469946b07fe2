// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/on_device.hpp"
#include "ops/aggregate_update/record.hpp"
#include "ops/aggregate_update/trial.hpp"
#include "ops/check_options.hpp"
#include "ops/planning_scope.hpp"
#include "ops/spmm/weights_fit.hpp"
#include "tessera/core/error.hpp"

namespace tessera::ops {
namespace {

[[noreturn]] void refuse(std::string what, const char* where, const char* how) {
  throw Error(ErrorCode::invalid_argument, std::move(what), where, how);
}

void check_options(const Graph& graph, const AggregateUpdateOptions& options) {
  check_plan_options(options, options.precision);
  check_enum("reduction", options.reduction, Reduction::min);
  check_enum("activation", options.activation, Activation::elu);
  if (options.reduction != Reduction::sum && options.reduction != Reduction::mean) {
    refuse(fmt::format("a {} does not commute with a product", to_string(options.reduction)),
           "reduction", "use sum or mean, or spmm and gemm");
  }
  if (options.in < 0 || options.out < 0) {
    refuse(fmt::format("{} to {} features", options.in, options.out), "features",
           "use widths of 0 or more");
  }
  const bool square = graph.num_rows() == graph.num_cols();
  if (options.self && !square) {
    refuse("targets of a rectangular graph have no features of their own", "self",
           "plan without self");
  }
  if (options.root && !square) {
    refuse("targets of a rectangular graph have no features of their own", "root",
           "plan without root");
  }
  if (options.self_scale && !options.self) {
    refuse("a scale of no term", "self_scale", "plan with self, or without its scale");
  }
  if (!(options.dropout >= 0 && options.dropout <= 1)) {
    refuse(fmt::format("dropout is {}", options.dropout), "dropout", "use a share from 0 to 1");
  }
  if (!std::isfinite(options.slope) || !std::isfinite(options.alpha)) {
    refuse(fmt::format("slope is {}, alpha is {}", options.slope, options.alpha), "activation",
           "use finite numbers");
  }
}

/// Chooses and prepares the kernel of one pass; says what its stages are.
std::pair<const KernelInfo*, Decision> plan_pass(
    const AggregateUpdateProblem& problem, const PlanOptions& options,
    std::unique_ptr<const PreparedAggregateUpdate>& prepared) {
  auto choice = make_choice<AggregateUpdateTrial>(aggregate_update_kernels(), problem, options);
  prepared = std::move(choice.prepared);
  for (auto& [name, decision] : prepared->stages()) {
    choice.decision.add_child(name, std::move(decision));
  }
  return {&choice.kernel->info, std::move(choice.decision)};
}

}  // namespace

AggregateUpdatePlan plan_aggregate_update(const Graph& graph,
                                          const AggregateUpdateOptions& options) {
  check_options(graph, options);
  auto record = std::make_shared<AggregateUpdateRecord>();
  record->graph = graph;
  record->options = options;
  const bool is_16_bit = bytes_per_element(options.precision) == 2;
  const PlanningScope planning(graph, options, options.backward, is_16_bit);
  AggregateUpdateProblem problem{graph, options, SpmmPass::forward};
  check_weights_fit(sums_problem(problem, options.in));
  std::tie(record->kernel, record->decision) = plan_pass(problem, options, record->forward);
  WorkspaceNeed need = record->forward->workspace();
  if (options.backward) {
    problem.pass = SpmmPass::backward;
    PlanOptions how = options;
    how.kernel = options.backward_kernel;
    auto [kernel, decision] = plan_pass(problem, how, record->grad_x);
    record->decision.add_child("backward", std::move(decision));
    record->has_backward = true;
    need.cover(record->grad_x->workspace());
  }
  record->workspace.emplace(need, options.place(), options.own_workspace);
  return PlanAccess::make(std::shared_ptr<const AggregateUpdateRecord>(std::move(record)));
}

bool fusing_pays(const Graph& graph, const AggregateUpdateOptions& options) {
  // So few rows are done before the memory that they need matters.
  constexpr VertexId few_rows = 16384;
  check_options(graph, options);
  if (options.device.kind == DeviceKind::cpu || graph.num_rows() < few_rows) return false;
  const bool is_16_bit = bytes_per_element(options.precision) == 2;
  const PlanningScope planning(graph, options, options.backward, is_16_bit);
  const OnDevice current(options.device);
  const auto is_fused = [&](SpmmPass pass) {
    const AggregateUpdateProblem problem{graph, options, pass};
    const auto choice = choose_kernel(aggregate_update_kernels(), problem, options);
    return !choice.kernel->info.name.ends_with("/staged");
  };
  return is_fused(SpmmPass::forward) || (options.backward && is_fused(SpmmPass::backward));
}

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/on_device.hpp"
#include "ops/aggregate_update/trial.hpp"
#include "ops/plan/check.hpp"
#include "ops/plan/expected.hpp"
#include "ops/plan/planning_scope.hpp"
#include "tessera/core/error.hpp"
#include "tessera/ops/expected.hpp"

namespace tessera::ops {
namespace {

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
  if ((options.self || options.root) && graph.num_rows() != graph.num_cols()) {
    const char* const part = options.self ? "self" : "root";
    refuse("targets of a rectangular graph have no features of their own", part,
           fmt::format("plan without {}", part));
  }
  if (options.self_scale && !options.self) {
    refuse("a scale of no term", "self_scale", "plan with self, or without its scale");
  }
  check_activation(options, "activation");
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
    auto [kernel, decision] = plan_pass(problem, how, record->backward);
    record->decision.add_child("backward", std::move(decision));
    record->has_backward = true;
    need.cover(record->backward->workspace());
  }
  return PlanAccess::finish(std::move(record), need);
}

Explanation expected(const Graph& graph, const AggregateUpdateOptions& options,
                     const DeviceProfile& gpu) {
  const ExpectedOn there(gpu);
  auto on_gpu = on_a_gpu(options);
  check_options(graph, on_gpu);
  const PlanningScope planning(graph, on_gpu, on_gpu.backward, true);
  const auto pass = [&](SpmmPass which) {
    return there.choice(aggregate_update_kernels(), AggregateUpdateProblem{graph, on_gpu, which},
                        on_gpu);
  };
  Explanation explanation = pass(SpmmPass::forward);
  if (!options.backward) return explanation;
  std::swap(on_gpu.kernel, on_gpu.backward_kernel);
  add_child(explanation, "backward", pass(SpmmPass::backward));
  return explanation;
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

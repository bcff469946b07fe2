// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <fmt/format.h>

#include "core/on_device.hpp"
#include "core/parts_clock.hpp"
#include "ops/plan/check.hpp"
#include "ops/spmm/edge_terms.hpp"
#include "ops/spmm/forms.hpp"
#include "ops/spmm/record.hpp"
#include "tessera/core/error.hpp"
#include "tessera/detail/ops/plan_only.hpp"
#include "tessera/ops/spmm.hpp"

/// Plans on edges in no order: gather-apply-scatter on the edges as they are, or
/// gather-apply-reduce on the rows that are made of them.
namespace tessera::ops {
namespace {

SpmmProblem problem_of(const Coo& edges, const SpmmOptions& options, SpmmPass pass) {
  SpmmProblem problem = spmm_problem({}, options, pass);
  problem.edges = edges;
  return problem;
}

void check_edges(const Coo& edges, const SpmmOptions& options) {
  check_options(options);
  check_epilogue(options);
  if (options.heads != 1) {
    throw Error(ErrorCode::unsupported, "several heads on edges in no order", "heads",
                "plan on edges.graph()");
  }
  if (edges.place().device == options.device) return;
  refuse(fmt::format("the edges are on {}, the plan is for {}", to_string(edges.place().device),
                     to_string(options.device)),
         "edges", "borrow them where the plan runs");
}

std::shared_ptr<SpmmRecord> scattering(const Coo& edges, const SpmmOptions& options,
                                       FormChoice choice) {
  const TimedPart part("preparing");
  const SpmmKernel& kernel = scatter_kernel(options.device.kind);
  auto record = std::make_shared<SpmmRecord>();
  record->options = options;
  record->kernel = &kernel.info;
  record->decision = Decision(std::move(choice.why));
  record->forward = kernel.prepare(problem_of(edges, options, SpmmPass::forward));
  if (!options.backward) return record;
  record->has_backward = true;
  record->grad_x = kernel.prepare(problem_of(edges, options, SpmmPass::backward));
  record->decision.add_child("backward", by_same_kernel(*record));
  return record;
}

/// `edges` have rows by now.
std::shared_ptr<SpmmRecord> reducing(const Coo& edges, const SpmmOptions& options,
                                     FormChoice choice) {
  SpmmOptions by_rows = options;
  by_rows.edge_value_gradient = false;
  auto record = planned_on(edges.graph(), by_rows);
  record->options.edge_value_gradient = options.edge_value_gradient;
  record->decision.add_child("edges in no order", Decision(std::move(choice.why)));
  if (!options.edge_values_at_run) return record;
  SpmmProblem problem = problem_of(edges, options, SpmmPass::forward);
  problem.graph = edges.graph();
  record->forward = in_edge_order(std::move(record->forward), problem);
  if (options.backward) record->grad_x = in_edge_order(std::move(record->grad_x), problem);
  return record;
}

}  // namespace

SpmmPlan plan_spmm(const Coo& edges, const SpmmOptions& options) {
  require_available(options.device);
  refuse_while_recording();
  check_edges(edges, options);
  const PlanOnly work_is_done(false);
  const OnDevice current(options.device);
  const SpmmProblem problem = problem_of(edges, options, SpmmPass::forward);
  FormChoice choice = choose_form(problem, options);
  auto record = choice.scatters ? scattering(edges, options, std::move(choice))
                                : reducing(edges, options, std::move(choice));
  record->num_rows = edges.num_rows();
  record->num_cols = edges.num_cols();
  record->num_edges = edges.num_edges();
  const bool adds = options.reduction == Reduction::sum || options.reduction == Reduction::mean;
  if (options.backward && options.edge_value_gradient && adds) {
    record->edge_value_gradients = edge_dots(problem);
  }
  return finished(std::move(record));
}

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "ops/plan/check.hpp"
#include "ops/plan/plan_record.hpp"
#include "ops/plan/workspace.hpp"
#include "ops/spmm/edge_terms.hpp"
#include "ops/spmm/kernel.hpp"

namespace tessera::ops {

/// What a plan of spmm keeps.
struct SpmmRecord final : PlanRecord {
  /// Of the matrix that was planned for. One of edges in no order has fewer than the graph that is
  /// made of it, where a rule adds loops.
  VertexId num_rows = 0;
  VertexId num_cols = 0;
  EdgeOffset num_edges = 0;

  std::int64_t workspace_bytes() const noexcept override {
    const std::int64_t of_backward = grad_x == nullptr ? 0 : grad_x->own_bytes();
    return workspace->bytes() + forward->own_bytes() + of_backward;
  }

  SpmmOptions options;
  std::unique_ptr<const PreparedSpmm> forward;
  std::unique_ptr<const PreparedSpmm> grad_x;  ///< null without a backward pass
  EdgeValueGradients edge_value_gradients;     ///< empty where the plan has none
  std::optional<PlanWorkspace> workspace;      ///< the last member: see there
};

/// What one pass of a plan computes.
SpmmProblem spmm_problem(const Graph& graph, const SpmmOptions& options, SpmmPass pass);

/// A plan on a graph, as `plan_spmm` makes it, but for its workspace.
std::shared_ptr<SpmmRecord> planned_on(const Graph& graph, const SpmmOptions& options);

/// Gives a record its workspace, and makes a plan of it.
SpmmPlan finished(std::shared_ptr<SpmmRecord> record);

/// What options must be on any matrix.
void check_options(const SpmmOptions& options);

/// Plans the backward pass, and says so in the explanation.
void plan_gradients(SpmmRecord& record);

/// Throws unless the residual and its scale are there if and only if the plan has them.
void check_residual(const Checker& check, const SpmmEpilogue& epilogue,
                    const ConstOperand& residual, const ConstOperand& scale,
                    const Expected& expected, const Operand& y);

/// Throws where a run brings edge values that its plan did not expect.
void check_values_were_planned(const SpmmOptions& options);

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ops/dense/activation_formula.hpp"
#include "ops/plan/cost_formula.hpp"
#include "ops/plan/plan_record.hpp"
#include "ops/plan/registry.hpp"
#include "ops/plan/workspace.hpp"
#include "ops/spmm/kernel.hpp"
#include "tessera/ops/aggregate_update.hpp"

namespace tessera::ops {

/// The op itself, or its gradient with respect to X. Both gather rows and multiply the sums by a
/// small matrix: the backward pass gathers rows of dY over the columns of A, multiplies them by W,
/// and has no epilogue.
struct AggregateUpdateProblem {
  Graph graph;
  AggregateUpdateOptions options;
  SpmmPass pass = SpmmPass::forward;

  bool is_forward() const noexcept { return pass == SpmmPass::forward; }
  /// Width of the rows that are gathered, and of those that are written.
  std::int64_t gathered() const noexcept { return is_forward() ? options.in : options.out; }
  std::int64_t written() const noexcept { return is_forward() ? options.out : options.in; }
  VertexId num_targets() const noexcept {
    return is_forward() ? graph.num_rows() : graph.num_cols();
  }
  VertexId num_sources() const noexcept {
    return is_forward() ? graph.num_cols() : graph.num_rows();
  }
  bool keeps_sums() const noexcept { return is_forward() && options.keep_aggregated; }
};

inline PassSizes sizes_of(const AggregateUpdateProblem& problem) {
  return {problem.graph, tile_side(problem.pass), problem.gathered(), problem.options.precision};
}

/// The sums alone, of rows of this width.
SpmmProblem sums_problem(const AggregateUpdateProblem& problem, std::int64_t width);

/// The operands of a run, already checked. In a backward pass `x` is dY, `y` is dX. Weights are
/// written x gathered forward, gathered x written backward.
struct AggregateUpdateCall {
  ConstOperand x, weight;
  ConstOperand root_weight = {};
  ConstOperand self_scale = {};
  ConstOperand bias = {};
  ActivationFormula formula = {};
  Operand y;
  Operand aggregated = {};  ///< there if and only if the problem keeps sums
  const DenseWorkspace* products = nullptr;
};

/// What a plan keeps of a kernel.
class PreparedAggregateUpdate {
 public:
  virtual ~PreparedAggregateUpdate() = default;
  virtual void run(const AggregateUpdateCall& call, Stream stream,
                   const WorkspaceView& workspace) const = 0;
  const WorkspaceNeed& workspace() const noexcept { return workspace_; }
  /// As of spmm's kernels.
  virtual std::int64_t own_bytes() const noexcept { return 0; }
  /// How the kernels of other ops that it runs, if any, were chosen.
  virtual std::vector<std::pair<const char*, Decision>> stages() const { return {}; }

 protected:
  WorkspaceNeed workspace_;
};

/// What a plan keeps: a kernel for each pass.
using AggregateUpdateRecord = KernelRecord<AggregateUpdateOptions, PreparedAggregateUpdate>;

using AggregateUpdateKernel = Kernel<AggregateUpdateProblem, PreparedAggregateUpdate>;

/// Every kernel of this build.
std::span<const AggregateUpdateKernel> aggregate_update_kernels();

/// Sums by the fastest kernel of spmm, then a product of dense matrices, on any device, for runs
/// that are few: with nothing of its own that takes memory.
std::unique_ptr<const PreparedAggregateUpdate> prepare_occasional_update(
    const AggregateUpdateProblem& problem);

}  // namespace tessera::ops

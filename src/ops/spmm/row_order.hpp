// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>

#include "ops/spmm/kernel.hpp"

/// Rows in an order of the plan's own, in which windows of neighbours share columns. Columns keep
/// their numbers and results go where they belong, so that nothing moves in a run.
namespace tessera::ops {

struct RowOrder {
  /// The pattern that the problem adds up by rows (A, or A^T in the backward pass), its rows in
  /// that order.
  Graph graph;
  SharedArray<VertexId> rows;  ///< row i of `graph` is row rows[i] of the problem
  std::string method;          ///< as in reorder::Layout
  double seconds = 0;          ///< that the order took to find
};

/// Whether a problem's rows may be put into another order: a pattern whose rows and columns are the
/// same vertices. Empty if so, else why not.
std::string why_not_ordered(const SpmmProblem& problem);

/// Found at the first call, for both passes, then kept with the graph.
std::shared_ptr<const RowOrder> row_order(const SpmmProblem& problem);

/// The problem as one of rows that stand in that order, for costs: they look at neighbours.
SpmmProblem in_row_order(const SpmmProblem& problem);

/// Threads that predictions count on for work of the CPU before the first run: the kernel that is
/// chosen must not depend on how many there are.
inline constexpr double nominal_threads = 16;

/// What finding it is expected to take, from the size of the graph.
double predicted_order_seconds(const Graph& graph);

/// Whether a plan should look for an order: where its kernel is asked for by name, or where one of
/// `kernels` could use it and the planned epochs could make up for the time that it takes. No order
/// saves more than `most_saved_share` of what a run takes by rows: shuffled communities of 1,024
/// vertices on sparse tensor cores save 84 % (docs/results/nm_cuda.md).
inline constexpr double most_saved_share = 0.85;
bool may_pay(const SpmmProblem& problem, const PlanOptions& options,
             std::span<const SpmmKernel> kernels);

/// The same for a plan that a store may have: there the stored kernel decides, however many epochs
/// are planned now. Throws as `recall` does.
bool should_reorder(const SpmmProblem& problem, const PlanOptions& options);

/// What an explanation says of the order, where a kernel that needs one was a candidate: when it
/// pays.
std::string note_on_order(const SpmmProblem& problem, const Explanation& explanation,
                          const PlanOptions& options);

}  // namespace tessera::ops

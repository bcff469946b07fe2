// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/device.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/ops/operand.hpp"
#include "tessera/ops/plan.hpp"

/// edge_difference: what the features change by along every edge.
///
///     D[e] = X[target of e] - X[source of e]
namespace tessera::ops {

struct EdgeDifferenceOptions : PlanOptions {
  Precision precision = Precision::fp32;
  std::int64_t features = 0;

  friend bool operator==(const EdgeDifferenceOptions&, const EdgeDifferenceOptions&) = default;
};

using EdgeDifferencePlan = Plan<EdgeDifferenceOptions>;

/// The graph is square.
EdgeDifferencePlan plan_edge_difference(const Graph& graph, const EdgeDifferenceOptions& options);

/// `x` has a row per vertex, `differences` one per edge in CSR order.
void run(const EdgeDifferencePlan& plan, ConstOperand x, Operand differences, Stream stream = {},
         Workspace workspace = {});

/// dX[v] = the sum of dD over the edges that end in v, less those that begin in v. The plan must
/// have been made with `backward`.
void run_backward(const EdgeDifferencePlan& plan, ConstOperand grad_differences, Operand grad_x,
                  Stream stream = {}, Workspace workspace = {});

}  // namespace tessera::ops

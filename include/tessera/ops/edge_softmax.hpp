// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/device.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/ops/operand.hpp"
#include "tessera/ops/plan.hpp"

/// edge_softmax: the scores of a target's edges become weights that sum to 1, for each head.
///
///     P[e][h] = exp(S[e][h] - max) / sum over the edges of the same target
namespace tessera::ops {

struct EdgeSoftmaxOptions : PlanOptions {
  Precision precision = Precision::fp32;
  std::int64_t heads = 1;

  friend bool operator==(const EdgeSoftmaxOptions&, const EdgeSoftmaxOptions&) = default;
};

using EdgeSoftmaxPlan = Plan<EdgeSoftmaxOptions>;

EdgeSoftmaxPlan plan_edge_softmax(const Graph& graph, const EdgeSoftmaxOptions& options);

/// Both num_edges x heads in CSR order; may be the same memory.
void run(const EdgeSoftmaxPlan& plan, ConstOperand scores, Operand weights, Stream stream = {},
         Workspace workspace = {});

/// dS = P * (dP - sum over the row of P dP); `grad_scores` may be the memory of `grad_weights`. The
/// plan must have been made with `backward`.
void run_backward(const EdgeSoftmaxPlan& plan, ConstOperand weights, ConstOperand grad_weights,
                  Operand grad_scores, Stream stream = {}, Workspace workspace = {});

}  // namespace tessera::ops

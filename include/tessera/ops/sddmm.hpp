// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/device.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/ops/operand.hpp"
#include "tessera/ops/plan.hpp"

/// sddmm: every edge computes a number (per head) from the features of its two ends.
///
///     E[e][h] = U[i][h*w .. h*w+w) . V[j][h*w .. h*w+w)        dot    (w = features / heads)
///     E[e][h] = U[i][h] + V[j][h]                              add    (features == heads)
///
/// for edge e = (target i, source j) in CSR order. The graph's values and scales play no part.
namespace tessera::ops {

enum class EdgeFunction { dot, add };

const char* to_string(EdgeFunction function) noexcept;

struct SddmmOptions : PlanOptions {
  EdgeFunction function = EdgeFunction::dot;
  Precision precision = Precision::fp32;
  std::int64_t features = 0;  ///< width of U and V
  std::int64_t heads = 1;     ///< divides `features`

  friend bool operator==(const SddmmOptions&, const SddmmOptions&) = default;
};

using SddmmPlan = Plan<SddmmOptions>;

SddmmPlan plan_sddmm(const Graph& graph, const SddmmOptions& options);

/// u: num_rows x features, v: num_cols x features, edges: num_edges x heads.
void run(const SddmmPlan& plan, ConstOperand u, ConstOperand v, Operand edges, Stream stream = {},
         Workspace workspace = {});

/// Gradients: dU[i] = sum over j of dE[e] V[j], dV[j] = sum over i of dE[e] U[i]; either may be
/// absent. The plan must have been made with `backward`.
void run_backward(const SddmmPlan& plan, ConstOperand u, ConstOperand v, ConstOperand grad_edges,
                  Operand grad_u, Operand grad_v, Stream stream = {}, Workspace workspace = {});

}  // namespace tessera::ops

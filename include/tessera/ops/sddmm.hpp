// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "tessera/core/device.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/ops/kernels.hpp"
#include "tessera/ops/operand.hpp"

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
  /// Whether `run_backward` will be called, which takes memory of its own on a GPU.
  bool backward = true;
};

class SddmmPlan {
 public:
  struct State;
  explicit SddmmPlan(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  const Graph& graph() const noexcept;
  const SddmmOptions& options() const noexcept;
  const KernelInfo& kernel() const noexcept;
  std::int64_t workspace_bytes() const noexcept;
  Explanation explain() const;
  const State& state() const noexcept { return *state_; }

 private:
  std::shared_ptr<const State> state_;
};

SddmmPlan plan_sddmm(const Graph& graph, const SddmmOptions& options);

/// u: num_rows x features, v: num_cols x features, edges: num_edges x heads.
void run(const SddmmPlan& plan, ConstOperand u, ConstOperand v, Operand edges, Stream stream = {},
         Workspace workspace = {});

/// Gradients: dU[i] = sum over j of dE[e] V[j], dV[j] = sum over i of dE[e] U[i]; either may be
/// absent.
void run_backward(const SddmmPlan& plan, ConstOperand u, ConstOperand v, ConstOperand grad_edges,
                  Operand grad_u, Operand grad_v, Stream stream = {}, Workspace workspace = {});

}  // namespace tessera::ops

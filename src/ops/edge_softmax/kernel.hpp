// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tessera/ops/edge_softmax.hpp"

#include "ops/registry.hpp"
#include "ops/workspace.hpp"

namespace tessera::ops {

struct EdgeSoftmaxProblem {
  Graph graph;
  EdgeSoftmaxOptions options;
};

/// What a plan keeps of a kernel. Operands have been checked.
class PreparedEdgeSoftmax {
 public:
  virtual ~PreparedEdgeSoftmax() = default;
  virtual void run(ConstOperand scores, Operand weights, Stream stream,
                   const WorkspaceView& workspace) const = 0;
  virtual void run_backward(ConstOperand weights, ConstOperand grad_weights, Operand grad_scores,
                            Stream stream, const WorkspaceView& workspace) const = 0;
  /// As of spmm's kernels.
  virtual WorkspaceNeed workspace() const { return {}; }
  virtual std::int64_t own_bytes() const noexcept { return 0; }
};

using EdgeSoftmaxKernel = Kernel<EdgeSoftmaxProblem, PreparedEdgeSoftmax>;

/// Every kernel of this build.
std::span<const EdgeSoftmaxKernel> edge_softmax_kernels();

std::span<const EdgeSoftmaxKernel> cpu_edge_softmax_kernels();

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "tessera/ops/edge_difference.hpp"

#include "ops/plan/registry.hpp"
#include "ops/plan/workspace.hpp"

namespace tessera::ops {

struct EdgeDifferenceProblem {
  Graph graph;
  EdgeDifferenceOptions options;
};

/// What a plan keeps of a kernel. Operands have been checked.
class PreparedEdgeDifference {
 public:
  virtual ~PreparedEdgeDifference() = default;
  virtual void run(ConstOperand x, Operand differences, Stream stream,
                   const WorkspaceView& workspace) const = 0;
  virtual void run_backward(ConstOperand grad_differences, Operand grad_x, Stream stream,
                            const WorkspaceView& workspace) const = 0;
  virtual WorkspaceNeed workspace() const { return {}; }
};

using EdgeDifferenceKernel = Kernel<EdgeDifferenceProblem, PreparedEdgeDifference>;

/// Every kernel of this build.
std::span<const EdgeDifferenceKernel> edge_difference_kernels();

std::span<const EdgeDifferenceKernel> cpu_edge_difference_kernels();

}  // namespace tessera::ops

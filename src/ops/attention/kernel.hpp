// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/ops/attention.hpp"

#include "ops/attention/shortest_row.hpp"
#include "ops/registry.hpp"
#include "ops/workspace.hpp"

namespace tessera::ops {

struct AttentionProblem {
  Graph graph;
  AttentionOptions options;
};

inline CostShape cost_shape(const AttentionProblem& problem) {
  const Graph& graph = problem.graph;
  const auto bytes = static_cast<int>(bytes_per_element(problem.options.precision));
  return {static_cast<double>(graph.num_edges()) / std::max(1, graph.num_rows()),
          static_cast<double>(problem.options.features) * bytes, bytes};
}

/// What a plan keeps of a kernel. Operands have been checked.
class PreparedAttention {
 public:
  virtual ~PreparedAttention() = default;
  virtual void run(const AttentionInputs& inputs, const AttentionOutputs& outputs, Stream stream,
                   const WorkspaceView& workspace) const = 0;
  virtual void run_backward(const AttentionInputs& inputs, ConstOperand output,
                            ConstOperand log_sum, ConstOperand grad_output,
                            const AttentionGradOutputs& gradients, Stream stream,
                            const WorkspaceView& workspace) const = 0;
  /// What its forward pass may keep for its backward pass beside log sums: so many numbers of fp32.
  virtual std::int64_t kept_numbers() const { return 0; }
  /// The same, where there are such numbers, with room for them. Null: none.
  virtual void run_keeping(const AttentionInputs& inputs, const AttentionOutputs& outputs,
                           float* /*kept*/, Stream stream, const WorkspaceView& workspace) const {
    run(inputs, outputs, stream, workspace);
  }
  virtual void run_backward_kept(const AttentionInputs& inputs, ConstOperand output,
                                 ConstOperand log_sum, const float* /*kept*/,
                                 ConstOperand grad_output, const AttentionGradOutputs& gradients,
                                 Stream stream, const WorkspaceView& workspace) const {
    run_backward(inputs, output, log_sum, grad_output, gradients, stream, workspace);
  }
  virtual void weights(const AttentionInputs& inputs, ConstOperand log_sum, Operand weights,
                       Stream stream, const WorkspaceView& workspace) const = 0;
  /// As of spmm's kernels.
  virtual WorkspaceNeed workspace() const { return {}; }
  virtual std::int64_t own_bytes() const noexcept { return 0; }
  /// The kernel that runs its backward pass, where it has none of its own; else null.
  virtual const char* backward_kernel() const { return nullptr; }
  /// Whether its forward pass writes inverse lengths where there is room, and its backward pass
  /// reads them.
  virtual bool keeps_lengths() const { return false; }
  /// How the kernels of other ops that it runs, if any, were chosen.
  virtual std::vector<std::pair<const char*, Decision>> stages() const { return {}; }
};

using AttentionKernel = Kernel<AttentionProblem, PreparedAttention>;

/// Every kernel of this build.
std::span<const AttentionKernel> attention_kernels();

std::span<const AttentionKernel> cpu_attention_kernels();

}  // namespace tessera::ops

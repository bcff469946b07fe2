// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/ops/attention.hpp"

#include "ops/attention/shortest_row.hpp"
#include "ops/plan/cost_formula.hpp"
#include "ops/plan/registry.hpp"
#include "ops/plan/workspace.hpp"

namespace tessera::ops {

struct AttentionProblem {
  Graph graph;
  AttentionOptions options;
};

inline PassSizes sizes_of(const AttentionProblem& problem) {
  return {problem.graph, tiles::Side::forward, problem.options.features, problem.options.precision};
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
  /// How the kernels of other ops that it runs, if any, were chosen.
  virtual std::vector<std::pair<const char*, Decision>> stages() const { return {}; }
};

using AttentionKernel = Kernel<AttentionProblem, PreparedAttention>;

/// Every kernel of this build.
std::span<const AttentionKernel> attention_kernels();

AttentionKernel cpu_attention_kernel();

/// How far the weights that a kernel computes may be off, beside the rounding of sums.
double attention_weight_error(const std::string& kernel, const AttentionOptions& options);

/// The kernels that are made of those of other ops. They alone take a term for each edge.
std::span<const AttentionKernel> staged_attention_kernels();

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tessera/ops/attention.hpp"

#include "ops/registry.hpp"

namespace tessera::ops {

struct AttentionProblem {
  Graph graph;
  AttentionOptions options;
};

/// What a plan keeps of a kernel. Operands have been checked.
class PreparedAttention {
 public:
  virtual ~PreparedAttention() = default;
  virtual void run(const AttentionInputs& inputs, const AttentionOutputs& outputs,
                   Stream stream) const = 0;
  virtual void run_backward(const AttentionInputs& inputs, ConstOperand output,
                            ConstOperand log_sum, ConstOperand grad_output,
                            const AttentionGradOutputs& gradients, Stream stream) const = 0;
  virtual void weights(const AttentionInputs& inputs, ConstOperand log_sum, Operand weights,
                       Stream stream) const = 0;
  /// Makes what `run_backward` needs, if its first call would do so.
  virtual void prepare_backward() const {}
  virtual std::int64_t workspace_bytes() const noexcept = 0;
  /// The kernels of other ops that it runs, if any, in words.
  virtual std::string stages() const { return {}; }
};

using AttentionKernel = Kernel<AttentionProblem, PreparedAttention>;

/// Every kernel of this build.
std::span<const AttentionKernel> attention_kernels();

std::span<const AttentionKernel> cpu_attention_kernels();

}  // namespace tessera::ops

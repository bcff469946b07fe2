// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/ops/messages.hpp"

#include "ops/plan/registry.hpp"
#include "ops/plan/workspace.hpp"

namespace tessera::ops {

struct MessagesProblem {
  Graph graph;
  MessagesOptions options;
};

/// What a plan keeps of a kernel. Operands have been checked.
class PreparedMessages {
 public:
  virtual ~PreparedMessages() = default;
  virtual void run(const MessagesInputs& inputs, Operand y, Stream stream,
                   const WorkspaceView& workspace) const = 0;
  virtual void run_backward(const MessagesInputs& inputs, ConstOperand grad_y,
                            const MessagesGradOutputs& gradients, Stream stream,
                            const WorkspaceView& workspace) const = 0;
  virtual WorkspaceNeed workspace() const { return {}; }
  virtual std::int64_t own_bytes() const noexcept { return 0; }
};

using MessagesKernel = Kernel<MessagesProblem, PreparedMessages>;

/// Every kernel of this build.
std::span<const MessagesKernel> messages_kernels();

/// Only in a build with CUDA.
void append_cuda_messages_kernels(std::vector<MessagesKernel>& table);

}  // namespace tessera::ops

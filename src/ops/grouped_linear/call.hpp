// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/device.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/ops/operand.hpp"

#include "ops/grouped_linear/kernels.hpp"

namespace tessera::ops {

/// What both passes read. It has been checked.
struct GroupedCall {
  ConstOperand x;
  const Graph& groups;
  ConstOperand weights;
  GroupedShape shape;
};

void grouped_on_cpu(const GroupedCall& call, Operand y);
void grouped_on_gpu(const GroupedCall& call, Operand y, Device device, Stream stream);

/// Both gradients may be absent.
void grouped_backward_on_cpu(const GroupedCall& call, ConstOperand grad_y, Operand grad_x,
                             Operand grad_weights);
void grouped_backward_on_gpu(const GroupedCall& call, ConstOperand grad_y, Operand grad_x,
                             Operand grad_weights, Device device, Stream stream);

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/device.hpp"
#include "tessera/ops/operand.hpp"

namespace tessera::ops {

/// Operands have been checked, and are not empty.
void gather_on_gpu(ConstOperand x, ConstOperand rows, Operand y, Device device, Stream stream);

}  // namespace tessera::ops

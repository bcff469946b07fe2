// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/device.hpp"
#include "tessera/ops/operand.hpp"

namespace tessera::ops {

/// Y[i] = X[rows[i]], bit for bit. `rows` is a column of int32 on the device, as long as Y has
/// rows; every one of them is a row of X, which only the CPU checks.
void gather_rows(ConstOperand x, ConstOperand rows, Operand y, Device device = {},
                 Stream stream = {});

}  // namespace tessera::ops

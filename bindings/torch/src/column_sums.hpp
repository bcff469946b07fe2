// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "tessera/core/device.hpp"
#include "tessera/ops/operand.hpp"

namespace tessera::torch_ops {

/// sums[j] = the sum over all i of values[i][j], added up in double, on a GPU: of bf16 or fp16 in
/// fp32, which the library's own sums are not. `sums` is 1 x n. Where there is `decides`, of the
/// shape and type of `values`, those become 0 first wherever it is 0, and are written. `workspace`
/// is the memory of a `DenseWorkspace`.
void column_sums(ops::Operand values, ops::ConstOperand decides, ops::Operand sums,
                 std::byte* workspace, Stream stream);

}  // namespace tessera::torch_ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/device.hpp"
#include "tessera/ops/operand.hpp"

namespace tessera::ops {

/// Whether `linear_backward` finds `LinearSurroundings::norm_sums` without `normed`, too, in the
/// pass that finds the gradient of the weight: of a gradient of `x` that is not written, since
/// `grad_y` and the weight stand for it as factors. Then both of these, `grad_weight` and `columns`
/// must be there, and no `grad_x`. On GPUs, where rows are many and `grad_y` has one or two
/// columns.
bool linear_finds_norm_sums(Device device, ElementType type, std::int64_t rows, std::int64_t in,
                            std::int64_t out);

}  // namespace tessera::ops

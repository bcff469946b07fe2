// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tessera/core/device.hpp"
#include "tessera/ops/operand.hpp"

/// Losses over chosen rows, as means, with their gradients in the same pass. A row chosen twice
/// counts twice. `grad_logits` may be the memory of `logits`, or absent.
namespace tessera::ops {

/// Mean over `rows` of -log softmax(logits[row])[labels[row]]. `labels` has one class per row of
/// `logits`; a chosen row without a label (-1) or with a class out of range is an error. No rows
/// give 0. `grad_logits`, if present, is written whole: 0 in rows that were not chosen.
double cross_entropy(ConstOperand logits, std::span<const std::int64_t> labels,
                     std::span<const std::int64_t> rows, Operand grad_logits, Device device = {},
                     Stream stream = {});

/// Mean over `rows` and columns of the binary cross-entropy of sigmoid(logits) with targets of 0
/// and 1 (anything else in a chosen row is an error), computed without overflow. `grad_logits` as
/// above.
double binary_cross_entropy(ConstOperand logits, MatrixView<const float> targets,
                            std::span<const std::int64_t> rows, Operand grad_logits,
                            Device device = {}, Stream stream = {});

}  // namespace tessera::ops

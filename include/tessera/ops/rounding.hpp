// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/device.hpp"
#include "tessera/ops/operand.hpp"

/// What quantisation does to numbers, without leaving floating point: quantisation-aware training,
/// and what a quantised model would say.
namespace tessera::ops {

/// What has a range of its own.
enum class RoundingRange { matrix, rows, columns };

/// Y = the numbers that codes of 1 to 16 bits would give back: the range of X, widened to 0, in
/// 2^bits - 1 steps, 0 among them, each number to the nearest. Without a width numbers stay as they
/// are; ranges of columns below 8 bits leave outliers out (quantisation.md). `y` may be the memory
/// of `x`; the gradient is that of y = x (straight-through), for which there is nothing to call.
///
/// `ranges` is on the device, and gets two numbers for each range: how far it reaches above 0, and
/// how far below. With `row_scale` (rows x 1, fp32) the codes are those of row_scale[i] X[i][j],
/// ranges included, and Y is what they give back divided by it; rows of scale 0 stay as they are.
void round_to_codes(ConstOperand x, int bits, RoundingRange range, MatrixView<float> ranges,
                    Operand y, Device device = {}, Stream stream = {}, ConstOperand row_scale = {});

/// The same with ranges that are given, as `round_to_codes` found them; numbers outside become the
/// ends of their range.
void round_within(ConstOperand x, int bits, RoundingRange range, MatrixView<const float> ranges,
                  Operand y, Device device = {}, Stream stream = {}, ConstOperand row_scale = {});

}  // namespace tessera::ops

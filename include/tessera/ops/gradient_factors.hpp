// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/ops/operand.hpp"

namespace tessera::ops {

/// A gradient that nobody has written: left * right, rows x k and k x cols, of one type. Where k is
/// small an op multiplies on its way, which takes less than to read what a product wrote.
struct GradientFactors {
  ConstOperand left = {};
  ConstOperand right = {};

  bool absent() const noexcept { return left.absent(); }
};

/// Whether it pays to leave a gradient as factors: of many rows and a very small k.
constexpr bool pays_as_factors(std::int64_t rows, std::int64_t k) noexcept {
  constexpr std::int64_t few_rows = 32768, widest = 4;
  return rows > few_rows && k <= widest;
}

}  // namespace tessera::ops

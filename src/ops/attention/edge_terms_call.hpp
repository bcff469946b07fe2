// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/ops/operand.hpp"

namespace tessera::ops {

/// How a raw score becomes a score: f(scale * raw + term), f = leaky_relu or nothing.
struct EdgeTermsCall {
  std::int64_t num_numbers = 0;
  std::int64_t heads = 1;
  ConstOperand raw;   ///< num_edges x heads, side by side
  ConstOperand term;  ///< num_edges x heads
  double scale = 1;
  double slope = 1;  ///< of leaky_relu; 1: nothing is done to what was summed
};

}  // namespace tessera::ops

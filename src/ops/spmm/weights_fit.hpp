// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "ops/spmm/kernel.hpp"

namespace tessera::ops {

/// Sizes of the finite numbers other than 0; 0 where there are none.
struct SizeRange {
  float smallest = 0;
  float largest = 0;
  bool all_finite = true;
};
SizeRange sizes_of(std::span<const float> numbers);

/// Throws `unsupported` where a weight of the graph is too large for the numbers of the problem's
/// precision: then even features of 1 would give infinite results.
void check_weights_fit(const SpmmProblem& problem);

}  // namespace tessera::ops

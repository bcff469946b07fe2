// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/spmm/kernel.hpp"

namespace tessera::ops {

/// Throws `unsupported` where a weight of the graph is too large for the numbers of the problem's
/// precision: then even features of 1 would give infinite results.
void check_weights_fit(const SpmmProblem& problem);

}  // namespace tessera::ops

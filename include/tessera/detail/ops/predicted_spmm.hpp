// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/ops/spmm.hpp"

namespace tessera::ops {

/// Microseconds of one product on the graph, as the cost model expects them of the kernel that a
/// plan with these options would choose. Makes no plan.
double predicted_spmm_us(const Graph& graph, const SpmmOptions& options);

}  // namespace tessera::ops

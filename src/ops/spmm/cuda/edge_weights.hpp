// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/spmm/cuda/rows/launch.hpp"

namespace tessera::ops {

/// Writes the whole weight of every edge, scales and all, in the order of the launch's rows.
void write_edge_weights(const RowsLaunch& launch, Precision precision, void* weights,
                        Stream stream);

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ops/aggregate_update/kernel.hpp"

namespace tessera::ops {

void append_cuda_fused_aggregate_update(std::vector<AggregateUpdateKernel>& table);
void append_cuda_window_aggregate_update(std::vector<AggregateUpdateKernel>& table);

}  // namespace tessera::ops

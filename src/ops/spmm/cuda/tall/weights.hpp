// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "ops/spmm/kernel.hpp"
#include "tessera/core/memory.hpp"

/// What tall windows multiply edges by, before it is packed (values.hpp).
namespace tessera::ops {

/// For each edge in CSR order the scale of the column that it has in the translated side. Empty
/// where columns have none.
Buffer<float> edge_scales(const SpmmProblem& problem, std::span<const float> column_scales);

/// The graph's own values times those scales.
Buffer<float> scaled_values(const SpmmProblem& problem, std::span<const float> column_scales);

}  // namespace tessera::ops

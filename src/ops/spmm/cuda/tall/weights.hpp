// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "ops/spmm/kernel.hpp"
#include "tessera/core/memory.hpp"

/// What tall windows multiply edges by, before it is packed (values.hpp).
namespace tessera::ops {

/// The graph's own values, each times the scale of the column that its edge has in the translated
/// side.
Buffer<float> scaled_values(const SpmmProblem& problem, std::span<const float> column_scales);

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device_traits.hpp"
#include "ops/sddmm/kernel.hpp"

namespace tessera::ops {

/// How blocks share tiles: in runs of 2^shift, in turn.
struct TallDotRuns {
  int shift = 0;
  int workers = 0;
};

/// The runs with which the block that has most to do has least; `workers` is how many blocks run at
/// once.
TallDotRuns share_tall_dots(const Graph& graph, std::int64_t num_tiles, int workers);

/// What the cost model expects a run on tiles to take, from a sample of the windows.
double predict_tall_dots_us(const SddmmProblem& problem, const DeviceTraits& traits);

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/device_traits.hpp"
#include "ops/sddmm/cuda/edges/policy.hpp"
#include "ops/sddmm/cuda/lists/policy.hpp"
#include "ops/sddmm/kernel.hpp"

/// What the CUDA kernels of sddmm should take. Costs need no CUDA.
namespace tessera::ops {

/// Enough tiles per warp that neighbouring rows meet in one block, few enough that the last blocks
/// end together.
int tiles_per_warp(EdgeOffset num_edges, int tile, const DeviceTraits& traits);

/// Steps of a group's run: long ones ask for fewer rows of U, short ones of neighbouring targets
/// find each other's rows of V in the cache.
int stream_steps(const Graph& graph, const DeviceTraits& traits);

/// What streams of rows should take.
double predict_stream_us(const SddmmProblem& problem, const DeviceTraits& traits);

/// What equal shares of edges should take, with lanes that load `vector_bytes` at once.
double predict_edges_us(const SddmmProblem& problem, const EdgesPolicy& policy,
                        std::int64_t vector_bytes, const DeviceTraits& traits);

/// A sum per edge and head.
double predict_edge_sums_us(const SddmmProblem& problem, const DeviceTraits& traits);

/// What dot products by a list should take.
double predict_list_us(const SddmmProblem& problem, const ListPolicy& policy,
                       const DeviceTraits& traits);

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

/// Steps of a run, at most: so few that every warp has some runs.
int dot_run_steps(const SddmmProblem& problem, const DeviceTraits& traits);

/// What windows of 16 rows should take, from a sample of them; `direct`: with results stored one by
/// one.
double predict_short_dots_us(const SddmmProblem& problem, bool direct, const DeviceTraits& traits);

}  // namespace tessera::ops

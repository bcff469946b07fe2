// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/device_traits.hpp"
#include "ops/sddmm/cuda/edges/policy.hpp"
#include "ops/sddmm/kernel.hpp"

namespace tessera::ops {

inline std::int64_t element_bytes(const SddmmProblem& problem) {
  return static_cast<std::int64_t>(bytes_per_element(problem.precision));
}

/// Features of a head.
inline std::int64_t head_width(const SddmmProblem& problem) {
  return problem.features / problem.heads;
}

/// Enough tiles per warp that neighbouring rows meet in one block, few enough that the last blocks
/// end together.
int tiles_per_warp(EdgeOffset num_edges, int tile, const DeviceTraits& traits);

/// Steps of a group's run: long ones ask for fewer rows of U, short ones of neighbouring targets
/// find each other's rows of V in the cache.
int stream_steps(const Graph& graph, const StreamPolicy& policy, const DeviceTraits& traits);

/// What streams of rows should take.
double predict_stream_us(const SddmmProblem& problem, const StreamPolicy& policy,
                         const DeviceTraits& traits);

/// What equal shares of edges should take, with lanes that load `vector_bytes` at once.
double predict_edges_us(const SddmmProblem& problem, const EdgesPolicy& policy,
                        std::int64_t vector_bytes, const DeviceTraits& traits);

/// A sum per edge and head.
double predict_edge_sums_us(const SddmmProblem& problem, const DeviceTraits& traits);

}  // namespace tessera::ops

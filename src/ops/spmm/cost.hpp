// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/spmm/kernel.hpp"

/// What the CPU kernels of spmm are expected to cost. Rough: it has to rank kernels, not to time
/// them.
namespace tessera::ops {

double predict_spmm_rows_us(const SpmmProblem& problem);
double predict_spmm_tiles_us(const SpmmProblem& problem);
/// For backward passes only.
double predict_spmm_scatter_us(const SpmmProblem& problem);

/// Features of a slice that fits the nearer caches, but at least two cache lines of them.
std::int64_t packed_tile_width(const SpmmProblem& problem);

/// By rows that edges in no order would have.
double predict_spmm_by_rows_us(const Coo& edges, std::int64_t features);

/// For edges in no order, or a graph.
double predict_spmm_by_edges_us(const SpmmProblem& problem);

}  // namespace tessera::ops

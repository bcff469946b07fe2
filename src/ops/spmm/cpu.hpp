// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "ops/spmm/kernel.hpp"

/// The CPU kernels of spmm, and what they are expected to cost. Rough: it has to rank kernels, not
/// to time them.
namespace tessera::ops {

/// spmm row by row on the CPU: over the CSR arrays, or for a backward pass over the CSC arrays.
/// `packed`: some features at a time, copied side by side first: a slice that fits the caches is
/// then gathered from them, where rows of the whole x would not.
std::unique_ptr<const PreparedSpmm> prepare_spmm_by_rows(const SpmmProblem& problem, bool packed);

/// Rows after which sums in the storage's precision are added to those in fp64: no column can have
/// had more terms by then.
inline constexpr VertexId scatter_chain = 256;

/// dX = A^T dY by rows of A: dY[i], read once, is added to the sums of the sources of i. Faster
/// than gathering rows of dY where the sums fit the nearest caches and dY does not: the gradient of
/// a weight that sparse features were multiplied with.
std::unique_ptr<const PreparedSpmm> prepare_spmm_scatter(const SpmmProblem& problem);

/// Gather-apply-scatter on the CPU: edges in the order in which they are, each added to the row of
/// its target (of its source, in a backward pass). A task has some of these rows and looks at the
/// ids of all edges, so that nothing is written twice at a time and bits do not depend on threads.
std::unique_ptr<const PreparedSpmm> prepare_spmm_by_edges(const SpmmProblem& problem);

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

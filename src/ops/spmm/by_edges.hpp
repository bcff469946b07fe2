// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ops/spmm/edge_terms.hpp"
#include "ops/spmm/kernel.hpp"
#include "ops/spmm/winner_gradients.hpp"

namespace tessera::ops {

/// Gather-apply-scatter on the CPU: edges in the order in which they are, each added to the row of
/// its target (of its source, in a backward pass). A task has some of these rows and looks at the
/// ids of all edges, so that nothing is written twice at a time and bits do not depend on threads.
std::unique_ptr<const PreparedSpmm> prepare_spmm_by_edges(const SpmmProblem& problem);

/// The gradient of edge values in the order of the edges: a dot product of the features of both
/// ends, times what the weight changes by.
std::unique_ptr<const EdgeValueGradients> cpu_edge_dots(const SpmmProblem& problem);

/// The same on a GPU. Only in a build with CUDA.
std::unique_ptr<const EdgeValueGradients> cuda_edge_dots(const SpmmProblem& problem);

}  // namespace tessera::ops

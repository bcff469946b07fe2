// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ops/spmm/kernel.hpp"

namespace tessera::ops {

/// A kernel on the rows that were made of edges in no order, for runs that bring values in the
/// order of those edges: they are weighed and moved to where rows have them, and loops that a rule
/// added keep their weight. `problem.edges` are the edges, `problem.graph` is what was made of
/// them.
std::unique_ptr<const PreparedSpmm> in_edge_order(std::unique_ptr<const PreparedSpmm> by_rows,
                                                  const SpmmProblem& problem);

/// Of a GPU. Only in a build with CUDA.
std::unique_ptr<const PreparedSpmm> cuda_in_edge_order(std::unique_ptr<const PreparedSpmm> by_rows,
                                                       const SpmmProblem& problem);

}  // namespace tessera::ops

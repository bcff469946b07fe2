// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/cuda/whole_units.hpp"
#include "ops/spmm/kernel.hpp"

/// X of a problem in rows that fill units of 16 bytes.
namespace tessera::ops {

inline VertexId rows_of_x(const SpmmProblem& problem) {
  return problem.pass == SpmmPass::forward ? problem.graph.num_cols() : problem.graph.num_rows();
}

inline std::int64_t bytes_of_units(const SpmmProblem& problem) {
  return rows_of_x(problem) * features_of_units(problem.features, problem.precision) *
         static_cast<std::int64_t>(bytes_per_element(problem.precision));
}

}  // namespace tessera::ops

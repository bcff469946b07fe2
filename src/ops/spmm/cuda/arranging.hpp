// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/spmm/kernel.hpp"
#include "ops/spmm/row_order.hpp"

namespace tessera::ops {

/// What arranging columns in quads, which this process does before the first run, adds to each run
/// of a plan: an order that saves less than it takes to find does not pay.
inline double arranging_us(const SpmmProblem& problem) {
  constexpr double us_per_edge = 0.05;  // 20 million edges per second and core
  const auto runs = static_cast<double>(std::max<std::int64_t>(1, problem.epochs));
  return us_per_edge * static_cast<double>(problem.graph.num_edges()) / nominal_threads / runs;
}

}  // namespace tessera::ops

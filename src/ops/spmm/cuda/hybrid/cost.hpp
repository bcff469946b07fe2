// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "ops/spmm/cuda/hybrid/schedule.hpp"
#include "ops/spmm/cuda/tall/policy.hpp"
#include "ops/spmm/row_order.hpp"
#include "tessera/tiles/tiled_graph.hpp"

namespace tessera::ops {

/// How the windows on tensor cores are computed; those on CUDA cores take the policy that suits
/// their rows.
struct HybridPolicy {
  const char* name;
  TallPolicy tall;
  /// Whether windows are made of rows in an order of the plan's own (row_order.hpp).
  bool ordered = false;
};

inline constexpr std::array<HybridPolicy, 3> hybrid_policies = {{
    {"hybrid_64", tall_policies[0]},
    {"hybrid_64_mma", tall_policies[8]},
    {"ordered_64", tall_policies[0], true},
}};
static_assert(hybrid_policies[1].tall.warps && !hybrid_policies[1].tall.valued);

/// The rows that a policy makes windows of: the problem's, in their order or in another.
struct WindowedRows {
  WindowedRows(const SpmmProblem& problem, const HybridPolicy& policy);

  Graph graph;
  tiles::Side side;
  SharedArray<EdgeOffset> offsets;
  std::shared_ptr<const RowOrder> order;  ///< null: the problem's own
};

/// By the policy of rows that has the least of them.
WindowCosts window_costs(const SpmmProblem& problem, const HybridPolicy& policy,
                         const DeviceTraits& traits);

/// Which of `rows_policies` with lists should be fastest for these rows; there is one for any
/// features.
std::size_t best_rows_policy(const SpmmProblem& problem, const RowLengths& rows,
                             const DeviceTraits& traits);

/// What all rows should take on CUDA cores, listed in an order of the plan's own.
double predict_ordered_rows_us(const SpmmProblem& problem, const DeviceTraits& traits);

/// What both kinds of cores should take, from a sample of the windows.
double predict_hybrid_us(const SpmmProblem& problem, const HybridPolicy& policy,
                         const DeviceTraits& traits);

}  // namespace tessera::ops

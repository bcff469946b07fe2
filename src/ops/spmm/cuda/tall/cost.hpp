// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device_traits.hpp"
#include "ops/spmm/cuda/tall/policy.hpp"
#include "ops/spmm/kernel.hpp"

namespace tessera::ops {

/// What one window costs the whole GPU.
struct TallWindowCost {
  double column_us = 0;  ///< each of its distinct columns
  double window_us = 0;  ///< starting it and storing its sums
};
TallWindowCost tall_window_cost(const SpmmProblem& problem, const TallPolicy& policy,
                                const DeviceTraits& traits);

/// The windows of a launch, all together.
struct TallWork {
  double windows = 0;
  double columns = 0;          ///< distinct ones
  double longest_columns = 0;  ///< of the longest window
  double moved_bytes = 0;      ///< of X and Y, once
  /// What else the processors do meanwhile, so that nobody waits for the longest window.
  double other_us = 0;
};
/// What the windows of a pattern take, launch and all.
double predict_tall_us(const SpmmProblem& problem, const TallPolicy& policy, const TallWork& work,
                       const DeviceTraits& traits);

/// What the cost model expects a run on tall windows to take, from a sample of the windows.
double predict_tall_us(const SpmmProblem& problem, const TallPolicy& policy,
                       const DeviceTraits& traits);

/// The same for rows in an order of the plan's own (row_order.hpp).
double predict_ordered_tall_us(const SpmmProblem& problem, const TallPolicy& policy,
                               const DeviceTraits& traits);

}  // namespace tessera::ops

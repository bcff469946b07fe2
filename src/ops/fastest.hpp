// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <limits>
#include <span>

#include "ops/registry.hpp"

namespace tessera::ops {

/// What the cost model expects of the kernel that a plan with these options would choose: for
/// kernels that are made of those of other ops.
template <class KernelType>
double fastest_us(std::span<const KernelType> table, const typename KernelType::Problem& problem,
                  const PlanOptions& options) {
  double best = std::numeric_limits<double>::infinity();
  for (const Offer& offer : offers_of(table, problem, options)) {
    if (why_excluded(offer, options).empty()) best = std::min(best, offer.predicted_us);
  }
  return best;
}

}  // namespace tessera::ops

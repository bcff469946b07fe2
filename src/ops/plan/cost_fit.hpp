// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace tessera::ops {

/// What a kernel takes, as a run in a captured chain has it, of what its cost model counts: less
/// what a model says of starting and ending that runs of a chain hide, times the share of the rest
/// that was measured. tools/fit_costs.py finds both from a record of times (cost_fits.hpp).
struct CostFit {
  const char* kernel;  ///< how the names of the kernels begin, without "cuda/"
  double start_us;
  double share;
};

/// Of a count, so much is left at least.
inline constexpr double least_left = 0.15;

constexpr double fitted_us(const CostFit& fit, double counted_us) {
  return fit.share * std::max(counted_us - fit.start_us, least_left * counted_us);
}

}  // namespace tessera::ops

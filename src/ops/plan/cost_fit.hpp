// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

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

/// The same of a kernel whose model counts what its schedule is made of, apart from each other: a
/// share of each, and launches.
struct CountFit {
  const char* kernel;
  std::array<double, 3> shares;
};

/// What a launch takes that follows others in a captured chain.
inline constexpr double chained_launch_us = 1.1;

/// What was counted for a kernel.
struct Counted {
  const char* kernel;
  int launches;
  std::array<double, 3> counts_us;
};

/// Where all that is counted is noted, for a program that fits are made with; null elsewhere.
inline thread_local std::vector<Counted>* counted_notes = nullptr;

inline double counted_us(const CountFit& fit, int launches,
                         const std::array<double, 3>& counts_us) {
  if (counted_notes != nullptr) counted_notes->push_back({fit.kernel, launches, counts_us});
  double us = launches * chained_launch_us;
  for (std::size_t i = 0; i < counts_us.size(); ++i) us += fit.shares[i] * counts_us[i];
  return us;
}

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <map>

namespace tessera::testing {

/// How far counts are from what is expected of them, in standard deviations of the chi-square
/// statistic; outcomes that are expected fewer than 5 times are taken together. Infinite where an
/// outcome came that cannot.
template <class Outcome>
double deviations(const std::map<Outcome, double>& seen,
                  const std::map<Outcome, double>& expected) {
  double squares = 0, rare_seen = 0, rare_expected = 0;
  int outcomes = 0;
  const auto take = [&](double count, double mean) {
    squares += (count - mean) * (count - mean) / mean;
    ++outcomes;
  };
  double all_seen = 0, known_seen = 0;
  for (const auto& one : seen) all_seen += one.second;
  for (const auto& [outcome, mean] : expected) {
    const auto found = seen.find(outcome);
    const double count = found == seen.end() ? 0 : found->second;
    known_seen += count;
    if (mean < 5) {
      rare_seen += count;
      rare_expected += mean;
    } else {
      take(count, mean);
    }
  }
  if (known_seen != all_seen) return INFINITY;
  if (rare_expected > 0) take(rare_seen, rare_expected);
  const double freedom = outcomes > 1 ? outcomes - 1 : 1;
  return (squares - freedom) / std::sqrt(2 * freedom);
}

}  // namespace tessera::testing

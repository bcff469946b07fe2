// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <span>

#include "graph/degrees.hpp"

namespace tessera::ops {

/// Rows that are asked for at random, the more often the higher their degree, from a cache that
/// keeps those used last.
class RandomRows {
 public:
  /// Each edge asks for a row, or some of them do.
  RandomRows(std::span<const DegreeCount> degrees, double asked)
      : degrees_(degrees), asked_(asked) {
    for (const DegreeCount& each : degrees_) {
      edges_ += static_cast<double>(each.degree) * static_cast<double>(each.rows);
    }
  }

  /// The share of them that a cache with so much room does not have, beside `passing` others for
  /// each edge that are used once.
  double missed(double passing, double room) const {
    if (kept(edges_) + passing * edges_ <= room) return 0;
    // After so many edges without a use a row leaves the cache.
    double age = 0;
    for (double step = edges_ / 2; step > edges_ * 1e-5; step /= 2) {
      if (kept(age + step) + passing * (age + step) <= room) age += step;
    }
    double missed = 0;
    for (const DegreeCount& each : degrees_) {
      missed += static_cast<double>(each.rows) * static_cast<double>(each.degree) *
                (1 - used_within(age, each));
    }
    return missed / edges_;
  }

 private:
  /// The probability that a row of such a degree is.
  double used_within(double age, const DegreeCount& each) const {
    return -std::expm1(-static_cast<double>(each.degree) * asked_ * age / edges_);
  }
  double kept(double age) const {
    double rows = 0;
    for (const DegreeCount& each : degrees_) {
      rows += static_cast<double>(each.rows) * used_within(age, each);
    }
    return rows;
  }

  std::span<const DegreeCount> degrees_;
  double asked_;
  double edges_ = 0;
};

}  // namespace tessera::ops

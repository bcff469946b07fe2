// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>
#include <span>

#include "graph/degrees.hpp"
#include "ops/plan/tuning.hpp"
#include "tessera/tiles/tiled_graph.hpp"

namespace tessera::ops {

/// Which caches the rows of X come from that the edges of a graph ask for, one after the other.
struct GatherShares {
  /// Of rows that the first-level cache has: others of the same 64 targets ask for them, too, or
  /// they are used so often that they stay there.
  double near = 0;
  /// Of rows that come from memory again: no other of 256 targets asks for them, and they are not
  /// used often enough to stay in the second-level cache. That each comes once is not counted.
  double missed = 0;
};

/// Estimated from windows of the graph and from the degrees of its rows; columns are taken to be
/// used as unevenly as rows. So many rows of X, or parts of rows, fit into the caches: popular ones
/// in the first-level cache, all of them in the second, and in the first those that 64 targets ask
/// for, which share the less the more do not fit.
GatherShares gather_shares(const Graph& graph, tiles::Side side, double near_rows,
                           double cached_rows,
                           double window_rows = std::numeric_limits<double>::infinity());

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

/// Of all rows that edges ask for, those that targets nearby do not ask for, too.
double asked_afar(const Graph& graph);

/// The share of rows that come from memory again where targets bring rows of their own, too: as
/// `GatherShares::missed`, but of a cache of so many rows that keeps those used last.
double missed_beside_targets(const Graph& graph, double cached_rows);

/// What the caches of the H200 keep of rows that edges ask for.
inline constexpr double near_bytes_kept = 147e3;     ///< popular ones, by the first-level cache
inline constexpr double window_bytes_kept = 278e3;   ///< what 64 targets ask for, by the same
inline constexpr double cached_bytes_kept = 44.6e6;  ///< by the second-level cache

/// How fast rows of X that edges ask for come, or parts of rows.
struct GatherRates {
  double near_bytes_per_us;
  double cached_bytes_per_us;
  double missed_bytes_per_us;  ///< what those from memory take more
  double near_bytes = near_bytes_kept;
  double cached_bytes = cached_bytes_kept;
  double window_bytes = window_bytes_kept;

  void scale(DeviceRatio ratio) {
    near_bytes_per_us *= ratio.processors;
    cached_bytes_per_us *= ratio.processors;
    missed_bytes_per_us *= ratio.memory;
    near_bytes *= ratio.l1;
    window_bytes *= ratio.l1;
    cached_bytes *= ratio.l2;
  }
  /// Microseconds per byte, where rows come in parts of `part_bytes`.
  double us_per_byte(const Graph& graph, tiles::Side side, double part_bytes) const;
  /// The same where each target brings a row of its own, which nobody else asks for, and the
  /// second-level cache keeps what was used last.
  double us_per_byte_beside_targets(const Graph& graph, double part_bytes) const;
};

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

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

/// Of all rows that edges ask for, those that targets nearby do not ask for, too.
double asked_afar(const Graph& graph);

/// The share of rows that come from memory again where targets bring rows of their own, too: as
/// `GatherShares::missed`, but of a cache of so many rows that keeps those used last.
double missed_beside_targets(const Graph& graph, double cached_rows);

/// How fast rows of X that edges ask for come, or parts of rows.
struct GatherRates {
  double near_bytes_per_us;
  double cached_bytes_per_us;
  double missed_bytes_per_us;  ///< what those from memory take more
  double near_bytes;           ///< that the first-level cache of a processor keeps of popular rows
  double cached_bytes;         ///< that the second-level cache does
  double window_bytes;         ///< that the first-level cache keeps of what 64 targets ask for

  GatherRates scaled(double processors, double memory) const {
    return {near_bytes_per_us * processors,
            cached_bytes_per_us * processors,
            missed_bytes_per_us * memory,
            near_bytes,
            cached_bytes,
            window_bytes};
  }
  /// Microseconds per byte, where rows come in parts of `part_bytes`.
  double us_per_byte(const Graph& graph, tiles::Side side, double part_bytes) const;
  /// The same where each target brings a row of its own, which nobody else asks for, and the
  /// second-level cache keeps what was used last.
  double us_per_byte_beside_targets(const Graph& graph, double part_bytes) const;
};

}  // namespace tessera::ops

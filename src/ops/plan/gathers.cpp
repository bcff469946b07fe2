// SPDX-License-Identifier: Apache-2.0
#include "ops/plan/gathers.hpp"

#include <algorithm>
#include <memory>
#include <string>

#include "graph/access.hpp"
#include "tiles/sample.hpp"

namespace tessera::ops {
namespace {

/// The share of all edges that the most used rows have, `share` of all rows.
double edges_of_most_used(const DegreeStatistics& degrees, double share) {
  double rows = share * static_cast<double>(degrees.num_rows);
  double edges = 0;
  for (auto each = degrees.counts.rbegin(); each != degrees.counts.rend() && rows > 0; ++each) {
    const double taken = std::min(rows, static_cast<double>(each->rows));
    edges += taken * static_cast<double>(each->degree);
    rows -= taken;
  }
  return edges / static_cast<double>(degrees.num_edges);
}

/// Edges that share their column with no other of their window count once each, others less: as far
/// as the columns of a window are no more than `kept`.
double distinct_share(const Graph& graph, tiles::Side side, int height,
                      double kept = std::numeric_limits<double>::infinity()) {
  const double columns = tiles::sample_windows(graph, height, side).columns;
  const auto targets =
      static_cast<double>(side == tiles::Side::forward ? graph.num_rows() : graph.num_cols());
  const double of_window = columns / std::max(1.0, targets / height);
  const double shared = 1 - std::min(1.0, columns / static_cast<double>(graph.num_edges()));
  return 1 - shared * std::min(1.0, kept / std::max(1.0, of_window));
}

}  // namespace

GatherShares gather_shares(const Graph& graph, tiles::Side side, double near_rows,
                           double cached_rows, double window_rows) {
  if (graph.num_edges() == 0) return {};
  const bool forward = side == tiles::Side::forward;
  const auto sources = static_cast<double>(forward ? graph.num_cols() : graph.num_rows());
  const auto degrees = row_degrees(graph);
  const auto unpopular = [&](double rows) {
    return 1 - edges_of_most_used(*degrees, std::min(1.0, rows / sources));
  };
  const double first_times = sources / static_cast<double>(graph.num_edges());
  return {1 - distinct_share(graph, side, 64, window_rows) * unpopular(near_rows),
          std::max(0.0, distinct_share(graph, side, 256) * unpopular(cached_rows) - first_times)};
}

double asked_afar(const Graph& graph) {
  const auto distinct = [&](int height) {
    return distinct_share(graph, tiles::Side::forward, height);
  };
  // What windows share with those beside them halves where windows are twice as high.
  const double first_times =
      static_cast<double>(graph.num_cols()) / static_cast<double>(graph.num_edges());
  return std::max({0.0, std::min(first_times, distinct(256)), 2 * distinct(256) - distinct(128)});
}

double missed_beside_targets(const Graph& graph, double cached_rows) {
  if (graph.num_edges() == 0) return 0;
  // Many policies ask the same.
  const std::string key = "missed beside targets, of " + std::to_string(cached_rows) + " rows";
  return *detail::GraphAccess::kept(graph, key, [&] {
    const auto edges = static_cast<double>(graph.num_edges());
    const double asked = asked_afar(graph);
    const double missed = RandomRows(row_degrees(graph)->counts, asked)
                              .missed(static_cast<double>(graph.num_rows()) / edges, cached_rows);
    const double first_times = static_cast<double>(graph.num_cols()) / edges;
    return std::max(0.0, asked * missed - first_times);
  });
}

double GatherRates::us_per_byte(const Graph& graph, tiles::Side side, double part_bytes) const {
  const GatherShares shares = gather_shares(graph, side, near_bytes / part_bytes,
                                            cached_bytes / part_bytes, window_bytes / part_bytes);
  return shares.near / near_bytes_per_us + (1 - shares.near) / cached_bytes_per_us +
         shares.missed / missed_bytes_per_us;
}

double GatherRates::us_per_byte_beside_targets(const Graph& graph, double part_bytes) const {
  const double near = gather_shares(graph, tiles::Side::forward, near_bytes / part_bytes, 0,
                                    window_bytes / part_bytes)
                          .near;
  const double missed = missed_beside_targets(graph, cached_bytes / part_bytes);
  return near / near_bytes_per_us + (1 - near) / cached_bytes_per_us + missed / missed_bytes_per_us;
}

}  // namespace tessera::ops

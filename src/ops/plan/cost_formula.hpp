// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>

#include "tessera/core/dtype.hpp"
#include "tessera/tiles/tiled_graph.hpp"
#include "tiles/sample.hpp"

/// What formulas of several cost models have in common.
namespace tessera::ops {

/// What goes on at the same time: the longest counts, and the lower `power` is the more of the
/// others; at 1 all of them.
inline double side_by_side(std::initializer_list<double> times_us, double power) {
  double sum = 0;
  for (const double us : times_us) sum += std::pow(us, power);
  return std::pow(sum, 1 / power);
}

/// A pass over the edges of a graph, as numbers to calculate with.
struct PassSizes {
  double targets, sources, edges;
  double features;
  double element_bytes;
  double row_bytes = features * element_bytes;
  double vertices = targets + sources;

  PassSizes(const Graph& graph, tiles::Side side, std::int64_t num_features, Precision precision)
      : targets(side == tiles::Side::forward ? graph.num_rows() : graph.num_cols()),
        sources(side == tiles::Side::forward ? graph.num_cols() : graph.num_rows()),
        edges(static_cast<double>(graph.num_edges())),
        features(static_cast<double>(num_features)),
        element_bytes(static_cast<double>(bytes_per_element(precision))) {}

  bool half() const { return element_bytes == 2; }
};

/// Windows of rows, and the steps that they take of so many distinct columns, from a sample. The
/// last step of a window is half full.
struct SampledSteps {
  double windows;
  double steps;

  SampledSteps(const Graph& graph, int height, int step_columns)
      : windows(std::ceil(static_cast<double>(graph.num_rows()) / height)),
        steps(tiles::sample_windows(graph, height, tiles::Side::forward).columns / step_columns +
              windows / 2) {}

  /// Those of a long window.
  double last(double most) const { return std::min(most, 2 * steps / std::max(1.0, windows)); }
};

}  // namespace tessera::ops

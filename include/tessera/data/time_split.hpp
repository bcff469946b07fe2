// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tessera/data/dataset.hpp"

namespace tessera {

/// Shares of the vertices for training, validation and test. What their sum lacks to 1 is left out,
/// from the earliest on.
struct TimeShares {
  double train = 0.6;
  double validation = 0.2;
  double test = 0.2;

  friend bool operator==(const TimeShares&, const TimeShares&) = default;
};

/// Splits vertices by time: the earliest are for training, the latest for the test. `times` has one
/// number for each vertex of the graph, `vertices` are those to split, such as the labelled ones.
/// Vertices of one time are in one part: that in which the middle one of them belongs by the
/// shares.
///
/// Shares that are not positive or sum to more than 1, and times that leave a part empty, are
/// `invalid_argument` errors; a time that is not finite is `bad_data`.
VertexSplit split_by_time(std::span<const std::int64_t> vertices, std::span<const double> times,
                          const TimeShares& shares = {});

}  // namespace tessera

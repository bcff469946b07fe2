// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/core/matrix.hpp"
#include "tessera/ops/rounding.hpp"

namespace tessera::step {

/// Where the ranges of features and activations come from. Ranges always reach to 0.
struct RangeSearch {
  /// Of the numbers that a range has, as much left out at both ends: 1 for the least and the
  /// greatest number.
  double share = 1;
  std::optional<std::pair<float, float>> bounds = {};  ///< given: no numbers are looked at

  /// Whether all numbers are within their range.
  bool keeps_all() const noexcept { return share == 1 && !bounds; }
  /// Throws `invalid_argument` unless the share is above 0 and at most 1 and the bounds are finite
  /// and in their order.
  void validate() const;
};

/// "0.999" is a share, "-2,4" are bounds.
RangeSearch parse_range_search(const std::string& text);

/// Two numbers for each range: how far it reaches above 0, and how far below. Of
/// row_scale[i] x[i][j] where there is a scale.
std::vector<float> find_ranges(MatrixView<const float> x, ops::RoundingRange range,
                               const float* row_scale, const RangeSearch& search);

}  // namespace tessera::step

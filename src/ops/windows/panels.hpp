// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tessera/core/dtype.hpp"

namespace tessera::ops {

/// Features of 32 bytes, the least that memory moves.
inline std::int64_t sector_features(Precision precision) {
  return 32 / static_cast<std::int64_t>(bytes_per_element(precision));
}

/// Features [begin, end) of all rows, which the blocks of a launch share in `count` panels of the
/// same width, so that none of them is done long before the others.
struct TallPanels {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t count = 0;
  std::int64_t features = 0;  ///< of each but the last: eights, or sectors where those fill rows

  TallPanels() = default;
  TallPanels(std::int64_t first, std::int64_t behind, std::int64_t width, Precision precision)
      : begin(first), end(behind), count((behind - first + width - 1) / width) {
    const std::int64_t whole =
        end % sector_features(precision) == 0 ? sector_features(precision) : 8;
    const std::int64_t even = count == 0 ? 0 : (end - begin + count - 1) / count;
    features = (even + whole - 1) / whole * whole;
  }
};

/// Where rows that are wider than `widest`, the widest kernel, are parted: what a panel takes
/// hardly depends on how much of it is used, so that a rest of up to half a panel is left to a
/// narrower kernel. All features where nothing is, and where the rest fills no whole sectors: equal
/// panels are faster then.
///
///     fp32, 264 features     | 128 | 128 | 8 of 32 |
///     bf16, 264 features     | 88 of 128 | 88 of 128 | 88 of 128 |
inline std::int64_t features_of_widest(std::int64_t features, std::int64_t widest,
                                       Precision precision) {
  const std::int64_t rest = features % widest;
  const bool is_left =
      features > widest && rest <= widest / 2 && rest % sector_features(precision) == 0;
  return is_left ? features - rest : features;
}

}  // namespace tessera::ops

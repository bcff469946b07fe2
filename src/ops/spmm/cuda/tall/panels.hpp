// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/dtype.hpp"

namespace tessera::ops {

/// How rows of features are shared where they are wider than a kernel: in as few panels as may be,
/// all of them as wide, so that no block is done long before the others.
///
///     264 features     | 88 | 88 | 88 |     not | 128 | 128 | 8 |
struct TallPanels {
  std::int64_t count = 0;
  std::int64_t features = 0;  ///< of each but the last: eights, or sectors where they fill rows

  TallPanels() = default;
  TallPanels(std::int64_t all, std::int64_t width, Precision precision)
      : count((all + width - 1) / width) {
    const std::int64_t of_sector = 32 / static_cast<std::int64_t>(bytes_per_element(precision));
    const std::int64_t whole = all % of_sector == 0 ? of_sector : 8;
    const std::int64_t even = count == 0 ? 0 : (all + count - 1) / count;
    features = (even + whole - 1) / whole * whole;
  }
};

}  // namespace tessera::ops

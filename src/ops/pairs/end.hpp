// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tessera::ops {

/// One end of one pair.
struct alignas(16) PairEnd {
  std::int32_t row = 0;
  std::int32_t other = 0;  ///< the row at the other end
  std::int32_t pair = 0;
  std::int32_t is_target = 0;
};

/// Whose gradient is summed, as bits.
enum PairSides : int { of_sources = 1, of_targets = 2, of_both = 3 };

}  // namespace tessera::ops

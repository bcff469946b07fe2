// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tessera::test {

/// Margins around a matrix: contiguous, rows off every boundary, rows on 16-byte boundaries.
inline constexpr std::int64_t margins[] = {0, 3, 8};
inline constexpr std::int64_t row_counts[] = {0, 1, 15, 17, 33, 300};
inline constexpr std::int64_t widths[] = {1, 7, 16, 33, 64, 257};

}  // namespace tessera::test

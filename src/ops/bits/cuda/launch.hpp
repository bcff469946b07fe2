// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/device.hpp"

/// What kernels of bit products are given, by value.
namespace tessera::ops {

/// Stacked planes of rows that are packed along K: plane p of row r begins at
/// words + p * plane_words + r * row_words. Rows are multiples of 16 bytes, and the bits behind K
/// are 0.
struct BitRows {
  const std::uint32_t* words = nullptr;
  std::int64_t plane_words = 0;
  std::int64_t row_words = 0;
  std::int64_t rows = 0;
  int planes = 0;
};

/// Which parts of K the rows of a block have any bit in: parts[offsets[tile]] and so on. Without
/// offsets all parts count.
struct BitIndex {
  const std::int32_t* offsets = nullptr;
  const std::int32_t* parts = nullptr;
};

/// sums[i][j] = sum over k of a[i][k] b[j][k].
struct BitProduct {
  BitRows a;
  BitRows b;
  BitIndex index;
  /// b as bytes in the order of `bytes.cuh`, where a kernel multiplies these.
  const std::uint8_t* b_bytes = nullptr;
  std::int32_t* sums = nullptr;
  std::int64_t stride = 0;
};

}  // namespace tessera::ops

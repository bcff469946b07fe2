// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/rows.hpp"
#include "tessera/core/dtype.hpp"

/// The edges that tiles leave out: sums of their rows in fp32, which the store of the tiles adds.
namespace tessera::ops {

struct RestLaunch {
  VertexId num_rows = 0;
  cuda::Offsets offsets;
  const VertexId* indices = nullptr;
  const float* col_scale = nullptr;  ///< null: 1

  const void* x = nullptr;
  std::int64_t x_stride = 0;  ///< in elements, as all that follow
  std::int64_t features = 0;
  float* sums = nullptr;
  std::int64_t sums_stride = 0;  ///< at least the features, rounded up to a multiple of 32

  int num_blocks = 0;          ///< that the GPU holds at once
  bool has_long_rows = false;  ///< of more edges than the following
};

/// Rows of more edges are shared by the warps of a block.
inline constexpr int longest_rest_row = 2048;

/// How many features of `features` to take at a time: rows of X are gathered at random, and faster
/// where all of them stay in the cache. Parts of rows fill a line of it at least.
constexpr std::int64_t rest_width(std::int64_t features, double columns, int element_bytes,
                                  double cache_bytes) {
  constexpr std::int64_t line_bytes = 128;
  constexpr double cached_share = 0.5;
  std::int64_t width = features;
  while (columns * static_cast<double>(width * element_bytes) > cached_share * cache_bytes &&
         (width + 1) / 2 * element_bytes >= line_bytes) {
    width = (width + 1) / 2;
  }
  return width;
}

struct RestFunction {
  void (*launch)(const RestLaunch& launch, Stream stream) = nullptr;
  int (*resident_blocks)(bool scaled) = nullptr;
};

/// For blocks of at least so many features, where there are some. Rows of X begin on boundaries of
/// 16 bytes and fill whole units of them.
RestFunction rest_function(Precision precision, std::int64_t features);

}  // namespace tessera::ops

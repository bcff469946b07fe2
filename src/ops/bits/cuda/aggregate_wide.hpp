// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/bits/cuda/launch.hpp"
#include "tessera/core/types.hpp"

namespace tessera::ops {

/// The codes of each row's sources, two bytes each, added to 32-bit sums.
struct WideLaunch {
  const std::int32_t* narrow_offsets = nullptr;  ///< one of the two is absent
  const std::int64_t* wide_offsets = nullptr;
  const VertexId* sources = nullptr;
  std::int64_t rows = 0;
  const std::uint16_t* codes = nullptr;  ///< rows of `width`
  std::int64_t cols = 0;
  std::int64_t width = 0;  ///< `cols` filled up to a multiple of 8
  std::int32_t* sums = nullptr;
  std::int64_t stride = 0;
};

/// Codes of each row's planes, `width` of them.
void spread_wide(const BitRows& from, std::int64_t width, std::uint16_t* to, Stream stream);
void aggregate_wide(const WideLaunch& launch, Stream stream);

}  // namespace tessera::ops

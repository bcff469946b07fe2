// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/bits/cuda/finish_sums.hpp"
#include "ops/bits/cuda/launch.hpp"

namespace tessera::ops {

/// What becomes of the sums of a target's codes.
struct AggregateResult {
  std::int64_t rows = 0;
  std::int64_t all_rows = 0;  ///< with those that fill a tensor of codes up
  std::int64_t cols = 0;
  BitResult result;
};

/// Bytes of each row's planes, `width` of them.
void spread_rows(const BitRows& from, std::int64_t width, std::uint8_t* to, Stream stream);

}  // namespace tessera::ops

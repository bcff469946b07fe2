// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/bits/cuda/aggregate.hpp"

namespace tessera::ops {

/// Codes of a byte, summed over lists of sources.
struct ByteListsLaunch {
  const std::int32_t* offsets = nullptr;   ///< of every row's sources, and one more
  const std::uint16_t* sources = nullptr;  ///< counted from the start of a row's block
  const std::int32_t* starts = nullptr;    ///< of the block of every 64 rows
  const std::uint8_t* codes = nullptr;     ///< rows that begin at multiples of 16 bytes
  std::int64_t code_stride = 0;
  AggregateResult out;
};

void sum_byte_lists(const ByteListsLaunch& launch, Stream stream);

}  // namespace tessera::ops

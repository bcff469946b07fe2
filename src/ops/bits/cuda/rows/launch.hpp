// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "ops/bits/cuda/aggregate.hpp"
#include "ops/rows/launch.hpp"

namespace tessera::ops {

/// The codes of each row's sources, added. The work is that of spmm/cuda/rows, whose slots hold
/// `width` sums of 32 bits each.
struct ByteRowsLaunch {
  RowsLaunch::Work work;
  cuda::Offsets offsets;
  const VertexId* sources = nullptr;
  const std::uint8_t* codes = nullptr;  ///< rows that begin at multiples of 16 bytes
  std::int64_t code_stride = 0;
  std::int64_t width = 0;  ///< the columns, filled up to a multiple of 16
};

/// A lane that loads so many bytes of a source, at most 256 sources in one row: its sums then fit
/// into 16 bits.
inline constexpr int most_lane_sources = 256;

struct ByteRowsFunction {
  int lanes = 0;  ///< of a team
  int bytes = 0;  ///< of a lane
  void (*launch)(const ByteRowsLaunch&, const AggregateResult&, Stream) = nullptr;
  /// For sums that are plain: small kernels, so that small graphs wait for nothing else.
  void (*launch_plain)(const ByteRowsLaunch&, const PlainBytes&, Stream) = nullptr;

  constexpr int columns() const { return lanes * bytes; }
  /// As plans of spmm see it.
  constexpr RowsPolicy policy(bool listed) const { return {lanes, 1, 4, bytes, 1, listed}; }
};

/// By their columns. A lane of 16 bytes has fewer loads, one of 8 fewer sums to finish.
extern const std::array<ByteRowsFunction, 6> byte_rows_of_16;
extern const std::array<ByteRowsFunction, 4> byte_rows_of_8;

}  // namespace tessera::ops

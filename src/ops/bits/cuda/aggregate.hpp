// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/bits/cuda/launch.hpp"
#include "tessera/core/types.hpp"

namespace tessera::ops {

/// Edges [begin, end) of one row; of a row that has more than one piece, sums are added.
struct RowPiece {
  std::int64_t begin = 0;
  std::int32_t count = 0;
  VertexId row = 0;
};

/// sums[row][j] = codes of the row's sources, added.
struct AggregateLaunch {
  const RowPiece* pieces = nullptr;
  std::int64_t num_pieces = 0;
  std::int64_t num_whole = 0;             ///< the first pieces are whole rows
  const VertexId* shared_rows = nullptr;  ///< rows of several pieces
  std::int64_t num_shared_rows = 0;
  const VertexId* sources = nullptr;
  const std::uint8_t* codes = nullptr;  ///< rows of `width` bytes
  std::int64_t width = 0;               ///< a multiple of 16
  std::int64_t cols = 0;
  std::int32_t* sums = nullptr;
  std::int64_t stride = 0;
};

/// Bytes of each row's planes, `width` of them.
void spread_rows(const BitRows& from, std::int64_t width, std::uint8_t* to, Stream stream);
void aggregate_rows(const AggregateLaunch& launch, Stream stream);

}  // namespace tessera::ops

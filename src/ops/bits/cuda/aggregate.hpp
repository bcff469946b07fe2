// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/bits/cuda/finish_sums.hpp"
#include "ops/bits/cuda/launch.hpp"
#include "tessera/core/types.hpp"

namespace tessera::ops {

/// Rows with more edges are taken by whole warps, piece by piece.
inline constexpr std::int64_t longest_short_row = 32;
/// Edges of a piece; the sums of integers are the same in every order.
inline constexpr std::int64_t longest_piece = 128;

/// Edges of one long row.
struct RowPiece {
  std::int64_t begin = 0;
  std::int32_t count = 0;
  VertexId row = 0;
  std::int32_t slot =
      -1;  ///< where its sums wait for those of the row's other pieces; -1: it is all
  std::int32_t first_slot = 0;
  std::int32_t num_slots = 0;
  std::int32_t counter = 0;  ///< of the pieces that have arrived, for every 512 columns
};

/// The codes of each row's sources, added, and what becomes of the sums.
struct AggregateLaunch {
  const std::int32_t* narrow_offsets = nullptr;  ///< one of the two is absent
  const std::int64_t* wide_offsets = nullptr;
  const VertexId* sources = nullptr;
  std::int64_t rows = 0;
  std::int64_t all_rows = 0;  ///< with those that fill a tensor of codes up
  const RowPiece* pieces = nullptr;
  std::int64_t num_pieces = 0;
  std::int32_t* slots = nullptr;  ///< `width` numbers each
  unsigned* counters = nullptr;
  const std::uint8_t* codes = nullptr;  ///< rows that begin at multiples of 16 bytes
  std::int64_t code_stride = 0;
  std::int64_t cols = 0;
  std::int64_t width = 0;  ///< `cols` filled up to a multiple of 16
  BitResult result;
};

/// Bytes of each row's planes, `width` of them.
void spread_rows(const BitRows& from, std::int64_t width, std::uint8_t* to, Stream stream);
void aggregate_rows(const AggregateLaunch& launch, Stream stream);

}  // namespace tessera::ops

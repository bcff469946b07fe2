// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tessera::ops {

/// Which block of a launch takes which rows of a list. Blocks go to the processors in turn, so that
/// rows of neighbouring blocks, which share sources, are gathered into different first-level
/// caches. Dealt, neighbouring blocks of a list lie `processors` blocks apart in the launch: one
/// processor takes them, all of a share, and others the shares next to it.
///
///     list      0 1 2 | 3 4 5 | 6 7 8 | ...     shares of three blocks, as many as processors
///     launch    0 3 6 ... | 1 4 7 ... | 2 5 8 ...
struct Dealing {
  std::int32_t block_rows = 0;  ///< 0: rows stay where they are
  std::int32_t processors = 1;
  std::int32_t share_blocks = 1;

  constexpr bool deals() const { return block_rows > 0; }

  /// Places of a list of so many rows: whole blocks, since the last may move.
  constexpr std::int64_t num_places(std::int64_t num_rows) const {
    return deals() ? num_blocks(num_rows) * block_rows : num_rows;
  }

  /// Where a row goes. The shares of the last round are smaller, by at most a block from each
  /// other.
  constexpr std::int64_t place_of(std::int64_t row, std::int64_t num_rows) const {
    if (!deals()) return row;
    const std::int64_t block = row / block_rows;
    const std::int64_t round_blocks = std::int64_t{processors} * share_blocks;
    const std::int64_t first = block / round_blocks * round_blocks;
    const std::int64_t left = num_blocks(num_rows) - first;
    const std::int64_t blocks = left < round_blocks ? left : round_blocks;
    const std::int64_t share = blocks / processors;
    const std::int64_t larger = blocks % processors;  // shares with a block more
    const std::int64_t in_larger = larger * (share + 1);
    const std::int64_t at = block - first;
    const std::int64_t processor =
        at < in_larger ? at / (share + 1) : larger + (at - in_larger) / share;
    const std::int64_t turn = at < in_larger ? at % (share + 1) : (at - in_larger) % share;
    return (first + turn * processors + processor) * block_rows + row % block_rows;
  }

 private:
  constexpr std::int64_t num_blocks(std::int64_t num_rows) const {
    return (num_rows + block_rows - 1) / block_rows;
  }
};

}  // namespace tessera::ops

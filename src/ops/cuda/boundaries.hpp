// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/ops/operand.hpp"

/// Where the rows of an operand lie, as far as kernels with wide loads care.
namespace tessera::ops {

/// From one row to the next.
inline std::int64_t stride_bytes(const ConstOperand& operand) {
  return bytes_of(operand.type, operand.stride);
}

/// Whether every row, and in it every group of `width` elements (the features, or those of a head;
/// 0: rows alone), begins at a multiple of `bytes` bytes.
inline bool on_boundaries(const ConstOperand& operand, std::int64_t width,
                          std::int64_t bytes = 16) {
  return reinterpret_cast<std::uintptr_t>(operand.data) % static_cast<std::uintptr_t>(bytes) == 0 &&
         (operand.rows <= 1 || stride_bytes(operand) % bytes == 0) &&
         bytes_of(operand.type, width) % bytes == 0;
}

/// How many rows of `width` elements lie in blocks of 16 bytes that end with the operand at the
/// latest: all, or all but some of the last.
inline std::int64_t rows_in_blocks(const ConstOperand& operand, std::int64_t width) {
  if (operand.rows == 0) return 0;
  const auto begin = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(operand.data));
  const std::int64_t row_bytes = bytes_of(operand.type, width);
  const std::int64_t step = stride_bytes(operand);
  const std::int64_t end = begin + (operand.rows - 1) * step + row_bytes;
  const std::int64_t room = end / 16 * 16 - begin - row_bytes;
  if (room < 0) return 0;
  return step == 0 ? operand.rows : std::min(operand.rows, room / step + 1);
}

/// Whether kernels can multiply the number of a row by the distance between rows with 32 bits each.
inline bool within_reach(const ConstOperand& operand) {
  return stride_bytes(operand) <= std::numeric_limits<std::uint32_t>::max();
}

/// Throws unless it is within reach.
inline void check_reach(const ConstOperand& operand, const char* name) {
  if (within_reach(operand)) return;
  throw Error(ErrorCode::unsupported, fmt::format("rows of {} bytes", stride_bytes(operand)), name,
              "use rows of less than 4 GiB");
}

}  // namespace tessera::ops

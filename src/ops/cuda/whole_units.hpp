// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>

#include "ops/cuda/boundaries.hpp"
#include "ops/cuda/units_copy.hpp"
#include "tessera/core/dtype.hpp"

/// Rows of X that begin on no boundary of 16 bytes, copied to where they do: kernels that gather
/// each of them many times take whole vectors then.
namespace tessera::ops {

/// Whether rows of so many features fill units of 16 bytes.
inline bool fills_units(std::int64_t features, Precision precision) {
  return features * static_cast<std::int64_t>(bytes_per_element(precision)) % 16 == 0;
}

/// Features of a row with those that fill its last unit.
inline std::int64_t features_of_units(std::int64_t features, Precision precision) {
  const std::int64_t of_unit = 16 / static_cast<std::int64_t>(bytes_per_element(precision));
  return (features + of_unit - 1) / of_unit * of_unit;
}

/// Copies rows of features of 2 or 4 bytes to `to`, which is on a boundary; what fills the last
/// unit of a row may be anything. Returns the copy.
inline ConstOperand copy_to_units(const ConstOperand& x, void* to, Stream stream) {
  UnitsCopy copy;
  copy.x = static_cast<const char*>(x.data);
  copy.x_row_bytes = stride_bytes(x);
  copy.rows = x.rows;
  copy.rows_in_blocks = rows_in_blocks(x, x.cols);
  copy.element_bytes = static_cast<int>(bytes_of(x.type, 1));
  copy.bytes = static_cast<int>(bytes_of(x.type, x.cols));
  copy.units = (copy.bytes + 15) / 16;
  copy.lanes = static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::min(copy.units, 32))));
  copy.to = to;
  run_units_copy(copy, stream);
  ConstOperand copied = x;
  copied.data = to;
  copied.stride = copy.units * 16 / copy.element_bytes;
  return copied;
}

/// What that takes of `bytes` bytes of X, which are read and written at what memory gives.
inline double predicted_copy_us(double bytes, double memory_bytes_per_us) {
  constexpr double launch_us = 2;
  return launch_us + 2 * bytes / memory_bytes_per_us;
}

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/device.hpp"

namespace tessera::ops {

/// Rows of X copied to where each begins on a boundary of 16 bytes; passed to the GPU by value.
struct UnitsCopy {
  const char* x = nullptr;
  std::int64_t x_row_bytes = 0;
  std::int64_t rows = 0;
  std::int64_t rows_in_blocks = 0;  ///< boundaries.hpp
  int element_bytes = 0;            ///< 2 or 4
  int bytes = 0;                    ///< of a row
  int units = 0;                    ///< of 16 bytes
  int lanes = 1;                    ///< that share a row: a power of two, 32 at most
  void* to = nullptr;
};

void run_units_copy(const UnitsCopy& copy, Stream stream);

}  // namespace tessera::ops

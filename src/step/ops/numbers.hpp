// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/step/op.hpp"

/// Small matrices without gaps between their rows, as ops want numbers of columns: values of a step
/// may have padded rows, so they lie in one.
namespace tessera::step {

inline Shape numbers_shape(std::int64_t rows, std::int64_t cols, Precision precision) {
  return {1, rows * cols, precision};
}

template <class AnyOperand>
AnyOperand numbers_in(AnyOperand row, std::int64_t rows) {
  if (row.absent()) return row;
  row.cols /= rows;
  row.rows = rows;
  row.stride = row.cols;
  return row;
}

}  // namespace tessera::step

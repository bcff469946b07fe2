// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/simd/isa.hpp"

namespace tessera::ops {

/// Some consecutive rows of X or of its gradient, with a number per row and head. Pointers and
/// distances instead of views: see simd/isa.hpp.
template <class T>
struct HeadRows {
  std::int64_t rows = 0;
  std::int64_t heads = 0;
  std::int64_t width = 0;
  const T* x = nullptr;
  std::int64_t x_stride = 0;
  const T* vector = nullptr;
};

template <class T>
struct HeadFunctions {
  /// y[i][h] = x[i][h] . vector[h].
  void (*dot)(const HeadRows<T>&, T* y, std::int64_t y_stride);
  /// grad_x[i][h] += grad_y[i][h] * vector[h], unless null, and sums[h] += grad_y[i][h] * x[i][h],
  /// unless null.
  void (*dot_backward)(const HeadRows<T>&, const T* grad_y, std::int64_t grad_y_stride, T* grad_x,
                       std::int64_t grad_x_stride, double* sums);
};

}  // namespace tessera::ops

TESSERA_SIMD_TABLE(ByArithmetic<HeadFunctions>, head_products)

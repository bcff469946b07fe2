// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/dense/activation_formula.hpp"
#include "ops/simd/isa.hpp"

namespace tessera::ops {

/// Some consecutive rows. Pointers and distances instead of views: see simd/isa.hpp.
template <class T>
struct ActivationRows {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::uint64_t first_element = 0;  ///< of the first row, for dropout
  const T* x = nullptr;
  std::int64_t x_stride = 0;
  const T* bias = nullptr;  ///< never null; zeros where there is none
  const T* grad_y = nullptr;
  std::int64_t grad_y_stride = 0;
  T* output = nullptr;  ///< y or grad_x; backward may go without
  std::int64_t output_stride = 0;
  double* bias_sums = nullptr;  ///< grad_x is added here, unless null
};

template <class T>
struct ActivationFunctions {
  void (*forward)(const ActivationFormula&, const ActivationRows<T>&);
  void (*backward)(const ActivationFormula&, const ActivationRows<T>&);
};

}  // namespace tessera::ops

TESSERA_SIMD_TABLE(ByArithmetic<ActivationFunctions>, activation)

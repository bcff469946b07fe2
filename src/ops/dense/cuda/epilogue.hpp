// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/dense/activation_formula.hpp"
#include "tessera/core/dtype.hpp"

namespace tessera::ops {

/// What becomes of a reduced row before it is stored, as every kernel takes it. Each launch is
/// {work, matrix, features, epilogue}: who takes what, what is multiplied, X and Y, and this.
///
/// First a row becomes (sum * unit + rest) * row_scale / divisor; null pointers mean 0 and 1. The
/// others below follow in kernels that are compiled with them: runs that store sums as they are do
/// not ask.
struct EpilogueLaunch {
  float unit = 1;
  bool mean = false;            ///< the divisor is how many edges the row has
  const float* rest = nullptr;  ///< num_rows x rest_stride
  std::int64_t rest_stride = 0;
  const float* row_scale = nullptr;
  const float* row_divisor = nullptr;

  const void* bias = nullptr;      ///< stored as features are; null: 0
  const void* residual = nullptr;  ///< the same
  std::int64_t residual_stride = 0;
  const void* residual_scale = nullptr;  ///< one number; the residual counts 1 + that many times
  ActivationFormula formula;
  Precision output = Precision::fp32;  ///< how Y is stored
};

}  // namespace tessera::ops

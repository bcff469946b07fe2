// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/activation/formula.hpp"
#include "tessera/core/dtype.hpp"

namespace tessera::ops {

/// What becomes of a reduced row before it is stored, as every kernel takes it; part of a launch.
/// Kernels are compiled twice, with and without: runs that store sums as they are do not ask.
struct EpilogueLaunch {
  const void* bias = nullptr;      ///< stored as features are; null: 0
  const void* residual = nullptr;  ///< the same
  std::int64_t residual_stride = 0;
  ActivationFormula formula;
  Precision output = Precision::fp32;  ///< how Y is stored
};

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/loss/targets.hpp"

#ifdef __CUDACC__
#define TESSERA_ANYWHERE __host__ __device__
#else
#define TESSERA_ANYWHERE
#endif

namespace tessera::ops {

/// What a difference from the wanted number costs; `slope` becomes its derivative.
template <class T>
struct NumberCost {
  NumberLoss kind = NumberLoss::squared;
  T delta = 1;

  static NumberCost of(const LossTargets::State& targets) {
    return {targets.number_loss, static_cast<T>(targets.huber_delta)};
  }

  TESSERA_ANYWHERE T operator()(T difference, T& slope) const {
    const T size = difference < 0 ? -difference : difference;
    const T sign = difference > 0 ? T(1) : difference < 0 ? T(-1) : difference;
    if (kind == NumberLoss::squared) {
      slope = 2 * difference;
      return difference * difference;
    }
    if (kind == NumberLoss::absolute) {
      slope = sign;
      return size;
    }
    // What is not a number stays none.
    const bool is_far = size >= delta;
    slope = is_far ? delta * sign : difference;
    return is_far ? delta * (size - delta / 2) : difference * difference / 2;
  }
};

}  // namespace tessera::ops

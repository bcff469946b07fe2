// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/direct_rows.cuh"

namespace tessera::ops {

/// Up to `most` steps of one piece that are computed together; those beyond its end have no edges.
template <int most>
struct SeveralSteps {
  using Walk = StepWalk<ExchangedColumns>;
  Walk::Step of[most];
  int count = 0;

  /// The next ones of a walk.
  __device__ explicit SeveralSteps(Walk& walk) {
#pragma unroll
    for (int i = 0; i < most; ++i) {
      if ((i == 0 || !walk.ends_piece()) && walk.advance(of[i])) count = i + 1;
    }
  }

  /// Calls visit(i, step) for each that exists.
  template <class Visit>
  __device__ void each(Visit&& visit) const {
#pragma unroll
    for (int i = 0; i < most; ++i) {
      if (i < count) visit(i, of[i]);
    }
  }
};

}  // namespace tessera::ops

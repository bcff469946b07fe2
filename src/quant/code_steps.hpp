// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#ifdef __CUDACC__
#define TESSERA_ANYWHERE __host__ __device__
#else
#define TESSERA_ANYWHERE
#endif

namespace tessera::quant {

/// A range in steps, of which one is at 0.
template <class Real>
struct CodeSteps {
  Real step = 0;
  Real zero = 0;  ///< the code of 0
  Real last = 0;

  /// `above` and `below` are how far the range reaches on both sides of 0.
  TESSERA_ANYWHERE CodeSteps(Real above, Real below, int bits)
      : last(static_cast<Real>((1 << bits) - 1)) {
    step = (above + below) / last;
    zero = step > 0 ? std::rint(below / step) : 0;
  }
  TESSERA_ANYWHERE Real code(Real x) const {
    if (!(step > 0)) return zero;
    const Real unbounded = std::rint(x / step) + zero;
    return unbounded < 0 ? 0 : unbounded > last ? last : unbounded;
  }
  TESSERA_ANYWHERE Real operator()(Real x) const { return step > 0 ? (code(x) - zero) * step : x; }
  /// Of x as a part of a row that is scaled before it becomes codes.
  TESSERA_ANYWHERE Real operator()(Real x, Real row_scale) const {
    return row_scale == 0 ? x : (*this)(x * row_scale) / row_scale;
  }
};

}  // namespace tessera::quant

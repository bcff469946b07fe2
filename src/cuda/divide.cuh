// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tessera::cuda {

/// Divides numbers by one divisor, each rounded as a division rounds it. The reciprocal is taken
/// once, and what the product with it leaves of a number corrects that product: a handful of
/// instructions, where each division of its own takes a call.
class DivideBy {
 public:
  __device__ explicit DivideBy(float divisor) : divisor_(divisor) {
    reciprocal_ = __frcp_rn(divisor);
  }

  __device__ float operator()(float number) const {
    const float near = number * reciprocal_;
    const float left = fmaf(-near, divisor_, number);
    // Nothing is left of numbers that are not finite.
    return left == left ? fmaf(left, reciprocal_, near) : near;
  }

 private:
  float divisor_;
  float reciprocal_;
};

}  // namespace tessera::cuda

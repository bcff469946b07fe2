// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/cuda/dropout.cuh"
#include "ops/cuda/exponentials.cuh"
#include "ops/dense/activation_formula.hpp"

namespace tessera::ops {

/// exp(z) - 1 of z <= 0, right to 2^-20, in a third of the instructions of expm1f. Near 0, where
/// the difference would have few bits, it is a polynomial.
__device__ inline float exponential_less_1(float z) {
  float series = 0.0011646067f;
  series = fmaf(series, z, 0.008238542f);
  series = fmaf(series, z, 0.04165003f);
  series = fmaf(series, z, 0.16666564f);
  series = fmaf(series, z, 0.5f);
  return z > -0.5f ? fmaf(z * z, series, z) : exponential(z) - 1;
}

/// `ActivationFormula` in fp32. The comparisons are such that a not-a-number passes.
struct DeviceFormula {
  Activation activation;
  float constant;  ///< the slope or alpha
  bool drops;
  DropoutConstants dropout;

  __host__ __device__ explicit DeviceFormula(const ActivationFormula& formula)
      : activation(formula.activation),
        constant(static_cast<float>(activation == Activation::elu ? formula.alpha : formula.slope)),
        drops(formula.drops),
        dropout(formula.dropout) {}

  __device__ float value(float z) const {
    switch (activation) {
      case Activation::relu: return z <= 0 ? 0 : z;
      case Activation::leaky_relu: return z > 0 ? z : constant * z;
      case Activation::elu: return z > 0 ? z : constant * exponential_less_1(z);
      default: return z;
    }
  }

  /// The same of several, with one look at what it is: `each(change)` calls `change(z)` for all.
  template <class Each>
  __device__ void activate(Each&& each) const {
    // A loop around it would be compiled once for each activation.
    auto kind = static_cast<int>(activation);
    asm volatile("" : "+r"(kind));
    switch (static_cast<Activation>(kind)) {
      case Activation::none: return;
      case Activation::relu: return each([](float& z) { z = z <= 0 ? 0 : z; });
      case Activation::leaky_relu: return each([&](float& z) { z = z > 0 ? z : constant * z; });
      case Activation::elu:
        return each([&](float& z) { z = z > 0 ? z : constant * exponential_less_1(z); });
    }
  }

  __device__ float derivative(float z) const {
    switch (activation) {
      case Activation::relu: return z <= 0 ? 0 : 1;
      case Activation::leaky_relu: return z > 0 ? 1 : constant;
      case Activation::elu: return z > 0 ? 1 : constant * expf(z);
      default: return 1;
    }
  }

  /// Multiplies what the chunk that begins at `element` holds by its factors of dropout.
  template <int width>
  __device__ void drop(std::int64_t element, float (&values)[width]) const {
    if (!drops) return;
    float factors[width];
    dropout_factors(dropout, static_cast<std::uint64_t>(element), factors);
#pragma unroll
    for (int i = 0; i < width; ++i) values[i] *= factors[i];
  }
};

/// The same of ReLU or nothing, without dropout: little code, for kernels that take longer to load
/// than to run.
struct ShortFormula {
  Activation activation;

  static bool suits(const ActivationFormula& formula) {
    return !formula.drops &&
           (formula.activation == Activation::none || formula.activation == Activation::relu);
  }

  __device__ float derivative(float z) const { return z <= 0 ? 0 : 1; }
  template <int width>
  __device__ void drop(std::int64_t, float (&)[width]) const {}
};

}  // namespace tessera::ops

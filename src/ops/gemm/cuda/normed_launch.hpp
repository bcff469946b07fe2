// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/gemm/cuda/product_launch.hpp"
#include "tessera/core/device.hpp"

namespace tessera::ops {

/// From the gradient of batch norm's output to that of its input, for one column
/// (`BatchNormSurroundings::grad_columns`).
struct GradientColumn {
  float mean, factor, shift;
  float mean_gradient;
  float weighted;  ///< the mean of gradient * normalised y, over the deviation
  float unused[3];

  /// The gradient of y. A not-a-number passes.
  __device__ float value(float y, float gradient, bool relu) const {
    const float distance = y - mean;
    const float counts = relu && distance * factor + shift <= 0 ? 0.0f : gradient;
    return factor * (counts - mean_gradient - distance * weighted);
  }
};

/// The gradients of a dense layer y = x W^T that batch norm, and perhaps ReLU, follow, from the
/// gradient of what those put out: of the weight and of x, in one pass over the rows.
struct NormedLaunch {
  std::int64_t rows = 0;
  int in = 0, out = 0;  ///< up to 64, multiples of 4; without grad_x `in` is any up to 96
  cuda::Rows<const float> x, y;
  cuda::Rows<const float> gradient;     ///< absent: the product of the next two
  cuda::Rows<const float> left, right;  ///< rows x inner, inner x out
  int inner = 0;                        ///< up to 4
  cuda::Rows<const float> weight;       ///< out x in
  ReadColumns x_columns;
  const GradientColumn* columns = nullptr;
  bool relu = false;
  cuda::Rows<float> grad_x, grad_weight;
  /// Two rows of sums over grad_x, where x before ReLU is above 0: as it is, and times x - a (a as
  /// in `x_columns`). May be absent.
  cuda::Rows<double> sums;
  double* partial_sums = nullptr;
  ProductSplit split;
};

/// Blocks, one for each multiprocessor of a large GPU. A constant: the cut must not depend on the
/// GPU.
inline constexpr int normed_blocks = 132;
/// Two for each, where the weight's gradient alone is found.
inline constexpr int normed_weight_blocks = 264;

void run_normed_gradient(const NormedLaunch& launch, Stream stream);
/// The weight's alone, of `gradient` and of x as it is; `in` is any number up to 96.
void run_normed_weight(const NormedLaunch& launch, Stream stream);

}  // namespace tessera::ops

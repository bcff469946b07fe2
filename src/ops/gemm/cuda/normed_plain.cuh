// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "ops/gemm/cuda/normed_launch.hpp"

/// Gradients of a dense layer before a batch norm, number by number, where planes could not hold
/// the factors: rare, so out of the way.
namespace tessera::ops {

/// The gradient of y at one place, straight from memory.
__device__ inline float plain_gradient(const NormedLaunch& launch, std::int64_t row,
                                       std::int64_t col) {
  float gradient = 0;
  if (launch.gradient.data != nullptr) {
    gradient = launch.gradient.data[row * launch.gradient.stride + col];
  } else {
    for (int k = 0; k < launch.inner; ++k) {
      gradient = fmaf(launch.left.data[row * launch.left.stride + k],
                      launch.right.data[k * launch.right.stride + col], gradient);
    }
  }
  return launch.columns[col].value(launch.y.data[row * launch.y.stride + col], gradient,
                                   launch.relu);
}

/// What a lane has of a tile's grad_x that is not finite.
static __device__ __noinline__ void find_plain_x(const NormedLaunch& launch, std::int64_t first,
                                                 float* products) {
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t row = first + thread / 32 % 4 * 16 + thread % 32 / 4;
  for (int i = 0; i < 32; ++i) {
    const std::int64_t at_row = row + i / 2 % 2 * 8;
    const int col = i / 4 * 8 + thread % 4 * 2 + i % 2;
    if (isfinite(products[i]) || at_row >= launch.rows || col >= launch.in) continue;
    float sum = 0;
    for (std::int64_t k = 0; k < launch.out; ++k) {
      sum = fmaf(plain_gradient(launch, at_row, k),
                 launch.weight.data[k * launch.weight.stride + col], sum);
    }
    products[i] = sum;
  }
}

/// One number of a block's share of grad_weight.
template <int tile_rows>
__device__ __noinline__ float plain_of_weight(const NormedLaunch& launch, std::int64_t row,
                                              std::int64_t col) {
  float sum = 0;
  const std::int64_t step = std::int64_t{gridDim.x} * tile_rows;
  for (std::int64_t first = std::int64_t{blockIdx.x} * tile_rows; first < launch.rows;
       first += step) {
    const std::int64_t end = min(launch.rows, first + tile_rows);
    for (std::int64_t i = first; i < end; ++i) {
      float x = launch.x.data[i * launch.x.stride + col];
      if (launch.x_columns.numbers != nullptr) {
        x = launch.x_columns.value(x, launch.x_columns.numbers[col]);
      }
      sum = fmaf(plain_gradient(launch, i, row), x, sum);
    }
  }
  return sum;
}

}  // namespace tessera::ops

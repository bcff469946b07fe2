// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/elements.cuh"
#include "ops/cuda/operands.cuh"
#include "tessera/ops/gradient_factors.hpp"

/// Where kernels find a gradient.
namespace tessera::ops {

template <class T>
struct MatrixGradient {
  cuda::Rows<const T> matrix;

  cuda::Extent extend(const cuda::Extent& extent) const {
    return cuda::Extent(extent).with(matrix);
  }

  template <int width, bool aligned>
  __device__ void load(const cuda::Elements<width, aligned>& place, float (&values)[width]) const {
    place.load(matrix, values);
  }
};

/// A product of two matrices with a very small inner size; rows do not go on in the next one.
template <class T>
struct ProductGradient {
  cuda::Rows<const T> left, right;
  int inner;

  explicit ProductGradient(const GradientFactors& factors)
      : left(rows_of<T>(factors.left)),
        right(rows_of<T>(factors.right)),
        inner(static_cast<int>(factors.left.cols)) {}

  cuda::Extent extend(const cuda::Extent& extent) const { return cuda::Extent(extent).with(right); }

  template <int width, bool aligned>
  __device__ void load(const cuda::Elements<width, aligned>& place, float (&values)[width]) const {
    static_assert(aligned || width == 1);
#pragma unroll
    for (int i = 0; i < width; ++i) values[i] = 0;
    for (int k = 0; k < inner; ++k) {
      float of_right[width];
      const float of_left = cuda::widen(left.data[place.row * left.stride + k]);
      place.load_columns(right.data + k * right.stride, of_right);
#pragma unroll
      for (int i = 0; i < width; ++i) values[i] = fmaf(of_left, of_right[i], values[i]);
    }
  }
};

}  // namespace tessera::ops

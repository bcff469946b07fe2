// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/sums.cuh"
#include "ops/cuda/operands.cuh"
#include "tessera/ops/gradient_factors.hpp"

/// Where kernels find a gradient: what they read of a row ahead, and the gradient that follows from
/// it.
namespace tessera::ops {

template <class T>
struct MatrixGradient {
  cuda::Rows<const T> matrix;

  template <int width>
  using Fetched = cuda::Pack<T, width>;

  cuda::Extent extend(const cuda::Extent& extent) const {
    return cuda::Extent(extent).with(matrix);
  }

  template <int width, bool aligned>
  __device__ Fetched<width> fetch(const cuda::Elements<width, aligned>& place) const {
    return cuda::fetch_pack(place, matrix);
  }
  template <int width, bool aligned>
  __device__ void find(const cuda::Elements<width, aligned>&, const Fetched<width>& fetched,
                       float (&values)[width]) const {
#pragma unroll
    for (int i = 0; i < width; ++i) values[i] = cuda::widen(fetched.values[i]);
  }
  template <int width, bool aligned>
  __device__ void load(const cuda::Elements<width, aligned>& place, float (&values)[width]) const {
    place.load(matrix, values);
  }
};

/// A product of two matrices with a very small inner size, at most `most_inner`; rows do not go on
/// in the next one.
template <class T>
struct ProductGradient {
  static constexpr int most_inner = 4;
  cuda::Rows<const T> left, right;
  int inner;

  template <int width>
  struct Fetched {
    T left[most_inner];
  };

  explicit ProductGradient(const GradientFactors& factors)
      : left(rows_of<T>(factors.left)),
        right(rows_of<T>(factors.right)),
        inner(static_cast<int>(factors.left.cols)) {}

  cuda::Extent extend(const cuda::Extent& extent) const { return cuda::Extent(extent).with(right); }

  template <int width, bool aligned>
  __device__ Fetched<width> fetch(const cuda::Elements<width, aligned>& place) const {
    Fetched<width> fetched;
#pragma unroll
    for (int k = 0; k < most_inner; ++k) {
      fetched.left[k] = k < inner ? left.data[place.row * left.stride + k] : T{};
    }
    return fetched;
  }
  /// The right factor is small and lies in the nearest cache.
  template <int width, bool aligned>
  __device__ void find(const cuda::Elements<width, aligned>& place, const Fetched<width>& fetched,
                       float (&values)[width]) const {
    static_assert(aligned || width == 1);
#pragma unroll
    for (int i = 0; i < width; ++i) values[i] = 0;
#pragma unroll
    for (int k = 0; k < most_inner; ++k) {
      if (k >= inner) break;
      float of_right[width];
      place.load_columns(right.data + k * right.stride, of_right);
#pragma unroll
      for (int i = 0; i < width; ++i)
        values[i] = fmaf(cuda::widen(fetched.left[k]), of_right[i], values[i]);
    }
  }
  template <int width, bool aligned>
  __device__ void load(const cuda::Elements<width, aligned>& place, float (&values)[width]) const {
    find(place, fetch(place), values);
  }
};

}  // namespace tessera::ops

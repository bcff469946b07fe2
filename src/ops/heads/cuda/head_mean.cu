// SPDX-License-Identifier: Apache-2.0
#include "cuda/precision.cuh"
#include "ops/cuda/operands.cuh"
#include "ops/dense/cuda/dense_ops.hpp"

namespace tessera::ops {
namespace {

/// Goes over the elements of Y; chunks stay within a row.
template <class T>
struct HeadMean {
  cuda::Rows<const T> x;
  cuda::Rows<T> y;
  std::int64_t heads;

  template <int width, bool aligned>
  __device__ void operator()(const cuda::Elements<width, aligned>& place) const {
    float sums[width] = {};
    cuda::Elements<width, aligned> of_head = place;
    for (std::int64_t head = 0; head < heads; ++head, of_head.col += place.cols) {
      float values[width];
      of_head.load(x, values);
#pragma unroll
      for (int i = 0; i < width; ++i) sums[i] += values[i];
    }
#pragma unroll
    for (int i = 0; i < width; ++i) sums[i] /= static_cast<float>(heads);
    place.store(sums, y);
  }
};

/// Goes over the elements of dX; chunks stay within a head.
template <class T>
struct HeadMeanBackward {
  cuda::Rows<const T> grad_y;
  cuda::Rows<T> grad_x;
  std::int64_t head_width;
  std::int64_t heads;

  template <int width, bool aligned>
  __device__ void operator()(const cuda::Elements<width, aligned>& place) const {
    cuda::Elements<width, aligned> of_mean = place;
    of_mean.col = place.col % head_width;
    float values[width];
    of_mean.load(grad_y, values);
#pragma unroll
    for (int i = 0; i < width; ++i) values[i] /= static_cast<float>(heads);
    place.store(values, grad_x);
  }
};

}  // namespace

void CudaDenseRun::run(const HeadMeanCall& call) const {
  const auto& [x, y] = call;
  if (y.cols == 0) return;
  cuda::visit_type(x.type, [&]<class T>(T) {
    constexpr int width = cuda::chunk<T>;
    const HeadMean<T> function{rows_of<T>(x), rows_of<T>(y), x.cols / y.cols};
    auto extent = cuda::Extent{y.rows, y.cols}.with(function.x).with(function.y);
    extent.aligned = extent.aligned && y.cols % width == 0;
    cuda::for_elements<width, 1>(extent, function, stream);
  });
}

void CudaDenseRun::run(const HeadMeanGradCall& call) const {
  const auto& [grad_y, grad_x] = call;
  if (grad_y.cols == 0) return;
  cuda::visit_type(grad_y.type, [&]<class T>(T) {
    constexpr int width = cuda::chunk<T>;
    const HeadMeanBackward<T> function{rows_of<T>(grad_y), rows_of<T>(grad_x), grad_y.cols,
                                       grad_x.cols / grad_y.cols};
    auto extent =
        cuda::Extent{grad_x.rows, grad_x.cols}.with(function.grad_y).with(function.grad_x);
    extent.aligned = extent.aligned && grad_y.cols % width == 0;
    cuda::for_elements<width, 1>(extent, function, stream);
  });
}

}  // namespace tessera::ops

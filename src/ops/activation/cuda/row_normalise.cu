// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_handles.hpp"
#include "cuda/dot.cuh"
#include "cuda/precision.cuh"
#include "cuda/row_teams.cuh"
#include "ops/cuda/dense_ops.hpp"
#include "ops/cuda/operands.cuh"

namespace tessera::ops {
namespace {

/// a . b over a row.
template <int width, bool aligned, class T>
__device__ double dot(const cuda::RowTeam<width, aligned>& team, cuda::Rows<const T> a,
                      cuda::Rows<const T> b) {
  double sum = 0;
  team.each([&](const cuda::Elements<width, aligned>& place) {
    float left[width], right[width];
    place.load(a, left);
    place.load(b, right);
    cuda::add_dot(sum, left, right);
  });
  return team.sum(sum);
}

template <class T>
struct Normalise {
  cuda::Rows<const T> x;
  cuda::Rows<T> y;
  double epsilon;

  template <int width, bool aligned>
  __device__ void operator()(const cuda::RowTeam<width, aligned>& team, bool) const {
    const double length = sqrt(dot(team, x, x));
    const double factor = 1 / (length < epsilon ? epsilon : length);
    team.each([&](const cuda::Elements<width, aligned>& place) {
      float values[width];
      place.load(x, values);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        values[i] = static_cast<float>(static_cast<double>(values[i]) * factor);
      }
      place.store(values, y);
    });
  }
};

template <class T>
struct NormaliseBackward {
  cuda::Rows<const T> x;
  cuda::Rows<const T> grad_y;
  cuda::Rows<T> grad_x;
  double epsilon;

  template <int width, bool aligned>
  __device__ void operator()(const cuda::RowTeam<width, aligned>& team, bool) const {
    const double length = sqrt(dot(team, x, x));
    const double product = dot(team, grad_y, x);
    const bool is_short = length < epsilon;
    const double factor = 1 / (is_short ? epsilon : length);
    // Part of the gradient along the row; it cannot change a row of fixed length.
    const double along = is_short ? 0 : product * factor * factor;
    team.each([&](const cuda::Elements<width, aligned>& place) {
      float values[width], gradients[width];
      place.load(x, values);
      place.load(grad_y, gradients);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        const double across =
            static_cast<double>(gradients[i]) - along * static_cast<double>(values[i]);
        gradients[i] = static_cast<float>(across * factor);
      }
      place.store(gradients, grad_x);
    });
  }
};

}  // namespace

void CudaDenseOps::row_normalise(ConstOperand x, Operand y, double epsilon, Stream stream) const {
  const cuda_backend::CurrentDevice current(device_.index);
  cuda::visit_type(x.type, [&](auto element) {
    using T = decltype(element);
    const Normalise<T> function{rows_of<T>(x), rows_of<T>(y), epsilon};
    const auto extent = cuda::Extent{x.rows, x.cols}.with(function.x).with(function.y);
    cuda::for_rows<cuda::chunk<T>>(extent, 1, function, stream);
  });
}

void CudaDenseOps::row_normalise_backward(ConstOperand x, ConstOperand grad_y, Operand grad_x,
                                          double epsilon, Stream stream) const {
  const cuda_backend::CurrentDevice current(device_.index);
  cuda::visit_type(x.type, [&](auto element) {
    using T = decltype(element);
    const NormaliseBackward<T> function{rows_of<T>(x), rows_of<T>(grad_y), rows_of<T>(grad_x),
                                        epsilon};
    const auto extent =
        cuda::Extent{x.rows, x.cols}.with(function.x).with(function.grad_y).with(function.grad_x);
    cuda::for_rows<cuda::chunk<T>>(extent, 1, function, stream);
  });
}

}  // namespace tessera::ops

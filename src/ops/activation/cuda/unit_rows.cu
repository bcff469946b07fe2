// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_handles.hpp"
#include "cuda/precision.cuh"
#include "cuda/row_teams.cuh"
#include "ops/cuda/dense_ops.hpp"
#include "ops/cuda/operands.cuh"

namespace tessera::ops {
namespace {

template <class T>
struct UnitRows {
  cuda::Rows<const T> x;
  cuda::Rows<T> unit, scaled;
  const T* learned;
  double epsilon;

  template <int width, bool aligned>
  __device__ void operator()(const cuda::RowTeam<width, aligned>& team, bool) const {
    const float sharpness = cuda::widen(*learned);
    // In double, so that squares neither overflow nor vanish.
    double squares = 0;
    team.each([&](const cuda::Elements<width, aligned>& place) {
      float values[width];
      place.load(x, values);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
      }
    });
    const double length = sqrt(team.sum(squares));
    const double factor = 1 / (length < epsilon ? epsilon : length);
    team.each([&](const cuda::Elements<width, aligned>& place) {
      float values[width];
      place.load(x, values);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        values[i] = static_cast<float>(static_cast<double>(values[i]) * factor);
      }
      place.store(values, unit);
      // What is scaled is what the other side sees: rounded as it is stored.
#pragma unroll
      for (int i = 0; i < width; ++i) {
        values[i] = sharpness * cuda::widen(cuda::narrow<T>(values[i]));
      }
      place.store(values, scaled);
    });
  }
};

template <class T>
struct UnitRowsBackward {
  cuda::Rows<const T> x, grad_unit, grad_scaled;
  cuda::Rows<T> grad_x;
  const T* learned;
  double epsilon;

  template <int width, bool aligned>
  __device__ void operator()(const cuda::RowTeam<width, aligned>& team, bool) const {
    const float sharpness = cuda::widen(*learned);
    const auto load_gradient = [&](const cuda::Elements<width, aligned>& place,
                                   float(&gradients)[width]) {
      float of_scaled[width];
      place.load(grad_unit, gradients);
      place.load(grad_scaled, of_scaled);
#pragma unroll
      for (int i = 0; i < width; ++i) gradients[i] += sharpness * of_scaled[i];
    };
    double squares = 0, product = 0;
    team.each([&](const cuda::Elements<width, aligned>& place) {
      float values[width], gradients[width];
      place.load(x, values);
      load_gradient(place, gradients);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
        product += static_cast<double>(gradients[i]) * static_cast<double>(values[i]);
      }
    });
    const double length = sqrt(team.sum(squares));
    product = team.sum(product);
    const bool is_short = length < epsilon;
    const double factor = 1 / (is_short ? epsilon : length);
    // Part of the gradient along the row; it cannot change a row of fixed length.
    const double along = is_short ? 0 : product * factor * factor;
    team.each([&](const cuda::Elements<width, aligned>& place) {
      float values[width], gradients[width], sums[width];
      place.load(x, values);
      load_gradient(place, gradients);
      place.load(cuda::Rows<const T>{grad_x.data, grad_x.stride}, sums);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        const double across =
            static_cast<double>(gradients[i]) - along * static_cast<double>(values[i]);
        sums[i] += static_cast<float>(across * factor);
      }
      place.store(sums, grad_x);
    });
  }
};

}  // namespace

void CudaDenseOps::unit_rows(ConstOperand x, ConstOperand factor, Operand unit, Operand scaled,
                             double epsilon, Stream stream) const {
  const cuda_backend::CurrentDevice current(device_.index);
  cuda::visit_type(x.type, [&](auto element) {
    using T = decltype(element);
    const UnitRows<T> function{rows_of<T>(x), rows_of<T>(unit), rows_of<T>(scaled),
                               values_of<T>(factor), epsilon};
    const auto extent =
        cuda::Extent{x.rows, x.cols}.with(function.x).with(function.unit).with(function.scaled);
    cuda::for_rows<cuda::chunk<T>>(extent, 1, function, stream);
  });
}

void CudaDenseOps::unit_rows_backward(ConstOperand x, ConstOperand factor, Operand grad_unit,
                                      Operand grad_scaled, Operand grad_x, double epsilon,
                                      Stream stream) const {
  const cuda_backend::CurrentDevice current(device_.index);
  cuda::visit_type(x.type, [&](auto element) {
    using T = decltype(element);
    const UnitRowsBackward<T> function{rows_of<T>(x),
                                       rows_of<T>(ConstOperand(grad_unit)),
                                       rows_of<T>(ConstOperand(grad_scaled)),
                                       rows_of<T>(grad_x),
                                       values_of<T>(factor),
                                       epsilon};
    const auto extent = cuda::Extent{x.rows, x.cols}
                            .with(function.x)
                            .with(function.grad_unit)
                            .with(function.grad_scaled)
                            .with(function.grad_x);
    cuda::for_rows<cuda::chunk<T>>(extent, 1, function, stream);
  });
}

}  // namespace tessera::ops

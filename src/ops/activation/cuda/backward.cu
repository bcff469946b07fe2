// SPDX-License-Identifier: Apache-2.0
#include "cuda/elements.cuh"
#include "cuda/precision.cuh"
#include "cuda/sums.cuh"
#include "ops/cuda/gradient_source.cuh"
#include "ops/cuda/operands.cuh"
#include "ops/dense/cuda/activation_formula.cuh"
#include "ops/dense/cuda/dense_ops.hpp"
#include "ops/dense/dense_workspace.hpp"

namespace tessera::ops {
namespace {

/// dX of one place; with a gradient of the bias also its sum over the rows.
template <class T, class Gradient>
struct ActivateBackward {
  cuda::Rows<const T> x;
  const T* bias;  ///< null: none
  Gradient grad_y;
  cuda::Rows<T> grad_x;  ///< may be absent
  T* grad_bias;
  DeviceFormula formula;

  static constexpr int num_sums = 1;
  static constexpr int rows_ahead = 2;
  using Term = float;

  template <int width>
  struct Shifts {
    float values[width];
  };
  template <int width>
  struct Fetched {
    float gradients[width], values[width];
  };

  template <int width, bool aligned>
  __device__ void operator()(const cuda::Elements<width, aligned>& place) const {
    float gradients[1][width];
    const auto shifts = columns(place);
    row(place, shifts, fetch(place, shifts), gradients);
  }

  template <int width, bool aligned>
  __device__ Shifts<width> columns(const cuda::Elements<width, aligned>& place) const {
    Shifts<width> shifts{};
    if (bias != nullptr) place.load_columns(bias, shifts.values);
    return shifts;
  }

  template <int width, bool aligned>
  __device__ Fetched<width> fetch(const cuda::Elements<width, aligned>& place,
                                  const Shifts<width>&) const {
    Fetched<width> fetched;
    grad_y.load(place, fetched.gradients);
    if (formula.activation != Activation::none) place.load(x, fetched.values);
    return fetched;
  }

  template <int width, bool aligned>
  __device__ void row(const cuda::Elements<width, aligned>& place, const Shifts<width>& shifts,
                      const Fetched<width>& fetched, float (&gradients)[1][width]) const {
#pragma unroll
    for (int i = 0; i < width; ++i) gradients[0][i] = fetched.gradients[i];
    formula.drop(place.element(), gradients[0]);
    if (formula.activation != Activation::none) {
#pragma unroll
      for (int i = 0; i < width; ++i) {
        const float factor = formula.derivative(fetched.values[i] + shifts.values[i]);
        gradients[0][i] = factor == 0 ? 0.0f : gradients[0][i] * factor;  // also of infinities
      }
    }
    if (grad_x.data != nullptr) place.store(gradients[0], grad_x);
  }

  __device__ void finish(std::int64_t col, const double (&totals)[1]) const {
    grad_bias[col] = cuda::narrow<T>(static_cast<float>(totals[0]));
  }
};

}  // namespace

void CudaDenseRun::run(const ActivationGradCall& call) const {
  const ConstOperand &x = call.x, &bias = call.bias;
  const Operand &grad_x = call.grad_x, &grad_bias = call.grad_bias;
  const GradientFactors& factors = call.factors;
  cuda::visit_type(x.type, [&]<class T>(T) {
    const auto run = [&](const auto& gradient) {
      const ActivateBackward<T, std::decay_t<decltype(gradient)>> function{
          rows_of<T>(x),      values_of<T>(bias),      gradient,
          rows_of<T>(grad_x), values_of<T>(grad_bias), DeviceFormula(call.formula)};
      auto extent =
          gradient.extend(cuda::Extent{x.rows, x.cols}.with(function.x).with(function.grad_x));
      if (!grad_bias.absent()) {
        extent = extent.with(columns_of(function.bias));
        const DenseWorkspaceUse use(workspace, "the gradient of a bias", device, stream);
        const cuda::Workspace parts = cuda::workspace_in(use.data());
        if constexpr (std::is_same_v<std::decay_t<decltype(gradient)>, ProductGradient<T>>) {
          cuda::for_long_columns<cuda::columns_at_once>(extent, function, parts, stream);
        } else {
          cuda::for_columns<cuda::columns_at_once>(extent, function, parts, stream);
        }
      } else {
        const bool knows_columns = !bias.absent() || !factors.absent();
        extent = knows_columns ? extent.with(columns_of(function.bias)) : extent.flattened();
        constexpr int loose = std::is_same_v<std::decay_t<decltype(gradient)>, ProductGradient<T>>
                                  ? 1
                                  : cuda::chunk<T>;
        cuda::for_elements<cuda::chunk<T>, loose>(extent, function, stream);
      }
    };
    if (factors.absent()) {
      run(MatrixGradient<T>{rows_of<T>(call.grad_y)});
    } else {
      run(ProductGradient<T>(factors));
    }
  });
}

}  // namespace tessera::ops

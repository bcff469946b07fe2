// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_handles.hpp"
#include "cuda/precision.cuh"
#include "ops/activation/cuda/formula.cuh"
#include "ops/batch_norm/cuda/columns.cuh"
#include "ops/cuda/dense_ops.hpp"
#include "ops/cuda/operands.cuh"
#include "ops/dense_workspace.hpp"

namespace tessera::ops {
namespace {

/// Column statistics and what follows from them.
struct Statistics {
  const float* gamma;  ///< each of these may be null
  const float* beta;
  float* running_mean;
  float* running_variance;
  float* saved_mean;
  float* saved_inverse_deviation;
  double epsilon, momentum;
  std::int64_t rows;
  cuda::ColumnNumbers* columns;

  /// For the pass that follows: y = (x - a) * b + c. The mean is rounded to fp32; what it lost goes
  /// into c.
  __device__ void leave_numbers(std::int64_t col, double mean, double variance) const {
    const double inverse_deviation = 1 / sqrt(variance + epsilon);
    const auto rounded = static_cast<float>(mean);
    const auto factor =
        static_cast<float>((gamma == nullptr ? 1.0 : gamma[col]) * inverse_deviation);
    // An infinite mean loses nothing that could be told.
    const double lost = isfinite(mean) ? mean - static_cast<double>(rounded) : 0;
    const double shift = (beta == nullptr ? 0.0 : beta[col]) - lost * static_cast<double>(factor);
    columns[col] = {rounded, factor, static_cast<float>(shift), 0};
  }

  __device__ void update(std::int64_t col, double mean, double variance) const {
    const auto count = static_cast<double>(rows);
    const auto move = [&](float* running, double target) {
      if (running == nullptr) return;
      const auto value = static_cast<double>(running[col]);
      running[col] = static_cast<float>(value + momentum * (target - value));
    };
    if (rows > 0) move(running_mean, mean);
    if (rows > 1) move(running_variance, variance * count / (count - 1));
    if (saved_mean != nullptr) saved_mean[col] = static_cast<float>(mean);
    if (saved_inverse_deviation != nullptr) {
      saved_inverse_deviation[col] = static_cast<float>(1 / sqrt(variance + epsilon));
    }
  }
};

/// One pass for mean and variance: sums of distances from the first row and of their squares. In
/// double, and with a shift that lies among the values, the difference of the two keeps its digits.
template <class T>
struct BatchMoments {
  cuda::Rows<const T> x;
  Statistics statistics;

  static constexpr int num_sums = 2;
  using Term = double;

  template <int width, bool aligned>
  __device__ void row(const cuda::Elements<width, aligned>& place,
                      double (&terms)[2][width]) const {
    float values[width];
    place.load(x, values);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      if (i >= place.count) break;
      const double distance = static_cast<double>(values[i]) - shift(place.col + i);
      terms[0][i] = distance;
      terms[1][i] = distance * distance;
    }
  }

  __device__ void finish(std::int64_t col, const double (&totals)[2]) const {
    const auto count = static_cast<double>(statistics.rows > 0 ? statistics.rows : 1);
    const double distance = totals[0] / count;
    const double mean = statistics.rows > 0 ? shift(col) + distance : 0;
    const double square = totals[1] / count - distance * distance;
    // Rounding may take a variance of 0 below it; a not-a-number stays.
    const double variance = square < 0 ? 0 : square;
    statistics.update(col, mean, variance);
    statistics.leave_numbers(col, mean, variance);
  }

 private:
  __device__ double shift(std::int64_t col) const {
    const float first = statistics.rows > 0 ? cuda::widen(x.data[col]) : 0.0f;
    return isfinite(first) ? static_cast<double>(first) : 0;
  }
};

__global__ void running_columns(std::int64_t cols, const Statistics statistics) {
  cuda::begin_overlapped();
  const std::int64_t col = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (col >= cols) return;
  statistics.leave_numbers(col, statistics.running_mean[col], statistics.running_variance[col]);
}

template <class T>
struct Normalise {
  cuda::Rows<const T> x;
  cuda::Rows<T> y;
  const cuda::ColumnNumbers* columns;
  DeviceFormula formula;

  template <int width, bool aligned>
  __device__ void operator()(const cuda::Elements<width, aligned>& place) const {
    float values[width];
    place.load(x, values);
    place.each([&](int i, std::int64_t, std::int64_t col) {
      const cuda::ColumnNumbers column = columns[col];
      values[i] = formula.value((values[i] - column.a) * column.b + column.c);
    });
    formula.drop(place.element(), values);
    place.store(values, y);
  }
};

}  // namespace

void CudaDenseOps::batch_norm(const BatchNormCall& call, Stream stream,
                              const DenseWorkspace* workspace) const {
  const ConstOperand& x = call.x;
  if (x.cols == 0) return;
  require_columns(x.cols);
  const cuda_backend::CurrentDevice current(device_.index);
  const DenseWorkspaceUse use(workspace, "batch_norm", device_, stream);
  const cuda::Workspace parts = cuda::workspace_in(use.data());
  const Statistics statistics{values_of<float>(call.gamma),
                              values_of<float>(call.beta),
                              values_of<float>(call.state.running_mean),
                              values_of<float>(call.state.running_variance),
                              values_of<float>(call.saved_mean),
                              values_of<float>(call.saved_inverse_deviation),
                              call.options.epsilon,
                              call.options.momentum,
                              x.rows,
                              parts.columns};
  cuda::visit_type(x.type, [&](auto element) {
    using T = decltype(element);
    constexpr int width = cuda::chunk<T>;
    const auto from = rows_of<T>(x);
    const auto extent = cuda::Extent{x.rows, x.cols}.with(from);
    if (call.options.training) {
      cuda::for_columns<width>(extent, BatchMoments<T>{from, statistics}, parts, stream);
    } else {
      cuda::launch_overlapped(running_columns, dim3(cuda::num_blocks(x.cols, 256)), 256, stream,
                              x.cols, statistics);
    }
    const Normalise<T> normalise{from, rows_of<T>(call.y), parts.columns,
                                 DeviceFormula(call.formula)};
    cuda::for_elements<width>(cuda::Extent(extent).with(normalise.y), normalise, stream);
  });
}

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "ops/chain/cuda/sums.cuh"

/// Batch norm in a chain, and its gradient: a pass for sums, and one that takes what follows from
/// them.
namespace tessera::ops {

/// What rows lie around in the sums of a block: its first one, where that is finite.
template <class T>
__device__ double norm_shift(const NormStep<T>& step, const ChainShare& share, int col) {
  if (share.begin >= share.end || col >= step.cols) return 0;
  const float first = cuda::widen(step.x.data[share.begin * step.x.stride + col]);
  return isfinite(first) ? static_cast<double>(first) : 0;
}

/// Distances from the shifts, and their squares.
template <class T>
__device__ void add_moments(const NormStep<T>& step, const ChainShare& share, ChainTotals& totals) {
  const ChainRows<const T> x(step.x, step.cols);
  double shifts[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) shifts[i] = norm_shift(step, share, share.first_col + i);
  const auto fetch = [&](int row) { return x.load(row, share.first_col); };
  share.each_row(fetch, [&](int, const FourOfRow& x_of_row) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const double distance = static_cast<double>(x_of_row.values[i]) - shifts[i];
      totals.values[i] += distance;
      totals.values[4 + i] += distance * distance;
    }
  });
}

/// Makes sums and squares of distances from the block's own mean of them, which do not depend on
/// shifts.
template <class T>
__device__ void leave_shifts(const NormStep<T>& step, const ChainShare& share, ChainSums& sums) {
  const int col = static_cast<int>(threadIdx.x);
  if (col < chain_width) {
    const auto count = static_cast<double>(share.end > share.begin ? share.end - share.begin : 0);
    const double distance = sums.own[col], squares = sums.own[chain_width + col];
    sums.own[col] = distance + count * norm_shift(step, share, col);
    sums.own[chain_width + col] = count > 0 ? squares - distance * distance / count : 0;
  }
  __syncthreads();
}

/// Finds the numbers of the columns by the sums of all blocks, or by what ran along before; `known`
/// is of the column of this thread.
template <class T>
__device__ void find_norm(const NormStep<T>& step, int rows,
                          const typename Statistics<T>::Column& known, const ChainSums& sums,
                          cuda::ColumnNumbers* numbers) {
  const int col = static_cast<int>(threadIdx.x);
  if (col < step.cols) {
    if (step.training) {
      const auto count = static_cast<double>(rows);
      const double mean = sums.all[0][col] / count;
      const double found = (sums.all[0][chain_width + col] + sums.all[1][col]) / count;
      // Rounding may take a variance of 0 below it; a not-a-number stays.
      const double variance = found < 0 ? 0 : found;
      numbers[col] = step.statistics.numbers(known, mean, variance);
      if (blockIdx.x == 0) step.statistics.update(col, known, mean, variance);
    } else {
      numbers[col] = step.statistics.running_numbers(col);
    }
  }
  __syncthreads();
}

template <class T>
__device__ void normalise_rows(const NormStep<T>& step, const ChainShare& share,
                               const cuda::ColumnNumbers* numbers) {
  const ChainRows<const T> x(step.x, step.cols);
  const ChainRows<T> y(step.y, step.cols);
  const auto fetch = [&](int row) { return x.load(row, share.first_col); };
  share.each_row(fetch, [&](int row, FourOfRow& of_row) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const cuda::ColumnNumbers column = numbers[share.first_col + i];
      const float z = (of_row.values[i] - column.a) * column.b + column.c;
      of_row.values[i] = step.relu && z <= 0 ? 0.0f : z;
    }
    y.store(of_row.values, row, share.first_col);
  });
}

/// The mean, the inverse deviation, the factor and what is added, of every column.
template <class T>
__device__ void read_norm(const NormGradStep<T>& step, cuda::ColumnNumbers* numbers) {
  const int col = static_cast<int>(threadIdx.x);
  if (col < chain_width) {
    numbers[col] =
        col >= step.cols
            ? cuda::ColumnNumbers{}
            : cuda::ColumnNumbers{__ldcg(step.mean + col), __ldcg(step.inverse_deviation + col),
                                  step.gamma == nullptr ? 1.0f : step.gamma[col],
                                  step.beta == nullptr ? 0.0f : step.beta[col]};
  }
  __syncthreads();
}

/// Calls `work(row, normalised, gradients)`: normalised x and the gradient before the activation.
template <class T, class Work>
__device__ void each_norm_gradient(const NormGradStep<T>& step, const ChainShare& share,
                                   const cuda::ColumnNumbers* numbers, Work&& work) {
  const ChainRows<const T> x(step.x, step.cols), grad_y(step.grad_y, step.cols);
  struct Fetched {
    float normalised[4], gradients[4];
  };
  const auto fetch = [&](int row) {
    Fetched fetched;
    x.load(row, share.first_col, fetched.normalised);
    grad_y.load(row, share.first_col, fetched.gradients);
    return fetched;
  };
  share.each_row(fetch, [&](int row, Fetched& of_row) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const cuda::ColumnNumbers column = numbers[share.first_col + i];
      float& normalised = of_row.normalised[i];
      normalised = (normalised - column.a) * column.b;
      if (step.relu && normalised * column.c + column.d <= 0) of_row.gradients[i] *= 0.0f;
    }
    work(row, of_row.normalised, of_row.gradients);
  });
}

template <class T>
__device__ void add_norm_gradients(const NormGradStep<T>& step, const ChainShare& share,
                                   cuda::ColumnNumbers* numbers, ChainTotals& totals) {
  read_norm(step, numbers);
  each_norm_gradient(step, share, numbers,
                     [&](int, float(&normalised)[4], const float(&gradients)[4]) {
#pragma unroll
                       for (int i = 0; i < 4; ++i) normalised[i] *= gradients[i];
                       totals.add(0, gradients);
                       totals.add(1, normalised);
                     });
}

/// Takes the means over all rows from the sums of all blocks.
template <class T>
__device__ void write_norm_gradients(const NormGradStep<T>& step, const ChainShare& share, int rows,
                                     ChainSums& sums, const cuda::ColumnNumbers* numbers) {
  const int thread = static_cast<int>(threadIdx.x);
  double(&means)[chain_sums] = sums.own;
  if (thread < chain_sums) means[thread] = sums.all[0][thread] / static_cast<double>(rows);
  __syncthreads();
  if (blockIdx.x == 0 && thread < step.cols) {
    const double gradient = sums.all[0][thread], weighted = sums.all[0][chain_width + thread];
    if (step.grad_beta != nullptr) step.grad_beta[thread] = static_cast<float>(gradient);
    if (step.grad_gamma != nullptr) step.grad_gamma[thread] = static_cast<float>(weighted);
    // What is added to a whole column is taken away with the mean. The factors tell whether
    // something was not finite.
    if (step.grad_shift != nullptr) {
      step.grad_shift[thread] = cuda::narrow<T>(fabsf(
          0.0f * static_cast<float>(gradient + weighted) * numbers[thread].b * numbers[thread].c));
    }
  }
  const ChainRows<T> grad_x(step.grad_x, step.cols);
  each_norm_gradient(
      step, share, numbers, [&](int row, const float(&normalised)[4], float(&gradients)[4]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int col = share.first_col + i;
          const auto mean = static_cast<float>(means[col]);
          const auto weighted = static_cast<float>(means[chain_width + col]);
          gradients[i] =
              numbers[col].c * numbers[col].b * (gradients[i] - mean - normalised[i] * weighted);
        }
        grad_x.store(gradients, row, share.first_col);
      });
}

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/chain/cuda/sums.cuh"

/// Batch norm in a chain, and its gradient: a pass for sums, and one that takes what follows from
/// them.
namespace tessera::ops {

/// What the steps of a chain know of columns.
template <class T>
struct ChainColumns {
  /// Of batch norm by step: read before the first step, and so before a block changes it.
  typename Statistics<T>::Column known[most_chain_steps][chain_width];
  /// Mean, inverse deviation, factor and what is added, by step: a batch norm finds the first two,
  /// its gradient reads the others, and all where its batch norm was in an earlier launch.
  cuda::ColumnNumbers normed[most_chain_steps][chain_width];
  cuda::ColumnNumbers numbers[chain_width];  ///< of the step that runs
};

static_assert(chain_threads == most_chain_steps * chain_width);

template <class T>
__device__ void fetch_columns(const ChainLaunch<T>& launch, ChainColumns<T>& columns) {
  const int number = static_cast<int>(threadIdx.x) / chain_width;
  const int col = static_cast<int>(threadIdx.x) % chain_width;
  if (number >= launch.count) return;
  const ChainStep<T>& step = launch.steps[number];
  if (step.kind == ChainKind::norm) {
    if (col < launch.matrix[step.norm.x].cols) {
      columns.known[number][col] = step.norm.statistics.column(col);
    }
  } else if (step.kind == ChainKind::norm_gradient) {
    const NormGradStep<T>& of = step.norm_gradient;
    cuda::ColumnNumbers column{};
    if (col < launch.matrix[of.x].cols) {
      column.c = of.gamma == nullptr ? 1.0f : of.gamma[col];
      column.d = of.beta == nullptr ? 0.0f : of.beta[col];
      if (of.norm == number) {
        column.a = of.mean[col];
        column.b = of.inverse_deviation[col];
      }
    }
    columns.normed[number][col] = column;
  }
}

/// What the rows of a block lie around: its first one, where that is finite. Squares of numbers far
/// from 0 would cost the digits of their variance.
template <class T>
__device__ double norm_shift(const ChainRows<T>& x, const ChainBlock<T>& block, int col) {
  if (block.rows() == 0) return 0;
  const float first = x.value(0, col);
  return isfinite(first) ? static_cast<double>(first) : 0;
}

/// 1 / count, without what a division in double costs.
__device__ inline double reciprocal(int count) {
  auto found = static_cast<double>(1.0f / static_cast<float>(count));
#pragma unroll
  for (int i = 0; i < 2; ++i) found = fma(found, fma(-static_cast<double>(count), found, 1), found);
  return found;
}

/// Distances from the shifts, and their squares.
template <class T>
__device__ void add_moments(const NormStep<T>& step, const ChainBlock<T>& block,
                            ChainTotals& totals) {
  const ChainRows<T> x = block.matrix(step.x);
  double shifts[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) shifts[i] = norm_shift(x, block, block.first_col() + i);
  block.each_row([&](int row) {
    const FourOfRow four = x.load(row, block.first_col());
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const double distance = static_cast<double>(four.values[i]) - shifts[i];
      totals.values[i] += distance;
      totals.values[4 + i] = fma(distance, distance, totals.values[4 + i]);
    }
  });
}

/// What a block tells of its sums of distances and squares: the mean of its rows, and squares of
/// distances from that.
template <class T>
__device__ double2 moments_of_block(const NormStep<T>& step, const ChainBlock<T>& block,
                                    double2 sums) {
  const double mean = sums.x * reciprocal(max(1, block.rows()));
  const int col = static_cast<int>(threadIdx.x) % chain_width;
  return {norm_shift(block.matrix(step.x), block, col) + mean, fma(-mean, sums.x, sums.y)};
}

/// Adds up the shares of all blocks; `all` is in shared memory, those of the first kind come first.
/// Of a batch norm it gets means and variances: the means of blocks lie around that of the first
/// one, by which the sums of their distances and squares keep their digits.
template <class T, class Team>
__device__ void add_in_team(const ChainLaunch<T>& launch, const ChainStep<T>& step,
                            const ChainBlock<T>& block, Team& team, ChainShares (&shares)[2],
                            double (&all)[chain_sums]) {
  const bool of_norm = step.kind == ChainKind::norm;
  const int col = static_cast<int>(threadIdx.x) % chain_width;
  const double2 own = both_sums(shares[0].total());
  team.exchange(of_norm ? moments_of_block(step.norm, block, own) : own);
  // Asked for whether needed or not, so that it comes with all others.
  const double first = team.told(0, col).x;
  const double shift = isfinite(first) ? first : 0;
  double total = add_over_blocks(
      team,
      [&](int of, double2 told) -> double2 {
        if (!of_norm) return told;
        const double distance = told.x - shift;
        const double distances = block.rows_of(of) * distance;
        return {distances, fma(distances, distance, told.y)};
      },
      shares[1]);
  if (of_norm) {
    const double2 sums = both_sums(total);
    const double mean = sums.x * launch.share_of_row;
    total = is_first_sum() ? shift + mean : fma(-mean, sums.x, sums.y) * launch.share_of_row;
  }
  if (threadIdx.x < chain_sums) all[threadIdx.x] = total;
  __syncthreads();
}

/// Finds the numbers of the columns by means and variances, or by what ran along before. The second
/// warp writes what is kept of them meanwhile.
template <class T>
__device__ void find_norm(const NormStep<T>& step, int number, int cols,
                          const double (&moments)[chain_sums], ChainColumns<T>& columns) {
  const int col = static_cast<int>(threadIdx.x) % 32;
  const auto warp = threadIdx.x / 32;
  if (col < cols) {
    const auto& known = columns.known[number][col];
    double mean = known.running_mean - known.added, variance = known.running_variance;
    if (step.training) {
      mean = moments[col];
      // Rounding may take a variance of 0 below it; a not-a-number stays.
      const double found = moments[chain_width + col];
      variance = found < 0 ? 0 : found;
    }
    if (warp == 0) {
      const Statistics<T>& statistics = step.statistics;
      columns.numbers[col] = statistics.numbers(known, mean, variance);
      columns.normed[number][col] = {static_cast<float>(mean),
                                     static_cast<float>(statistics.inverse_deviation(variance)), 0,
                                     0};
    } else if (warp == 1 && blockIdx.x == 0 && step.training) {
      step.statistics.update(col, known, mean, variance);
    }
  } else if (warp == 0 && col < chain_width) {
    columns.numbers[col] = {};
  }
  __syncthreads();
}

template <class T>
__device__ void normalise_rows(const NormStep<T>& step, const ChainBlock<T>& block,
                               const cuda::ColumnNumbers* numbers) {
  const ChainRows<T> x = block.matrix(step.x), y = block.matrix(step.y);
  const int first_col = block.first_col();
  block.each_row([&](int row) {
    FourOfRow four = x.load(row, first_col);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const cuda::ColumnNumbers column = numbers[first_col + i];
      const float z = (four.values[i] - column.a) * column.b + column.c;
      four.values[i] = step.relu && z <= 0 ? 0.0f : z;
    }
    y.store(four.values, row, first_col);
  });
}

/// Calls `work(row, normalised, gradients)`: normalised x and the gradient before the activation.
template <class T, class Work>
__device__ void each_norm_gradient(const NormGradStep<T>& step, const ChainBlock<T>& block,
                                   const cuda::ColumnNumbers* numbers, Work&& work) {
  const ChainRows<T> x = block.matrix(step.x), grad_y = block.matrix(step.grad_y);
  const int first_col = block.first_col();
  block.each_row([&](int row) {
    FourOfRow normalised = x.load(row, first_col), gradients = grad_y.load(row, first_col);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const cuda::ColumnNumbers column = numbers[first_col + i];
      normalised.values[i] = (normalised.values[i] - column.a) * column.b;
      if (step.relu && normalised.values[i] * column.c + column.d <= 0) {
        gradients.values[i] *= 0.0f;
      }
    }
    work(row, normalised.values, gradients.values);
  });
}

template <class T>
__device__ void add_norm_gradients(const NormGradStep<T>& step, int number,
                                   const ChainBlock<T>& block, ChainColumns<T>& columns,
                                   ChainTotals& totals) {
  const int col = static_cast<int>(threadIdx.x);
  if (col < chain_width) {
    const cuda::ColumnNumbers found = columns.normed[step.norm][col];
    const cuda::ColumnNumbers own = columns.normed[number][col];
    const bool is_there = col < block.cols(step.x);
    columns.numbers[col] =
        is_there ? cuda::ColumnNumbers{found.a, found.b, own.c, own.d} : cuda::ColumnNumbers{};
  }
  __syncthreads();
  float sums[8] = {};
  each_norm_gradient(step, block, columns.numbers,
                     [&](int, const float(&normalised)[4], const float(&gradients)[4]) {
#pragma unroll
                       for (int i = 0; i < 4; ++i) {
                         sums[i] += gradients[i];
                         sums[4 + i] = fmaf(normalised[i], gradients[i], sums[4 + i]);
                       }
                     });
#pragma unroll
  for (int i = 0; i < 8; ++i) totals.values[i] = static_cast<double>(sums[i]);
}

/// Takes the means over all rows, of which each has such a share, from the sums of all blocks.
template <class T>
__device__ void write_norm_gradients(const NormGradStep<T>& step, const ChainBlock<T>& block,
                                     double share, const double (&sums)[chain_sums],
                                     const cuda::ColumnNumbers* numbers) {
  const int thread = static_cast<int>(threadIdx.x), first_col = block.first_col();
  if (blockIdx.x == 0 && thread < block.cols(step.x)) {
    const double gradient = sums[thread], weighted = sums[chain_width + thread];
    if (step.grad_beta != nullptr) step.grad_beta[thread] = static_cast<float>(gradient);
    if (step.grad_gamma != nullptr) step.grad_gamma[thread] = static_cast<float>(weighted);
    // What is added to a whole column is taken away with the mean. The factors tell whether
    // something was not finite.
    if (step.grad_shift != nullptr) {
      step.grad_shift[thread] = cuda::narrow<T>(fabsf(
          0.0f * static_cast<float>(gradient + weighted) * numbers[thread].b * numbers[thread].c));
    }
  }
  float means[4], weighted[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    means[i] = static_cast<float>(sums[first_col + i] * share);
    weighted[i] = static_cast<float>(sums[chain_width + first_col + i] * share);
  }
  const ChainRows<T> grad_x = block.matrix(step.grad_x);
  each_norm_gradient(
      step, block, numbers, [&](int row, const float(&normalised)[4], float(&gradients)[4]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const cuda::ColumnNumbers& column = numbers[first_col + i];
          gradients[i] =
              column.c * column.b * (gradients[i] - means[i] - normalised[i] * weighted[i]);
        }
        grad_x.store(gradients, row, first_col);
      });
}

}  // namespace tessera::ops

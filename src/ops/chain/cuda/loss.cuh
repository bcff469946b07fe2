// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/chain/cuda/sums.cuh"

/// The loss of a chain.
namespace tessera::ops {

/// What the threads of a row have together.
template <class Value, class Join>
__device__ Value across_row(Value value, Join&& join) {
  // Rows end where a warp has others left.
  const unsigned row = 0xfu << (threadIdx.x % 32 / chain_lanes * chain_lanes);
#pragma unroll
  for (int distance = 1; distance < chain_lanes; distance *= 2) {
    value = join(value, __shfl_xor_sync(row, value, distance));
  }
  return value;
}
static_assert(chain_lanes == 4);

/// -log softmax(logits) as far as wanted, for all threads of a row, and its gradient times `share`
/// in place of the logits. In fp32, as rows are short: a logarithm in double takes a thread half a
/// microsecond.
__device__ inline float cross_entropy_of_row(float (&values)[4], int first_col, int cols, int label,
                                             const WantedShares<float>& wanted, float share) {
  float largest = -INFINITY, of_label = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (first_col + i < cols) largest = fmaxf(largest, values[i]);
    if (first_col + i == label) of_label = values[i];
  }
  largest = across_row(largest, [](float a, float b) { return fmaxf(a, b); });
  of_label = across_row(of_label, [](float a, float b) { return a + b; });
  float missed = largest - of_label;
  if (wanted.of_other > 0) {
    float all = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) all += first_col + i < cols ? largest - values[i] : 0.0f;
    all = across_row(all, [](float a, float b) { return a + b; });
    missed = wanted.of_other * (all - missed) + wanted.of_label * missed;
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    values[i] = first_col + i < cols ? expf(values[i] - largest) : 0.0f;
    sum += values[i];
  }
  sum = across_row(sum, [](float a, float b) { return a + b; });
  const float factor = 1 / sum;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float of_column = first_col + i == label ? wanted.of_label : wanted.of_other;
    values[i] = first_col + i < cols ? (values[i] * factor - of_column) * share : 0.0f;
  }
  return logf(sum) + missed;
}

/// How much the rows of a block count, and their classes.
struct ChainLabels {
  float weights[most_block_rows];
  std::int32_t labels[most_block_rows];
};

static_assert(chain_threads == most_block_rows);

/// What a thread has of them, in flight.
struct FetchedLabel {
  float weight;
  std::int32_t label;
};
template <class T>
__device__ FetchedLabel fetch_label(const ChainLaunch<T>& launch, const ChainBlock<T>& block) {
  const int row = static_cast<int>(threadIdx.x);
  if (launch.loss < 0 || row >= block.rows()) return {};
  const LossStep<T>& step = launch.steps[launch.loss].loss;
  return {__ldg(step.weights + block.first_row() + row),
          __ldg(step.labels + block.first_row() + row)};
}
__device__ inline void keep_label(const FetchedLabel& fetched, ChainLabels& labels) {
  labels.weights[threadIdx.x] = fetched.weight;
  labels.labels[threadIdx.x] = fetched.label;
}

/// Adds the gradients to the first sums of their columns, and the loss to the second one of the
/// first.
template <class T>
__device__ void add_cross_entropies(const LossStep<T>& step, const ChainBlock<T>& block,
                                    const ChainLabels& labels, ChainTotals& totals) {
  const int first_col = block.first_col();
  const bool has_gradient = step.gradient != no_matrix;
  const ChainRows<T> logits = block.matrix(step.logits);
  const ChainRows<T> gradient = block.matrix(has_gradient ? step.gradient : step.logits);
  float column_sums[4] = {};
  block.each_row([&](int row) {
    FourOfRow four{};
    if (const float weight = labels.weights[row]; weight > 0) {
      four = logits.load(row, first_col);
      const float loss =
          cross_entropy_of_row(four.values, first_col, logits.cols(), labels.labels[row],
                               step.wanted, static_cast<float>(weight * step.share));
      if (first_col == 0) totals.values[4] += static_cast<double>(weight) * loss;
    }
    if (has_gradient) gradient.store(four.values, row, first_col);
#pragma unroll
    for (int i = 0; i < 4; ++i) column_sums[i] += four.values[i];
  });
#pragma unroll
  for (int i = 0; i < 4; ++i) totals.values[i] = static_cast<double>(column_sums[i]);
}

}  // namespace tessera::ops

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

/// -log softmax(logits)[label] for all threads of a row, and its gradient times `share` in place of
/// the logits.
__device__ inline double cross_entropy_of_row(float (&values)[4], int first_col, int cols,
                                              int label, float share) {
  float largest = -INFINITY, of_label = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (first_col + i < cols) largest = fmaxf(largest, values[i]);
    if (first_col + i == label) of_label = values[i];
  }
  largest = across_row(largest, [](float a, float b) { return fmaxf(a, b); });
  of_label = across_row(of_label, [](float a, float b) { return a + b; });
  double sum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    values[i] = first_col + i < cols ? expf(values[i] - largest) : 0.0f;
    sum += static_cast<double>(values[i]);
  }
  sum = across_row(sum, [](double a, double b) { return a + b; });
  const auto factor = static_cast<float>(1 / sum);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    values[i] = (values[i] * factor - (first_col + i == label ? 1.0f : 0.0f)) * share;
  }
  return log(sum) + static_cast<double>(largest) - static_cast<double>(of_label);
}

/// Adds the gradients to the first sums of their columns, and the loss to the second one of the
/// first.
template <class T>
__device__ void add_cross_entropies(const LossStep<T>& step, const ChainShare& share,
                                    ChainTotals& totals) {
  const ChainRows<const T> logits(step.logits, step.cols);
  const ChainRows<T> gradient(step.gradient, step.cols);
  struct Fetched {
    std::int32_t times, label;
    float values[4];
  };
  const auto fetch = [&](int row) {
    Fetched fetched{__ldg(step.times + row), __ldg(step.labels + row), {}};
    logits.load(row, share.first_col, fetched.values);
    return fetched;
  };
  share.each_row<1>(fetch, [&](int row, Fetched& of_row) {
    auto& [times, label, values] = of_row;
    if (times > 0) {
      const double loss = cross_entropy_of_row(values, share.first_col, step.cols, label,
                                               static_cast<float>(times / step.count));
      if (share.first_col == 0) totals.values[4] += times * loss;
    } else {
#pragma unroll
      for (float& value : values) value = 0;
    }
    if (step.gradient.data != nullptr) gradient.store(values, row, share.first_col);
    totals.add(0, values);
  });
}

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/chain/cuda/products.cuh"

/// The loss of a chain: a thread for each row.
namespace tessera::ops {

/// -log softmax(logits)[label], and its gradient times `share` in place of the logits.
__device__ inline double cross_entropy_of_row(float (&values)[chain_width], int cols, int label,
                                              float share) {
  float largest = -INFINITY, of_label = 0;
#pragma unroll
  for (int i = 0; i < chain_width; ++i) {
    if (i < cols) largest = fmaxf(largest, values[i]);
    if (i == label) of_label = values[i];
  }
  double sum = 0;
#pragma unroll
  for (int i = 0; i < chain_width; ++i) {
    values[i] = i < cols ? expf(values[i] - largest) : 0.0f;
    sum += static_cast<double>(values[i]);
  }
  const auto factor = static_cast<float>(1 / sum);
#pragma unroll
  for (int i = 0; i < chain_width; ++i) {
    values[i] = (values[i] * factor - (i == label ? 1.0f : 0.0f)) * share;
  }
  return log(sum) + static_cast<double>(largest) - static_cast<double>(of_label);
}

/// The sum over the rows of a block, a thread's part of it; writes the gradients.
template <class T>
__device__ double add_cross_entropies(const LossStep<T>& step, const cuda::ClusterShare& share) {
  const ChainRows<const T> logits(step.logits, step.cols);
  const ChainRows<T> gradient(step.gradient, step.cols);
  double total = 0;
#pragma unroll 1
  for (std::int64_t row = share.begin + threadIdx.x; row < share.end; row += chain_threads) {
    const std::int32_t times = __ldg(step.times + row), label = __ldg(step.labels + row);
    float values[chain_width];
    logits.load(row, values);
    if (times > 0) {
      total += times * cross_entropy_of_row(values, step.cols, label,
                                            static_cast<float>(times / step.count));
    } else {
#pragma unroll
      for (float& value : values) value = 0;
    }
    if (step.gradient.data != nullptr) gradient.store(values, row);
  }
  return total;
}

}  // namespace tessera::ops

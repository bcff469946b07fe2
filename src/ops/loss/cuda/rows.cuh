// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/row_teams.cuh"

/// The losses of single rows, each by a team of lanes. All lanes of a warp must call; teams whose
/// row ends before it begins get a number without meaning.
namespace tessera::ops {

/// -log softmax(logits)[label], and its gradient times `share`.
template <class T, int width, bool aligned>
__device__ double row_cross_entropy(const cuda::RowTeam<width, aligned>& team, std::int32_t label,
                                    float share, cuda::Rows<const T> logits,
                                    cuda::Rows<T> gradient) {
  float largest = -INFINITY;
  float wanted = 0;
  team.each([&](const cuda::Elements<width, aligned>& place) {
    float values[width];
    place.load(logits, values);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      if (i >= place.count) break;
      largest = fmaxf(largest, values[i]);
      if (place.col + i == label) wanted = values[i];
    }
  });
  largest = team.largest(largest);
  double sum = 0;
  team.each([&](const cuda::Elements<width, aligned>& place) {
    float values[width];
    place.load(logits, values);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      if (i < place.count) sum += static_cast<double>(expf(values[i] - largest));
    }
  });
  sum = team.sum(sum);
  // One lane has the label's logit, the others 0.
  const double of_label = team.sum(static_cast<double>(wanted));
  if (gradient.data != nullptr) {
    const auto factor = static_cast<float>(1 / sum);
    team.each([&](const cuda::Elements<width, aligned>& place) {
      float values[width];
      place.load(logits, values);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        const float probability = expf(values[i] - largest) * factor;
        values[i] = (probability - (place.col + i == label ? 1.0f : 0.0f)) * share;
      }
      place.store(values, gradient);
    });
  }
  return log(sum) + static_cast<double>(largest) - of_label;
}

/// The sum over the row of the binary cross-entropies, this lane's part of it, and their gradients.
template <class T, int width, bool aligned>
__device__ double row_binary(const cuda::RowTeam<width, aligned>& team, float share,
                             cuda::Rows<const T> logits, cuda::Rows<const float> targets,
                             cuda::Rows<T> gradient) {
  double sum = 0;
  team.each([&](const cuda::Elements<width, aligned>& place) {
    float values[width], wanted[width];
    place.load(logits, values);
    place.load(targets, wanted);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const float z = values[i];
      // Written with exp(-|z|), which cannot overflow.
      const float power = expf(-fabsf(z));
      const float positive = z < 0 ? 0.0f : z;
      if (i < place.count) sum += static_cast<double>(positive - z * wanted[i] + log1pf(power));
      const float sigmoid = (z < 0 ? power : 1.0f) / (1.0f + power);
      values[i] = (sigmoid - wanted[i]) * share;
    }
    if (gradient.data != nullptr) place.store(values, gradient);
  });
  return sum;
}

}  // namespace tessera::ops

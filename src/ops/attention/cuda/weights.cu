// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/weights.hpp"

#include <algorithm>
#include <bit>

#include "cuda/launch.cuh"
#include "cuda/offsets.cuh"
#include "cuda/precision.cuh"
#include "cuda/vectors.cuh"

namespace tessera::ops {
namespace {

constexpr int block_threads = 128;
constexpr int block_warps = block_threads / 32;

/// Everything a launch needs; passed to the GPU by value.
struct WeightsLaunch {
  VertexId num_rows;
  cuda::Offsets offsets;
  const VertexId* indices;
  AttentionForm form;
  std::int64_t heads;
  std::int64_t width;  ///< numbers of a head: one in GAT
  int team;            ///< lanes that add up a score together: a power of two
  float slope;
  float scale;
  const void* vector;            ///< gatv2; cosine: the factor
  const float* inverse_lengths;  ///< cosine: of rows of values
  const void* target;
  std::int64_t target_stride;
  const void* source;
  std::int64_t source_stride;
  const float* log_sum;
  std::int64_t log_sum_stride;
  void* weights;
  std::int64_t weights_stride;
};

__device__ float leaky_relu(float x, float slope) { return x > 0 ? x : slope * x; }

/// What one feature adds to a score.
template <class T>
__device__ float score_term(const WeightsLaunch& launch, std::int64_t feature, float t, float s) {
  switch (launch.form) {
    case AttentionForm::gat: return leaky_relu(t + s, launch.slope);
    case AttentionForm::gatv2:
      return cuda::widen(static_cast<const T*>(launch.vector)[feature]) *
             leaky_relu(t + s, launch.slope);
    default: return t * s;
  }
}

/// What the sum of all terms is multiplied by.
template <class T>
__device__ float score_factor(const WeightsLaunch& launch, VertexId other) {
  if (launch.form == AttentionForm::dot) return launch.scale;
  if (launch.form != AttentionForm::cosine) return 1;
  return cuda::widen(*static_cast<const T*>(launch.vector)) * launch.inverse_lengths[other];
}

/// A warp takes a row; each of its teams of lanes takes an edge and head at a time.
template <class T>
__global__ __launch_bounds__(block_threads) void weights_kernel(const WeightsLaunch launch) {
  cuda::begin_overlapped();
  const std::int64_t row = std::int64_t{blockIdx.x} * block_warps + threadIdx.x / 32;
  if (row >= launch.num_rows) return;
  const EdgeOffset begin = cuda::offset_at(launch.offsets, row);
  const std::int64_t count = (cuda::offset_at(launch.offsets, row + 1) - begin) * launch.heads;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int place = lane & (launch.team - 1);
  const T* const target = static_cast<const T*>(launch.target) + row * launch.target_stride;
  // Products of the rows of cosines might not be finite before they are divided by lengths.
  const float own = launch.form == AttentionForm::cosine ? launch.inverse_lengths[row] : 1.0f;
  for (std::int64_t first = 0; first < count; first += 32 / launch.team) {
    const std::int64_t number = first + lane / launch.team;
    const bool exists = number < count;
    const EdgeOffset edge = begin + (exists ? number / launch.heads : 0);
    const std::int64_t head = exists ? number % launch.heads : 0;
    const VertexId other = __ldg(launch.indices + edge);
    const T* const source = static_cast<const T*>(launch.source) + other * launch.source_stride;
    float score = 0;
    for (std::int64_t f = head * launch.width + place; exists && f < (head + 1) * launch.width;
         f += launch.team) {
      score += score_term<T>(launch, f, own * cuda::widen(target[f]), cuda::widen(source[f]));
    }
    for (int distance = launch.team / 2; distance >= 1; distance /= 2) {
      score += __shfl_xor_sync(~0u, score, distance);
    }
    if (!exists || place != 0) continue;
    score *= score_factor<T>(launch, other);
    static_cast<T*>(launch.weights)[edge * launch.weights_stride + head] =
        cuda::narrow<T>(expf(score - launch.log_sum[row * launch.log_sum_stride + head]));
  }
}

}  // namespace

void write_attention_weights(const cuda::DeviceRows& rows, const AttentionOptions& options,
                             const AttentionInputs& inputs, const ConstOperand& log_sum,
                             const Operand& weights, Stream stream, const float* inverse_lengths) {
  const bool cosine = options.form == AttentionForm::cosine;
  const ConstOperand target = cosine ? inputs.value : inputs.target;
  const ConstOperand source = cosine ? inputs.value : inputs.source;
  const std::int64_t width = source.cols / options.heads;
  const auto team = std::bit_ceil(static_cast<unsigned>(std::clamp<std::int64_t>(width, 1, 32)));
  const WeightsLaunch launch{rows.num_rows,
                             rows.offsets(),
                             rows.indices.data(),
                             options.form,
                             options.heads,
                             width,
                             static_cast<int>(team),
                             static_cast<float>(options.negative_slope),
                             static_cast<float>(inputs.scale),
                             inputs.vector.data,
                             inverse_lengths,
                             target.data,
                             target.stride,
                             source.data,
                             source.stride,
                             static_cast<const float*>(log_sum.data),
                             log_sum.stride,
                             weights.data,
                             weights.stride};
  cuda::visit_type(weights.type, [&](auto element) {
    cuda::launch_overlapped(weights_kernel<decltype(element)>,
                            dim3(cuda::num_blocks(rows.num_rows, block_warps)), block_threads,
                            stream, launch);
  });
}

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/row_launch.hpp"
#include "ops/cuda/dropout.cuh"

/// Which weights fall. All lanes of a group have the same edges, and one counter has the numbers of
/// four heads, so that lanes would draw the same numbers many times over. Instead each of them
/// draws for another edge and four heads, and hands a bit for each of these to whoever has the
/// head.
namespace tessera::ops {

/// Weights of a `batch` of edges. Pairs of an edge and a quad of heads go to the lanes of a group
/// in turn, quad by quad.
template <int batch>
class BatchDropout {
 public:
  __device__ explicit BatchDropout(const RowsAttentionLaunch& launch)
      : launch_(launch),
        step_(launch.drops ? present_step(launch.dropout) : 0),
        lane_(threadIdx.x & (launch.shape.lanes - 1)) {
    const unsigned head = lane_ >> launch.shape.log_head_lanes;
    const unsigned pair = head / 4 * batch;
    source_ = static_cast<int>(threadIdx.x % 32 - lane_ + (pair & (launch.shape.lanes - 1)));
    bit_ = 1u << ((pair >> launch.shape.log_lanes) * 4 + head % 4);
  }

  /// A lane's share: four bits for each pair that falls to it. Of edges that do not exist it draws
  /// nothing.
  __device__ unsigned draw(EdgeOffset position, int num_edges) const {
    const unsigned pairs = (static_cast<unsigned>(launch_.shape.heads) + 3) / 4 * batch;
    unsigned kept = 0;
    int place = 0;
#pragma unroll 1
    for (unsigned pair = lane_; pair < pairs; pair += launch_.shape.lanes) {
      const auto edge = static_cast<int>(pair % batch);
      const auto quad = static_cast<int>(pair / batch);
      if (edge < num_edges) kept |= of_quad(position + edge, quad) << place;
      place += 4;
    }
    return kept;
  }

  /// What the weights of edges are multiplied by, for this lane's head. All lanes of a warp must
  /// call together.
  __device__ void multiply(unsigned drawn, float (&weights)[batch]) const {
#pragma unroll
    for (int u = 0; u < batch; ++u) {
      const unsigned kept = __shfl_sync(~0u, drawn, source_ + (u & (launch_.shape.lanes - 1)));
      const unsigned bit = bit_ << (u >> launch_.shape.log_lanes) * 4;
      weights[u] *= (kept & bit) != 0 ? launch_.kept_factor : 0.0f;
    }
  }

 private:
  /// Four heads may begin inside of a counter, and end in the next one.
  __device__ unsigned of_quad(EdgeOffset edge, int quad) const {
    const EdgeOffset position =
        launch_.positions != nullptr ? __ldg(launch_.positions + edge) : edge;
    const int first_head = static_cast<int>(blockIdx.y) * launch_.shape.heads + 4 * quad;
    const auto element = static_cast<std::uint64_t>(position * launch_.heads + first_head);
    const auto place = static_cast<int>(element % 4);
    const int end = place + min(4, launch_.shape.heads - 4 * quad);
    unsigned kept = 0;
#pragma unroll 1
    for (int first = 0; first < end; first += 4) {
      kept |= of_counter((element + static_cast<std::uint64_t>(first)) / 4) << first;
    }
    return kept >> place & 15;
  }
  __device__ unsigned of_counter(std::uint64_t counter) const {
    DropoutConstants constants = launch_.dropout;
    // Keys of ten rounds that were kept from one batch to the next would take twenty registers.
    asm volatile("" : "+r"(constants.key[0]), "+r"(constants.key[1]));
    return kept_bits(constants, step_, counter);
  }

  const RowsAttentionLaunch& launch_;
  std::uint32_t step_;
  unsigned lane_;  ///< in the group
  int source_;     ///< lane of the warp that has the pair of the first edge and this lane's head
  unsigned bit_;   ///< which bit there is the head's
};

}  // namespace tessera::ops

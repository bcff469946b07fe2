// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/rows/lane_shape.hpp"

namespace tessera::ops {

/// Sums over the lanes of a head, of four edges at once, where a head has four lanes at least: each
/// exchange halves the edges that a lane has numbers of, so that it ends up with one edge, and does
/// for this edge alone what follows from the sums.
///
///     lanes of a head    0 1 2 3 4 5 6 7
///     edge               0 0 1 1 2 2 3 3
class FourEdges {
 public:
  __device__ explicit FourEdges(const LaneShape& shape) : head_lanes_(shape.head_lanes) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int place = lane & (head_lanes_ - 1);
    first_lane_ = lane - place;
    edge_ = place >> (shape.log_head_lanes - 2);
    speaks_ = (place & (head_lanes_ / 4 - 1)) == 0;
  }

  /// This lane's.
  __device__ int edge() const { return edge_; }
  /// One lane of each edge.
  __device__ bool speaks_for_edge() const { return speaks_; }

  template <class T>
  __device__ T own(const T (&of_edges)[4]) const {
    const T of_first = edge_ % 2 == 0 ? of_edges[0] : of_edges[1];
    const T of_second = edge_ % 2 == 0 ? of_edges[2] : of_edges[3];
    return edge_ < 2 ? of_first : of_second;
  }

  /// Of each kind, the sum over the head's lanes for this lane's edge. All lanes of a warp must
  /// call together, as they must for `of`.
  template <int kinds>
  __device__ void add_over_head(const float (&numbers)[kinds][4], float (&sums)[kinds]) const {
#pragma unroll
    for (int k = 0; k < kinds; ++k) {
      float pair[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        pair[i] = exchanged(numbers[k][i], numbers[k][2 + i], edge_ < 2, head_lanes_ / 2);
      }
      sums[k] = exchanged(pair[0], pair[1], edge_ % 2 == 0, head_lanes_ / 4);
    }
    for (int distance = head_lanes_ / 8; distance >= 1; distance /= 2) {
#pragma unroll
      for (float& sum : sums) sum += __shfl_xor_sync(~0u, sum, distance);
    }
  }

  /// What the lanes of another edge have.
  __device__ float of(int edge, float number) const {
    const int place = edge / 2 * (head_lanes_ / 2) + edge % 2 * (head_lanes_ / 4);
    return __shfl_sync(~0u, number, first_lane_ + place);
  }

 private:
  /// One of two numbers, with what another lane has of it; that lane gets the other one.
  __device__ static float exchanged(float first, float second, bool keeps_first, int distance) {
    const float given = __shfl_xor_sync(~0u, keeps_first ? second : first, distance);
    return (keeps_first ? first : second) + given;
  }

  int head_lanes_;
  int first_lane_;  ///< of the head
  int edge_;
  bool speaks_;
};

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A softmax that is measured as its scores come, and the layout in which a team of lanes does so
/// for several heads.
namespace tessera::cuda {

inline constexpr float infinity = __builtin_huge_valf();

/// The largest score so far, and the sum of exp(score - max). Plain IEEE arithmetic in effect: a
/// score of +inf or not-a-number makes the sum not-a-number, one of -inf adds nothing.
struct RunningSum {
  float max = -infinity;
  float sum = 0;

  /// Several scores at once, so that their exponentials do not wait for each other; -inf stands for
  /// none.
  template <int count>
  __device__ void add(const float (&scores)[count]) {
    float top = max;
#pragma unroll
    for (const float score : scores) top = fmaxf(top, score);
    if (top > max) sum *= expf(max - top);
    max = top;
    const float base = max > -infinity ? max : 0.0f;
#pragma unroll
    for (const float score : scores) sum += expf(score - base);
  }
  __device__ void join(const RunningSum& other) {
    const float joint = fmaxf(max, other.max);
    if (joint == -infinity) {
      sum += other.sum;
      return;
    }
    sum = sum * expf(max - joint) + other.sum * expf(other.max - joint);
    max = joint;
  }
};

/// Up to 32 heads of consecutive edges side by side in a team: lane = edge * padded heads + head.
/// The number of heads is padded to a power of two, so a lane keeps its head.
struct HeadLanes {
  int padded;       ///< heads, a power of two
  int head;         ///< of this lane; may lie beyond the last
  int edge;         ///< of this lane, in a batch
  int batch_edges;  ///< edges that a team takes at once

  __device__ HeadLanes(int team, int padded_heads)
      : padded(padded_heads),
        head(static_cast<int>(threadIdx.x) & (padded_heads - 1)),
        edge(static_cast<int>(threadIdx.x) % team / padded_heads),
        batch_edges(team / padded_heads) {}
};

/// The lanes of this thread's team.
template <int team>
__device__ unsigned team_mask() {
  if constexpr (team == 32) return ~0u;
  return ((1u << (team % 32)) - 1) << (threadIdx.x % 32 / team * team);
}

/// Combines what the lanes of one head hold; `combine(other)` takes another lane's number.
template <int team, class Combine>
__device__ void over_edges(const HeadLanes& lanes, Combine&& combine) {
  for (int distance = lanes.padded; distance < team; distance *= 2) combine(distance);
}

template <int team>
__device__ float sum_over_edges(const HeadLanes& lanes, float value) {
  over_edges<team>(
      lanes, [&](int distance) { value += __shfl_xor_sync(team_mask<team>(), value, distance); });
  return value;
}

}  // namespace tessera::cuda

// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How the kernel of pairs of planes (pairs.cu) goes over K.
namespace tessera::ops {

inline constexpr int pairs_rows = 64;  ///< of a block, and its columns
inline constexpr int pairs_plane_bytes = pairs_rows * 32;
inline constexpr int pairs_most_bytes = 96 * 1024;  ///< of shared memory, for any planes

/// How many steps of 256 bits stand in a stage of shared memory, and how many stages there are.
struct PairsShape {
  int steps = 1;
  int stages = 1;
};
constexpr PairsShape pairs_shape(int a_planes, int b_planes) {
  const int step_bytes = (a_planes + b_planes) * pairs_plane_bytes;
  if (2 * step_bytes > pairs_most_bytes) return {1, 1};
  const int steps = pairs_most_bytes / (2 * step_bytes);
  return {steps < 4 ? steps : 4, 2};
}
constexpr int pairs_shared_bytes(int a_planes, int b_planes) {
  const PairsShape shape = pairs_shape(a_planes, b_planes);
  return shape.steps * shape.stages * (a_planes + b_planes) * pairs_plane_bytes;
}

static_assert(pairs_shared_bytes(16, 16) <= pairs_most_bytes);

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace tessera::ops {

/// How the vectors of a head are loaded.
enum class LaneLoads {
  whole,   ///< all are complete
  padded,  ///< the last may have fewer features, but the row goes on: up to the next there is room
  single,  ///< feature by feature
};

/// What a lane holds of a vertex: `vectors` vectors of `count` features, all of one head.
struct LaneVectors {
  int count = 1;
  int vectors = 1;
  LaneLoads loads = LaneLoads::whole;

  friend constexpr bool operator==(const LaneVectors&, const LaneVectors&) = default;
};

/// The kernels of a type of 32 or 16 bits: vectors of up to 16 bytes for narrow heads, several of
/// 16 bytes for wide ones, one for a single head of no whole number of vectors in rows that begin
/// on boundaries, and one kernel for whatever lies on no boundary.
using LaneVectorList = std::array<LaneVectors, 7>;
inline constexpr LaneVectorList lane_vectors_32 = {
    {{1, 1}, {2, 1}, {4, 1}, {4, 2}, {4, 4}, {4, 1, LaneLoads::padded}, {4, 4, LaneLoads::single}}};
inline constexpr LaneVectorList lane_vectors_16 = {
    {{1, 1}, {2, 1}, {4, 1}, {8, 1}, {8, 4}, {8, 1, LaneLoads::padded}, {8, 4, LaneLoads::single}}};
constexpr const LaneVectorList& lane_vectors(std::size_t element_bytes) {
  return element_bytes == 2 ? lane_vectors_16 : lane_vectors_32;
}

/// Whether there is a kernel without dropout, which takes registers even where it is not done.
constexpr bool has_undropped(const LaneVectors& held) {
  return held.loads == LaneLoads::whole && held.vectors <= 2;
}

/// How the heads of a vertex are spread over lanes. The lanes of a head are a power of two, so that
/// they add up what they hold by exchanging it; so are the lanes of a vertex. What is left of heads
/// goes to further blocks.
struct LaneShape {
  int head_lanes = 1;
  int lanes = 1;  ///< of one edge
  int heads = 1;  ///< of a block
  unsigned num_slices = 1;
  // The same as powers of two: short rows feel every division.
  int log_head_lanes = 0;
  int log_lanes = 0;

  /// Groups of lanes in a warp, each with an edge.
  constexpr int log_groups() const { return 5 - log_lanes; }
  constexpr int groups() const { return 32 >> log_lanes; }

  static LaneShape of(std::int64_t heads, std::int64_t width, const LaneVectors& held) {
    const std::int64_t of_lane = held.count * held.vectors;
    const auto wanted = static_cast<std::uint64_t>((width + of_lane - 1) / of_lane);
    LaneShape shape;
    shape.head_lanes = static_cast<int>(std::bit_ceil(std::max<std::uint64_t>(1, wanted)));
    shape.heads = static_cast<int>(std::min<std::int64_t>(heads, 32 / shape.head_lanes));
    shape.lanes =
        shape.head_lanes * static_cast<int>(std::bit_ceil(static_cast<unsigned>(shape.heads)));
    shape.num_slices = static_cast<unsigned>((heads + shape.heads - 1) / shape.heads);
    shape.log_head_lanes = std::countr_zero(static_cast<unsigned>(shape.head_lanes));
    shape.log_lanes = std::countr_zero(static_cast<unsigned>(shape.lanes));
    return shape;
  }
};

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>

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
inline constexpr std::array<LaneVectors, 7> lane_vectors_32 = {
    {{1, 1}, {2, 1}, {4, 1}, {4, 2}, {4, 4}, {4, 1, LaneLoads::padded}, {4, 4, LaneLoads::single}}};
inline constexpr std::array<LaneVectors, 7> lane_vectors_16 = {
    {{1, 1}, {2, 1}, {4, 1}, {8, 1}, {8, 4}, {8, 1, LaneLoads::padded}, {8, 4, LaneLoads::single}}};

/// Whether there is a kernel without dropout, which takes registers even where it is not done.
constexpr bool has_undropped(const LaneVectors& held) {
  return held.loads == LaneLoads::whole && held.vectors <= 2;
}

/// Boundaries, in features: on which all heads begin, and on which rows do where these are one
/// head.
struct LaneBoundaries {
  std::int64_t heads = 1;
  std::int64_t rows = 1;
};

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

  /// None where a head has more features than the lanes of a warp hold.
  static std::optional<LaneShape> of(std::int64_t heads, std::int64_t width,
                                     const LaneVectors& held) {
    const std::int64_t vectors = (width + held.count - 1) / held.count;
    const std::int64_t wanted =
        std::max<std::int64_t>(1, (vectors + held.vectors - 1) / held.vectors);
    if (wanted > 32) return std::nullopt;
    LaneShape shape;
    shape.head_lanes = static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(wanted)));
    shape.heads = static_cast<int>(std::min<std::int64_t>(heads, 32 / shape.head_lanes));
    shape.lanes =
        shape.head_lanes * static_cast<int>(std::bit_ceil(static_cast<unsigned>(shape.heads)));
    shape.num_slices = static_cast<unsigned>((heads + shape.heads - 1) / shape.heads);
    shape.log_head_lanes = std::countr_zero(static_cast<unsigned>(shape.head_lanes));
    shape.log_lanes = std::countr_zero(static_cast<unsigned>(shape.lanes));
    return shape;
  }
};

/// Whether a kernel takes heads of `width` features. Padding is worth its mask where a head has two
/// vectors at least.
inline bool takes(const LaneVectors& held, std::int64_t width, const LaneBoundaries& boundaries) {
  if (!LaneShape::of(1, width, held)) return false;
  switch (held.loads) {
    case LaneLoads::whole: return boundaries.heads % held.count == 0;
    case LaneLoads::padded:
      return width % held.count != 0 && width >= 2 * held.count &&
             boundaries.rows % held.count == 0;
    case LaneLoads::single: break;
  }
  return true;
}

/// Which of the kernels takes heads of `width` features: the widest loads of one vector, or of as
/// many as `most_vectors` where they fill lanes; else the first that fits. None where the heads are
/// too wide.
template <std::size_t size>
std::optional<std::size_t> choose_lane_vectors(const std::array<LaneVectors, size>& all,
                                               std::int64_t width, const LaneBoundaries& boundaries,
                                               int most_vectors) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < size; ++i) {
    const LaneVectors& held = all[i];
    if (!takes(held, width, boundaries)) continue;
    const bool fills = held.loads == LaneLoads::whole && width % (held.count * held.vectors) == 0;
    const bool wanted = held.vectors == 1 || (held.vectors <= most_vectors && fills);
    if (!best || wanted) best = i;
  }
  return best;
}

}  // namespace tessera::ops

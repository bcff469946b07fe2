// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>

namespace tessera::ops {

/// How a warp shares the dot products of consecutive edges.
///
/// `lanes` neighbouring lanes form a group, which computes `edges` consecutive dot products, one
/// after the other; a lane holds `vectors` vectors of each row (of 16 bytes, or of one feature
/// where rows are not on 16-byte boundaries). Eight lanes load a whole line of the cache at once,
/// and fewer lanes per edge mean fewer instructions to add up what they hold.
///
///     lanes = 8, edges = 8:   | edges 0-7 | edges 8-15 | edges 16-23 | edges 24-31 |   of a warp
struct EdgesPolicy {
  int lanes = 8;
  int vectors = 1;
  int edges = 8;
  int batch = 2;      ///< edges of a group whose loads are in flight together
  bool keeps = true;  ///< the row of one end stays in registers until an edge has another there

  constexpr int tile() const { return 32 / lanes * edges; }
  /// Whether a warp asks for the ends of its next tile while it computes one: where the registers
  /// for it do not cost a processor one of its blocks.
  constexpr bool asks_ahead() const { return keeps ? edges >= 4 && batch >= 2 : batch == 2; }
  friend constexpr bool operator==(const EdgesPolicy&, const EdgesPolicy&) = default;
  constexpr bool valid() const {
    const auto power = [](int n) { return n >= 1 && (n & (n - 1)) == 0; };
    return power(lanes) && power(edges) && power(batch) && lanes <= 32 && edges <= lanes &&
           batch <= edges && vectors >= 1;
  }
};

inline constexpr int edges_block_threads = 256;
inline constexpr int edges_block_warps = edges_block_threads / 32;

/// For vectors of 16 bytes. Few edges a group make more warps, which small graphs want.
inline constexpr std::array<EdgesPolicy, 12> vector_policies = {{
    {1, 1, 1, 1, true},
    {2, 1, 2, 2, true},
    {4, 1, 4, 4, true},
    {4, 2, 4, 2, false},
    {8, 1, 2, 2, true},
    {8, 1, 8, 4, false},
    {8, 2, 8, 2, false},
    {8, 4, 2, 2, true},
    {8, 4, 8, 2, true},
    {8, 8, 8, 1, true},
    {16, 1, 4, 4, false},
    {16, 2, 8, 2, false},
}};

/// For single features, by the width of heads.
inline constexpr std::array<EdgesPolicy, 4> scalar_policies = {{
    {1, 1, 1, 1, true},
    {4, 1, 4, 4, true},
    {16, 1, 8, 4, true},
    {32, 4, 8, 2, true},
}};

/// Streams (stream.cuh): eight lanes hold a row of 256 bytes and go along consecutive edges, eight
/// at each step, with the rows of two edges ahead.
inline constexpr int stream_lanes = 8;
inline constexpr int stream_vectors = 2;
inline constexpr int stream_depth = 2;
inline constexpr int stream_edges = 8;
inline constexpr int stream_row_bytes = 16 * stream_lanes * stream_vectors;
inline constexpr int stream_block_threads = 128;

static_assert(std::ranges::all_of(vector_policies, &EdgesPolicy::valid) &&
              std::ranges::all_of(scalar_policies, &EdgesPolicy::valid));

}  // namespace tessera::ops

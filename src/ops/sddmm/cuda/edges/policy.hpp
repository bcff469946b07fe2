// SPDX-License-Identifier: Apache-2.0
#pragma once

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
inline constexpr std::array<EdgesPolicy, 22> vector_policies = {{
    {1, 1, 1, 1, true},   {2, 1, 2, 2, true},   {4, 1, 4, 4, true},   {4, 2, 4, 2, true},
    {4, 2, 4, 2, false},  {4, 4, 4, 2, true},   {8, 1, 2, 2, true},   {8, 1, 8, 4, true},
    {8, 1, 8, 4, false},  {8, 2, 2, 2, true},   {8, 2, 8, 4, true},   {8, 2, 8, 2, false},
    {8, 4, 2, 2, true},   {8, 4, 8, 2, true},   {8, 4, 8, 1, false},  {8, 8, 8, 1, true},
    {16, 4, 2, 2, true},  {16, 4, 16, 2, true}, {16, 1, 4, 4, false}, {16, 2, 8, 2, false},
    {32, 1, 4, 4, false}, {32, 2, 8, 2, false},
}};

/// For single features.
inline constexpr std::array<EdgesPolicy, 4> scalar_policies = {{
    {1, 1, 1, 1, true},
    {4, 1, 4, 4, true},
    {16, 1, 8, 4, true},
    {32, 4, 8, 2, true},
}};

/// How a group of `lanes` lanes goes along consecutive edges: a lane holds `vectors` vectors of 16
/// bytes of each row, which is as long as all of them together, and the rows of `depth` edges are
/// on their way. More edges ahead want more registers, of which fewer blocks fit on a processor.
struct StreamPolicy {
  int lanes = 32;
  int vectors = 1;
  int depth = 4;
  int blocks = 8;       ///< that the registers of a processor should have room for
  int half_blocks = 6;  ///< the same for 16-bit features, which take twice the room once widened

  constexpr int row_bytes() const { return 16 * lanes * vectors; }
  friend constexpr bool operator==(const StreamPolicy&, const StreamPolicy&) = default;
};

inline constexpr int stream_block_threads = 128;
inline constexpr int stream_edges = 8;  ///< of a group at each step

/// For rows of 128 bytes to a kilobyte.
inline constexpr std::array<StreamPolicy, 7> stream_policies = {{
    {8, 1, 4, 7, 6},
    {16, 1, 4, 7, 6},
    {8, 2, 2, 7, 5},
    {32, 1, 4, 7, 6},
    {32, 1, 2, 9, 7},
    {16, 2, 2, 7, 5},
    {32, 2, 2, 7, 5},
}};

template <std::size_t size>
constexpr bool all_valid(const std::array<EdgesPolicy, size>& policies) {
  for (const EdgesPolicy& policy : policies) {
    if (!policy.valid()) return false;
  }
  return true;
}
static_assert(all_valid(vector_policies) && all_valid(scalar_policies));

}  // namespace tessera::ops

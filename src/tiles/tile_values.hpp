// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tessera/core/dtype.hpp"
#include "tessera/tiles/tiled_graph.hpp"

/// Values of edges beside the bits of tiles: as many as there are edges, in the order in which the
/// lanes of a warp need them. docs/design/tile_format.md draws it.
namespace tessera::tiles {

/// Entries of 4 bytes that are copied at once.
inline constexpr int value_unit = 4;

/// Which edge each entry belongs to. A tile has two halves of two steps; a half has the entries of
/// word 0, then those of word 1 and so on, each word's in the order of its bits: register by
/// register, the even column before the odd one. Words that have entries are filled up to an odd
/// number of them, halves to whole units.
struct ValueLayout {
  /// Half h of tile t has the units [unit_offsets[2 t + h], unit_offsets[2 t + h + 1]).
  SharedArray<std::int32_t> unit_offsets;
  /// Where each word's entries begin, counted from the tile's first, in the first half (low
  /// 16 bits) and in the second.
  SharedArray<std::uint32_t> starts;
  /// Where each entry's edge stands in CSR; -1 for those that fill.
  SharedArray<std::int32_t> edges;

  /// The same bytes.
  friend bool operator==(const ValueLayout&, const ValueLayout&) = default;
};

/// `tiled` is that side of the graph, in windows of 16 rows or more. Throws `unsupported` for more
/// than 2^31 - 1 entries.
ValueLayout place_values(const Graph& graph, const TiledGraph& tiled, Side side);

/// The same bytes, made in a place and brought back.
ValueLayout place_values(const Graph& graph, const TiledGraph& tiled, Side side,
                         const Place& place);

/// One entry for each of `layout.edges`, 0 where there is no edge. fp32: the value. bf16 and fp16:
/// two numbers that add up to it, the high one in the low half. Values are in CSR order.
SharedArray<std::uint32_t> pack_values(const ValueLayout& layout, std::span<const float> values,
                                       Precision precision);

}  // namespace tessera::tiles

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/device.hpp"

#include "sample/draw_formula.hpp"
#include "sample/keys.hpp"

/// The kernels of one hop. Where it begins and ends is known to the GPU alone: each has threads for
/// as many vertices or edges as there may be, and those too many do nothing.
namespace tessera::sample::on_gpu {

/// A key and its number, or nothing: all bits 1.
template <class Key>
struct Slot {
  Key key;
  std::uint32_t number;
};

/// The numbers of the keys of a batch, in at least twice as many slots, a power of two.
template <class Key>
struct Table {
  Slot<Key>* slots = nullptr;
  int shift = 0;  ///< 64 - the logarithm of how many there are
};

/// What the kernels of a hop read and write, all in memory of the GPU.
template <class Key>
struct Hop {
  CandidateLists lists;
  HopRules rules;
  const std::int64_t* seed_times = nullptr;  ///< null: edges have no times

  /// The vertices that draw are those from `vertices[0]` on and before `vertices[1]`; what they
  /// find ends at `vertices[2]`. Their edges begin at `edges[0]` and end at `edges[1]`.
  std::int64_t* vertices = nullptr;
  std::int64_t* edges = nullptr;
  std::int64_t most_targets = 0;  ///< that may draw
  std::int64_t most_edges = 0;    ///< that they may draw

  Key* keys = nullptr;            ///< of all vertices, by number
  EdgeOffset* offsets = nullptr;  ///< of the edges of all vertices that draw
  /// How many edges each vertex of this hop draws, a 0 for those too many, one more at the end;
  /// once added up, where in the hop its edges begin.
  EdgeOffset* counts = nullptr;
  Table<Key> table;

  EdgeOffset* candidates = nullptr;  ///< each edge drawn
  VertexId* targets = nullptr;       ///< of each, by number
  std::uint32_t* sources = nullptr;  ///< of each: its slot in the table, in the end its number
};

/// Writes the keys of seeds, and what they will draw.
template <class Key>
void begin_batch(const Hop<Key>& hop, const VertexId* seeds, std::int64_t num_seeds, Stream stream);

/// Empties a table, and enters the vertices that there are when a hop begins; of those with one key
/// the first.
template <class Key>
void enter_vertices(const Hop<Key>& hop, std::int64_t most_vertices, Stream stream);

/// Once the counts are added up: draws all edges, and enters their sources into the table.
template <class Key>
void draw_edges(const Hop<Key>& hop, Stream stream);

/// firsts[e] = 1 for the first edge of the hop with a source that has no number yet, 0 for others;
/// there is one more than edges.
template <class Key>
void mark_firsts(const Hop<Key>& hop, std::int32_t* firsts, Stream stream);

/// Once these are added up: numbers new sources, and writes how many edges they will draw by the
/// rules of the next hop to its counts, unless there are none.
template <class Key>
void append_vertices(const Hop<Key>& hop, const std::int32_t* before, const Hop<Key>& next,
                     Stream stream);

/// Sources become numbers, for the edges from `first` on and before `last`, at most so many.
template <class Key>
void look_up(const Hop<Key>& hop, const std::int64_t* first, const std::int64_t* last,
             std::int64_t most_edges, Stream stream);

/// Vertices and, unless null, trees of the first `count` keys, at most so many.
template <class Key>
void split_keys(const Key* keys, const std::int64_t* count, std::int64_t most, VertexId* vertices,
                VertexId* trees, Stream stream);

}  // namespace tessera::sample::on_gpu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ops/sddmm/cuda/lists/policy.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/graph/graph.hpp"

/// The edges of a graph with both ends, in an order in which edges that follow each other share
/// more rows than in CSR's, or in that.
///
///     CSR       row 0: a b d   row 1: c e   row 2: a b       a0 b0 d0 c1 e1 a2 b2
///     by hubs   rows 0 and 2 share a: side by side           a0 b0 d0 a2 b2 c1 e1
///     panels    rows 0 and 1, then row 2, each by source     a0 b0 c1 d0 e1 a2 b2
namespace tessera::ops {

struct DeviceList {
  /// Targets and sources, in panels the other way round. After the last edge it is repeated up to
  /// whole tiles.
  Buffer<VertexId> kept;
  Buffer<VertexId> gathered;
  Buffer<std::int32_t> places;  ///< by rows; empty: as listed
  Buffer<VertexId> apart;       ///< written after all others, by what overlaps nothing
};

/// Made at the first call for a place's memory, then kept with the graph.
std::shared_ptr<const DeviceList> device_list(const Graph& graph, ListOrder order,
                                              const Place& place);

/// An order of rows in which those that share sources stand together.
///
/// The hub of a row is the one of its sources that most edges have, or the row itself where more
/// have that. Rows of one hub very likely have other sources in common, so they stand side by side,
/// next to those of other hubs of the same hub; among them, those with most edges first. That is
/// one look at each edge, and where vertices are numbered at random it halves the distinct sources
/// of 150 rows on many real graphs.
///
/// The place of each row in that order. Queued on the place's stream. The graph has at most
/// `most_hubs` rows and columns.
Buffer<VertexId> places_by_hubs(const Graph& graph, const Place& place);

}  // namespace tessera::ops

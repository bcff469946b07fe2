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
///     a panel   of rows 0 to 2: by source                    a0 a2 b0 b2 c1 d0 e1
namespace tessera::ops {

struct DeviceList {
  /// What neighbouring edges have in common, the target or, in panels, the source; and the other.
  /// After the last edge it is repeated up to whole tiles.
  Buffer<VertexId> kept;
  Buffer<VertexId> gathered;
  Buffer<std::int32_t> places;  ///< by rows; empty: as listed
  Buffer<VertexId> apart;       ///< written after all others, by what overlaps nothing
};

/// Made at the first call for a place's memory, then kept with the graph.
std::shared_ptr<const DeviceList> device_list(const Graph& graph, ListOrder order,
                                              const Place& place);

}  // namespace tessera::ops

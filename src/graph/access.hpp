// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "tessera/core/parallel.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::detail {

/// What the library reads of a graph beside its public face.
struct GraphAccess {
  /// Something made of the structure alone, such as a copy on a GPU: `make` is called for the first
  /// who asks for `key`, and the result is kept with the CSC and shared by all copies.
  static std::shared_ptr<const void> derived(const Graph& graph, const std::string& key,
                                             FunctionRef<std::shared_ptr<const void>()> make);

  /// The arrays where they lie.
  static const PlacedArray<VertexId>& col_indices(const Graph& graph) noexcept {
    return graph.col_indices_;
  }
  static const PlacedArray<float>& values(const Graph& graph) noexcept { return graph.values_; }
  static const PlacedArray<float>& row_scale(const Graph& graph) noexcept {
    return graph.row_scale_;
  }
  static const PlacedArray<float>& col_scale(const Graph& graph) noexcept {
    return graph.col_scale_;
  }
  static const PlacedArray<EdgeOffset>& edge_ids(const Graph& graph) noexcept {
    return graph.edge_ids_;
  }
};

}  // namespace tessera::detail

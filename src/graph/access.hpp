// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "tessera/core/parallel.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::detail {

/// How long a graph keeps what was made of it: as long as it lives, or until `release_unused` finds
/// that nobody uses it.
enum class Keeping { for_good, for_users };

/// What the library reads of a graph beside its public face.
struct GraphAccess {
  /// Something made of the structure alone, such as a copy on a GPU: `make` is called for the first
  /// who asks for `key`, and the result is kept with the CSC and shared by all copies.
  static std::shared_ptr<const void> derived(const Graph& graph, const std::string& key,
                                             FunctionRef<std::shared_ptr<const void>()> make,
                                             Keeping keeping = Keeping::for_good);
  /// The same if it has been made, else null.
  static std::shared_ptr<const void> known(const Graph& graph, const std::string& key);
  /// Lets go of what is kept for its users and has none.
  static void release_unused(const Graph& graph);

  /// Those of the CSC. Where they are known already, nothing else of the CSC is made.
  static SharedArray<EdgeOffset> col_offsets(const Graph& graph);
  /// Under which they are derived.
  static constexpr const char* col_offsets_key = "column offsets";

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

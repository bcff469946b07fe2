// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "core/once_map.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::detail {

/// What the library reads of a graph beside its public face.
struct GraphAccess {
  /// False for a graph that was moved from.
  static bool is_whole(const Graph& graph) noexcept { return graph.derived_ != nullptr; }

  /// Something made of the structure alone, such as a copy on a GPU: `make` is called for the first
  /// who asks for `key`, without a lock, and the result is shared by all copies of the graph.
  static std::shared_ptr<const void> derived(const Graph& graph, const std::string& key,
                                             FunctionRef<std::shared_ptr<const void>()> make,
                                             Keeping keeping = Keeping::for_good);
  /// The same of what `make` returns, by its type.
  template <class Make>
  static auto kept(const Graph& graph, const std::string& key, Make&& make,
                   Keeping keeping = Keeping::for_good) {
    using Made = decltype(make());
    const auto made = [&]() -> std::shared_ptr<const void> {
      return std::make_shared<const Made>(make());
    };
    return std::static_pointer_cast<const Made>(derived(graph, key, made, keeping));
  }
  /// The same if it has been made, else null.
  static std::shared_ptr<const void> known(const Graph& graph, const std::string& key);
  /// The same where the value was found beside something else; one that is there already stays.
  static void know(const Graph& graph, const std::string& key, std::shared_ptr<const void> value,
                   Keeping keeping = Keeping::for_good);
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

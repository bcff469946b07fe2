// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tiles/sample.hpp"

namespace tessera::tiles {

/// What the sizes of tiles follow from. Whoever knows it can make them without waiting for a GPU.
struct WindowCounts {
  std::vector<std::int32_t> columns;  ///< distinct ones of each window that enough rows use
  EdgeOffset dense_edges = 0;         ///< of these columns, of all windows together
};

/// From now on `known_window_counts` returns this.
void know_window_counts(const Graph& graph, const SampledWindows& windows, Side side,
                        WindowCounts counts);

/// Null where nobody has counted them.
std::shared_ptr<const WindowCounts> known_window_counts(const Graph& graph,
                                                        const SampledWindows& windows, Side side);

}  // namespace tessera::tiles

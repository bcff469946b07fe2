// SPDX-License-Identifier: Apache-2.0
#include "tiles/window_counts.hpp"

#include <utility>

#include <fmt/format.h>

#include "graph/access.hpp"

namespace tessera::tiles {
namespace {

std::string key_of(const SampledWindows& windows, Side side) {
  return fmt::format("columns of windows of {} {} rows, {} uses", windows.height, to_string(side),
                     windows.min_uses);
}

}  // namespace

void know_window_counts(const Graph& graph, const SampledWindows& windows, Side side,
                        WindowCounts counts) {
  detail::GraphAccess::know(graph, key_of(windows, side),
                            std::make_shared<WindowCounts>(std::move(counts)));
}

std::shared_ptr<const WindowCounts> known_window_counts(const Graph& graph,
                                                        const SampledWindows& windows, Side side) {
  return std::static_pointer_cast<const WindowCounts>(
      detail::GraphAccess::known(graph, key_of(windows, side)));
}

}  // namespace tessera::tiles

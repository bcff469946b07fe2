// SPDX-License-Identifier: Apache-2.0
#include "tiles/cuda/device_tiles.hpp"

#include <utility>

#include <fmt/format.h>

#include "cuda/array.hpp"
#include "cuda/kept_with.hpp"
#include "cuda/rows.hpp"
#include "cuda/symmetry.hpp"
#include "tiles/cuda/translate_rows.hpp"

namespace tessera::tiles {
namespace {

/// Only for as long as they are translated, where the graph does not keep them: kernels on tiles do
/// not need them. Columns are made of rows on the GPU, where that takes a hundredth of the time.
std::shared_ptr<const cuda::DeviceRows> lent_rows(const Graph& graph, Side side,
                                                  const Place& place) {
  const bool forward = side == Side::forward;
  if (auto kept = forward ? cuda::cached_rows(graph, place) : cuda::cached_columns(graph, place)) {
    return kept;
  }
  if (!forward) {
    return std::make_shared<cuda::DeviceRows>(
        cuda::transposed_rows(*lent_rows(graph, Side::forward, place), place));
  }
  auto lent = std::make_shared<cuda::DeviceRows>();
  lent->num_rows = graph.num_rows();
  lent->num_cols = graph.num_cols();
  lent->num_edges = graph.num_edges();
  lent->wide_offsets = cuda::to_device(graph.row_offsets().span(), place);
  lent->indices = cuda::to_device(graph.col_indices().span(), place);
  return lent;
}

}  // namespace

DeviceTiles translate_on_device(const Graph& graph, const TileOptions& options, const Place& place,
                                WindowBits bits) {
  const auto known = known_window_counts(graph, {options.height, options.min_uses}, options.side);
  return translate_rows(*lent_rows(graph, options.side, place), options.height, place,
                        options.min_uses, known.get(), bits);
}

std::shared_ptr<const cuda::DeviceRows> side_rows(const Graph& graph, Side side,
                                                  const Place& place) {
  return side == Side::forward ? cuda::device_rows(graph, place)
                               : cuda::device_columns(graph, place);
}

TileOptions kept_tiles(const Graph& graph, TileOptions options) {
  if (cuda::is_known_symmetric(graph)) options.side = Side::forward;
  return options;
}

std::shared_ptr<const DeviceTiles> device_tiles(const Graph& graph, const TileOptions& given,
                                                const Place& place) {
  const TileOptions options = kept_tiles(graph, given);
  const std::string what = fmt::format("{} tiles of {} rows, {} uses", to_string(options.side),
                                       options.height, options.min_uses);
  return cuda::kept_with<DeviceTiles>(graph, what, place,
                                      [&] { return translate_on_device(graph, options, place); });
}

}  // namespace tessera::tiles

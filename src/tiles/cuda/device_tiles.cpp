// SPDX-License-Identifier: Apache-2.0
#include "tiles/cuda/device_tiles.hpp"

#include <utility>

#include <fmt/format.h>

#include "cuda/array.hpp"
#include "cuda/cached_rows.hpp"
#include "cuda/kept_with.hpp"
#include "tiles/cuda/translate_rows.hpp"
#include "tiles/window_columns.hpp"

namespace tessera::tiles {
namespace {

/// Only for as long as they are translated, where the graph does not keep them: kernels on tiles do
/// not need them.
std::shared_ptr<const cuda::DeviceRows> lent_rows(const Graph& graph, Side side,
                                                  const Place& place) {
  auto kept =
      side == Side::forward ? cuda::cached_rows(graph, place) : cuda::cached_columns(graph, place);
  if (kept != nullptr) return kept;
  const SideRows rows = rows_of(graph, side);
  auto lent = std::make_shared<cuda::DeviceRows>();
  lent->num_rows = rows.num_rows;
  lent->num_cols = rows.num_cols;
  lent->num_edges = static_cast<EdgeOffset>(rows.indices.size());
  lent->wide_offsets = cuda::to_device(rows.offsets, place);
  lent->indices = cuda::to_device(rows.indices, place);
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

std::shared_ptr<const DeviceTiles> device_tiles(const Graph& graph, const TileOptions& options,
                                                const Place& place) {
  const std::string what = fmt::format("{} tiles of {} rows, {} uses", to_string(options.side),
                                       options.height, options.min_uses);
  return cuda::kept_with<DeviceTiles>(graph, what, place,
                                      [&] { return translate_on_device(graph, options, place); });
}

}  // namespace tessera::tiles

// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <utility>

#include "tessera/core/device.hpp"
#include "tessera/tiles/quad_tiles.hpp"
#include "tessera/tiles/tiled_graph.hpp"
#include "tiles/dot_steps.hpp"
#include "tiles/dot_tiles.hpp"
#include "tiles/prepared_translation.hpp"
#include "tiles/quad_values.hpp"
#include "tiles/quad_window.hpp"
#include "tiles/tile_values.hpp"
#include "tiles/value_bits.hpp"
#include "tiles/window_columns.hpp"

#ifdef TESSERA_WITH_CUDA
#include "cuda/array.hpp"
#include "tiles/cuda/device_quads.hpp"
#include "tiles/cuda/device_tiles.hpp"
#include "tiles/cuda/dot_steps.hpp"
#include "tiles/cuda/dot_tiles.hpp"
#include "tiles/cuda/quad_values.hpp"
#include "tiles/cuda/translate_rows.hpp"
#include "tiles/cuda/value_layout.hpp"
#endif

/// All encodings as they are made in a place, and brought back from a GPU.
namespace tessera::tiles {
namespace {

#ifdef TESSERA_WITH_CUDA
template <class Made>
auto brought(const Made& made, const Place& place) {
  auto tiles = made.host;
  tiles.columns = cuda::to_host(made.columns, place);
  tiles.words = cuda::to_host(made.words, place);
  return tiles;
}

Graph brought_rows(const cuda::DeviceRows& rows, const Place& place) {
  SharedArray<EdgeOffset> offsets;
  if (rows.wide_offsets.empty()) {
    const Buffer<std::int32_t> narrow = cuda::to_host(rows.narrow_offsets, place);
    offsets = std::vector<EdgeOffset>(narrow.begin(), narrow.end());
  } else {
    offsets = cuda::to_host(rows.wide_offsets, place);
  }
  return Graph(rows.num_rows, rows.num_cols, std::move(offsets),
               cuda::to_host(rows.indices, place));
}

Graph without_edges(VertexId num_rows, VertexId num_cols) {
  return Graph(num_rows, num_cols,
               std::vector<EdgeOffset>(static_cast<std::size_t>(num_rows) + 1, 0),
               std::vector<VertexId>());
}
#endif

void check(int height, int min_uses, const Place& place) {
  require_available(place.device);
  check_height(height);
  check_min_uses(min_uses);
}

}  // namespace

TiledGraph translate(const Graph& graph, int height, Side side, const Place& place) {
  check(height, 1, place);
#ifdef TESSERA_WITH_CUDA
  if (place.device.kind == DeviceKind::cuda) {
    return brought(translate_on_device(graph, {height, side}, place), place);
  }
#endif
  return translate(graph, height, side);
}

SplitGraph translate_dense(const Graph& graph, int height, int min_uses, Side side,
                           const Place& place) {
  check(height, min_uses, place);
#ifdef TESSERA_WITH_CUDA
  if (place.device.kind == DeviceKind::cuda) {
    const DeviceTiles made = translate_on_device(graph, {height, side, min_uses}, place);
    return {brought(made, place), made.rest != nullptr
                                      ? brought_rows(*made.rest, place)
                                      : without_edges(made.host.num_rows, made.host.num_cols)};
  }
#endif
  return translate_dense(graph, height, min_uses, side);
}

QuadTiles translate_quads(const Graph& graph, int height, Side side, const Place& place) {
  require_available(place.device);
  check_quad_height(height);
#ifdef TESSERA_WITH_CUDA
  if (place.device.kind == DeviceKind::cuda) {
    return brought(arrange_on_device(graph, {height, side}, place), place);
  }
#endif
  return translate_quads(graph, height, side);
}

ValueLayout place_values(const Graph& graph, const TiledGraph& tiled, Side side,
                         const Place& place) {
  require_available(place.device);
  check_value_height(tiled.height);
#ifdef TESSERA_WITH_CUDA
  if (place.device.kind == DeviceKind::cuda) {
    const auto made = device_value_layout(graph, tiled.height, side, place);
    return {made->unit_offsets, cuda::to_host(made->starts, place),
            cuda::to_host(made->edges, place)};
  }
#endif
  return place_values(graph, tiled, side);
}

SharedArray<std::int32_t> place_quad_values(const Graph& graph, int height, Side side,
                                            const Place& place) {
  require_available(place.device);
  check_quad_height(height);
#ifdef TESSERA_WITH_CUDA
  if (place.device.kind == DeviceKind::cuda) {
    return cuda::to_host(device_quad_values(graph, height, side, place)->edges, place);
  }
#endif
  return place_quad_values(graph, translate_quads(graph, height, side), side);
}

DotTiles make_dot_tiles(const Graph& graph, const TiledGraph& tiled, Side side,
                        const Place& place) {
  require_available(place.device);
#ifdef TESSERA_WITH_CUDA
  if (place.device.kind == DeviceKind::cuda) {
    const auto there = device_dot_tiles(graph, side, place);
    DotTiles made;
    made.tiles = cuda::to_host(there->tiles, place);
    if (made.tiles.empty()) return made;
    // There is room for more than there are.
    const DotTile& last = made.tiles.back();
    const std::int64_t blocks = std::int64_t{last.first_blocks[dot_tile_strips - 1]} +
                                code_blocks(last.counts[dot_tile_strips - 1]);
    const Buffer<std::uint32_t> codes = cuda::to_host(there->codes, place);
    made.codes =
        std::vector<std::uint32_t>(codes.begin(), codes.begin() + blocks * code_block_words);
    return made;
  }
#endif
  return make_dot_tiles(graph, tiled, side);
}

DotSteps make_dot_steps(const Graph& graph, const TiledGraph& tiled, int run_steps, Side side,
                        const Place& place) {
  require_available(place.device);
#ifdef TESSERA_WITH_CUDA
  if (place.device.kind == DeviceKind::cuda) {
    const auto there = device_dot_steps(graph, run_steps, side, place);
    return {cuda::to_host(there->masks, place), cuda::to_host(there->runs, place),
            cuda::to_host(there->places, place)};
  }
#endif
  return make_dot_steps(graph, tiled, run_steps, side);
}

std::function<void()> prepared_translation(const Graph& graph, int height, Side side,
                                           const Place& place, int min_uses) {
  check(height, min_uses, place);
#ifdef TESSERA_WITH_CUDA
  if (place.device.kind == DeviceKind::cuda) {
    const auto rows = side_rows(graph, side, place);
    return [rows, height, min_uses, place] {
      translate_rows(*rows, height, place, min_uses);
      synchronise(place.device, place.stream);
    };
  }
#endif
  if (min_uses == 1) return [graph, height, side] { translate(graph, height, side); };
  return [graph, height, min_uses, side] { translate_dense(graph, height, min_uses, side); };
}

std::function<void()> prepared_quads(const Graph& graph, int height, Side side,
                                     const Place& place) {
  require_available(place.device);
  check_quad_height(height);
#ifdef TESSERA_WITH_CUDA
  if (place.device.kind == DeviceKind::cuda) {
    const auto rows = side_rows(graph, side, place);
    return [rows, height, place] {
      arrange_quads(translate_rows(*rows, height, place, 1, nullptr, WindowBits::row_sets), place);
      synchronise(place.device, place.stream);
    };
  }
#endif
  return [graph, height, side] { translate_quads(graph, height, side); };
}

}  // namespace tessera::tiles

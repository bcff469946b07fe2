// SPDX-License-Identifier: Apache-2.0
#include "tiles/quad_values.hpp"

#include "tessera/core/parallel.hpp"
#include "tiles/quad_fragment.hpp"
#include "tiles/quad_window.hpp"
#include "tiles/window_columns.hpp"

namespace tessera::tiles {
namespace {

class QuadPlacing {
 public:
  QuadPlacing(const Graph& graph, const QuadTiles& quads, Side side)
      : quads_(quads), position_of_(graph, side) {}

  void place_window(std::int64_t window, std::int32_t* edges) const {
    const int strips = quads_.height / 16;
    for (EdgeOffset step = quads_.step_offsets[window]; step < quads_.step_offsets[window + 1];
         ++step) {
      const EdgeOffset in_window = step - quads_.step_offsets[window];
      const EdgeOffset tile = quads_.tile_offsets[window] + in_window / 2;
      for (int strip = 0; strip < strips; ++strip) {
        const std::uint32_t* const words =
            quads_.words.data() + (tile * strips + strip) * quad_strip_words;
        std::int32_t* next = edges + (step * strips + strip) * 32 * quad_lane_values;
        for (int i = 0; i < 32 * 4; ++i) {
          const QuadRegister at = quad_register(i / 4, i % 4);
          const int quad = static_cast<int>(in_window % 2) * quads_per_step + at.quad;
          const QuadColumns columns = quad_columns_of(words, at.row, quad);
          const std::int64_t row = window * quads_.height + strip * 16 + at.row;
          const VertexId* const ids =
              quads_.columns.data() + step * quad_step_columns + at.quad * quad_columns;
          *next++ = columns.first < 0 ? -1 : position_of_(row, ids[columns.first]);
          *next++ = columns.second < 0 ? -1 : position_of_(row, ids[columns.second]);
        }
      }
    }
  }

 private:
  const QuadTiles& quads_;
  EdgePositions position_of_;
};

}  // namespace

SharedArray<std::int32_t> place_quad_values(const Graph& graph, const QuadTiles& quads, Side side) {
  Buffer<std::int32_t> edges(quads.num_steps() * (quads.height / 16) * 32 * quad_lane_values);
  const QuadPlacing placing(graph, quads, side);
  parallel_for(quads.num_windows(), 16,
               [&](std::int64_t window) { placing.place_window(window, edges.data()); });
  return edges;
}

}  // namespace tessera::tiles

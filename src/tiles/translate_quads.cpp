// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "tessera/core/error.hpp"
#include "tessera/tiles/quad_tiles.hpp"
#include "tiles/quad_fragment.hpp"
#include "tiles/quad_window.hpp"
#include "tiles/window_tiles.hpp"

namespace tessera::tiles {
namespace {

constexpr int strip_rows = 16;
constexpr int quads_per_tile = 2 * quads_per_step;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

template <int num_words>
class QuadTranslation {
 public:
  QuadTranslation(const SideRows& rows, int height)
      : rows_(rows), height_(height), windows_(rows, height, quad_step_columns) {
    using Window = QuadWindow<num_words>;
    windows_.template translate<Window>(
        [&](VertexId first, VertexId last, Window& window, WindowRange& range) {
          return add_window(first, last, window, range);
        });
  }

  QuadTiles tiles() {
    auto tiles = windows_.template joined<QuadTiles>();
    tiles.num_edges = std::ssize(rows_.indices);
    for (const WindowRange& range : windows_.ranges()) tiles.num_quads += range.quads;
    return tiles;
  }

 private:
  EdgeOffset add_window(VertexId first, VertexId last, QuadWindow<num_words>& window,
                        WindowRange& range) {
    window.arrange(rows_, first, last);
    const auto quads = window.quads();
    const std::size_t steps = (quads.size() + quads_per_step - 1) / quads_per_step;
    const std::size_t tiles = (quads.size() + quads_per_tile - 1) / quads_per_tile;
    range.quads += std::ssize(quads);
    const std::size_t first_column = range.columns.size();
    for (const auto& quad : quads) {
      for (int i = 0; i < quad_columns; ++i) {
        range.columns.push_back(window.column(quad.columns[at(i < quad.size ? i : 0)]));
      }
    }
    if (!quads.empty()) {
      range.columns.resize(first_column + steps * quad_step_columns,
                           window.column(quads.back().columns[0]));
    }
    write_words(window, static_cast<int>(tiles), range);
    return std::ssize(quads) * quad_columns;
  }

  void write_words(const QuadWindow<num_words>& window, int tiles, WindowRange& range) {
    const auto quads = window.quads();
    const int strips = height_ / strip_rows;
    const std::size_t first_word = range.words.size();
    range.words.resize(first_word + at(std::int64_t{tiles} * strips * quad_strip_words));
    fill_empty(std::span(range.words).subspan(first_word));
    for (std::size_t q = 0; q < quads.size(); ++q) {
      const auto tile = static_cast<std::int64_t>(q / quads_per_tile);
      const int quad = static_cast<int>(q % quads_per_tile);
      for_each_row(quads[q].rows, [&](int row) {
        unsigned used = 0;
        for (int i = 0; i < quads[q].size; ++i) {
          used |= window.rows_of(quads[q].columns[at(i)]).contains(row) ? 1u << i : 0u;
        }
        std::uint32_t* const strip = range.words.data() + first_word +
                                     at((tile * strips + row / strip_rows) * quad_strip_words);
        const QuadPlace place = quad_place(row % strip_rows, quad);
        const QuadEntries entries = quad_entries(used);
        std::uint32_t& indices = strip[place.index_word];
        indices = (indices & ~(0xFu << place.index_shift)) | std::uint32_t{entries.indices}
                                                                 << place.index_shift;
        strip[place.bit_word] |= (entries.present & 1u) << place.bit | (entries.present >> 1u)
                                                                           << (place.bit + 8);
      });
    }
  }

  /// Indices that rise where there is no entry, as the hardware wants them.
  static void fill_empty(std::span<std::uint32_t> words) {
    constexpr std::uint32_t empty = quad_entries(0).indices * 0x11111111u;
    for (std::size_t strip = 0; strip < words.size(); strip += quad_strip_words) {
      std::fill_n(words.begin() + static_cast<std::ptrdiff_t>(strip), 32, empty);
    }
  }

  template <class Visit>
  static void for_each_row(const RowSet<num_words>& rows, Visit&& visit) {
    for (int word = 0; word < num_words; ++word) {
      for (std::uint64_t bits = rows.words[at(word)]; bits != 0; bits &= bits - 1) {
        visit(64 * word + std::countr_zero(bits));
      }
    }
  }

  SideRows rows_;
  int height_;
  WindowRanges windows_;
};

}  // namespace

void check_quad_height(int height) {
  if (std::find(quad_heights.begin(), quad_heights.end(), height) != quad_heights.end()) return;
  throw Error(ErrorCode::invalid_argument,
              "2:4 windows of " + std::to_string(height) + " rows do not exist", "height",
              "use 16, 32, 64, 128 or 256");
}

QuadTiles translate_quads(const Graph& graph, int height, Side side) {
  check_quad_height(height);
  const SideRows rows = rows_of(graph, side);
  if (height <= 64) return QuadTranslation<1>(rows, height).tiles();
  if (height <= 128) return QuadTranslation<2>(rows, height).tiles();
  return QuadTranslation<4>(rows, height).tiles();
}

}  // namespace tessera::tiles

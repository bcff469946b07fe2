// SPDX-License-Identifier: Apache-2.0
#include "tessera/tiles/statistics.hpp"

#include <algorithm>
#include <bit>
#include <ostream>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "tiles/window_columns.hpp"

namespace tessera::tiles {
namespace {

double ratio(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

void count_in(std::vector<std::int64_t>& histogram, std::size_t bin) {
  if (bin >= histogram.size()) histogram.resize(bin + 1);
  ++histogram[bin];
}

void add_to(std::vector<std::int64_t>& sums, const std::vector<std::int64_t>& more) {
  if (more.size() > sums.size()) sums.resize(more.size());
  for (std::size_t i = 0; i < more.size(); ++i) sums[i] += more[i];
}

/// Counts only: sizes and shares follow from them.
WindowStats combined(WindowStats a, const WindowStats& b) {
  a.blocks_before += b.blocks_before;
  a.blocks_after += b.blocks_after;
  a.distinct_columns += b.distinct_columns;
  a.tiled_bytes += b.tiled_bytes;
  add_to(a.blocks_histogram, b.blocks_histogram);
  add_to(a.shared_by, b.shared_by);
  return a;
}

void count_window(const WindowColumns& window, WindowStats& stats) {
  const auto columns = window.columns();
  const auto distinct = static_cast<std::int64_t>(columns.size());
  const std::int64_t blocks = (distinct + stats.block_columns - 1) / stats.block_columns;
  stats.distinct_columns += distinct;
  stats.blocks_after += blocks;
  for (std::size_t k = 0; k < columns.size(); ++k) {
    const bool opens_block =
        k == 0 || columns[k] / stats.block_columns != columns[k - 1] / stats.block_columns;
    stats.blocks_before += opens_block ? 1 : 0;
  }
  for (const std::int32_t uses : window.uses()) {
    count_in(stats.shared_by,
             static_cast<std::size_t>(std::bit_width(static_cast<std::uint32_t>(uses)) - 1));
  }
  count_in(stats.blocks_histogram,
           static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(blocks))));
  const std::int64_t steps = (distinct + step_columns - 1) / step_columns;
  const std::int64_t tiles = (distinct + tile_columns - 1) / tile_columns;
  stats.tiled_bytes += steps * step_columns * 4 + tiles * 2 * stats.height * 4 + 16;
}

}  // namespace

double WindowStats::reuse() const noexcept { return ratio(num_edges, distinct_columns); }
double WindowStats::density_after() const noexcept {
  return ratio(num_edges, blocks_after * height * block_columns);
}
double WindowStats::density_before() const noexcept {
  return ratio(num_edges, blocks_before * height * block_columns);
}
double WindowStats::padding() const noexcept {
  return blocks_after == 0 ? 0 : 1 - ratio(distinct_columns, blocks_after * block_columns);
}

WindowStats window_stats(const Graph& graph, int height, int block_columns, Side side) {
  check_height(height);
  if (block_columns < 1) {
    throw Error(ErrorCode::invalid_argument, "blocks have at least one column", "block_columns");
  }
  const SideRows rows = rows_of(graph, side);
  WindowStats empty;
  empty.height = height;
  empty.block_columns = block_columns;
  const auto count = [&](std::int64_t begin, std::int64_t end) {
    WindowStats stats = empty;
    WindowColumns window;
    for (std::int64_t w = begin; w < end; ++w) {
      const auto [first, last] = rows.window(w, height);
      window.collect(rows, first, last);
      count_window(window, stats);
    }
    return stats;
  };
  const std::int64_t windows = rows.num_windows(height);
  WindowStats stats = parallel_reduce(windows, std::max(1, 4096 / height), empty, count, combined);
  stats.num_windows = windows;
  stats.num_edges = graph.num_edges();
  stats.tiled_bytes += 16;
  stats.csr_bytes = (std::int64_t{rows.num_rows} + 1) * 8 + graph.num_edges() * 4;
  return stats;
}

std::ostream& operator<<(std::ostream& out, const WindowStats& stats) {
  return out << fmt::format(
             "{} windows of {} rows: {} blocks of {} columns ({} before translation), {:.3g} % of "
             "their bits set, {:.3g} % padding, each gathered row used {:.3g} times, {} bytes ({} "
             "as CSR)",
             stats.num_windows, stats.height, stats.blocks_after, stats.block_columns,
             stats.blocks_before, 100 * stats.density_after(), 100 * stats.padding(), stats.reuse(),
             stats.tiled_bytes, stats.csr_bytes);
}

}  // namespace tessera::tiles

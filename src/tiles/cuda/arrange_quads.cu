// SPDX-License-Identifier: Apache-2.0
#include "tiles/cuda/arrange_quads.hpp"

#include <array>
#include <utility>
#include <vector>

#include "core/cuda_handles.hpp"
#include "cuda/array.hpp"
#include "cuda/launch.cuh"
#include "cuda/search.cuh"
#include "tiles/cuda/translate_rows.hpp"
#include "tiles/quad_fragment.hpp"
#include "tiles/quad_order.hpp"

namespace tessera::tiles {
namespace {

constexpr int block_warps = 4;
constexpr int block_threads = 32 * block_warps;
constexpr unsigned all_lanes = ~0u;

/// Windows whose columns are sets of rows, and their segments.
struct SetsView {
  std::int64_t num_windows = 0;
  const EdgeOffset* step_offsets = nullptr;  ///< of 16 columns
  const VertexId* columns = nullptr;
  const std::uint32_t* sets = nullptr;
  std::int64_t num_segments = 0;
  const EdgeOffset* segment_offsets = nullptr;  ///< of windows
  /// Of each column: four times its quad, counted within the segment, and its place there.
  std::int32_t* places = nullptr;
};

__device__ int lane_number() { return static_cast<int>(threadIdx.x) % 32; }

__device__ std::int64_t warp_number() {
  return std::int64_t{blockIdx.x} * block_warps + threadIdx.x / 32;
}

__device__ std::int64_t window_of(const EdgeOffset* offsets, std::int64_t num_windows,
                                  std::int64_t unit) {
  return cuda::lower_bound(offsets, 0, num_windows + 1, unit + 1) - 1;
}

/// A part of a window's turns.
struct Segment {
  __device__ Segment(const SetsView& view, std::int64_t number) {
    const std::int64_t window = window_of(view.segment_offsets, view.num_windows, number);
    first_column = view.step_offsets[window] * step_columns;
    std::int64_t end = view.step_offsets[window + 1] * step_columns;
    // Columns that fill the last step repeat the one before.
    while (end - first_column > 1 && view.columns[end - 1] == view.columns[end - 2]) --end;
    order.num_columns = static_cast<std::int32_t>(end - first_column);
    const auto in_window = static_cast<std::int32_t>(number - view.segment_offsets[window]);
    begin_turn = in_window * segment_turns;
    end_turn = order.segment_end(in_window);
  }

  /// The column that a lane brings to the eight turns from `turn` on; -1: none.
  __device__ std::int32_t column(std::int32_t turn) const {
    const std::int32_t own = turn + lane_number() / 4;
    return own < end_turn ? order.column(own, lane_number() % 4) : -1;
  }

  QuadOrder order;
  std::int64_t first_column;
  std::int32_t begin_turn;
  std::int32_t end_turn;
};

template <int words>
__device__ void load_set(const SetsView& view, const Segment& segment, std::int32_t column,
                         std::uint32_t (&set)[words]) {
  const std::uint32_t* const from = view.sets + (segment.first_column + column) * words;
#pragma unroll
  for (int i = 0; i < words; ++i) set[i] = column >= 0 ? __ldg(from + i) : 0u;
}

/// The open quad of a lane.
template <int words>
struct OpenQuad {
  std::uint32_t once[words] = {};   ///< rows that use a column of it
  std::uint32_t twice[words] = {};  ///< rows that use two
  int size = 0;
  std::int32_t number = 0;

  __device__ bool fits(const std::uint32_t* set) const {
    std::uint32_t common = 0;
#pragma unroll
    for (int i = 0; i < words; ++i) common |= set[i] & twice[i];
    return common == 0;
  }
  __device__ int rows_twice() const {
    int rows = 0;
#pragma unroll
    for (int i = 0; i < words; ++i) rows += __popc(twice[i]);
    return rows;
  }
  __device__ void clear() {
    size = 0;
#pragma unroll
    for (int i = 0; i < words; ++i) once[i] = twice[i] = 0;
  }
  /// Returns the place of the column.
  __device__ std::int32_t add(const std::uint32_t* set) {
#pragma unroll
    for (int i = 0; i < words; ++i) {
      twice[i] |= once[i] & set[i];
      once[i] |= set[i];
    }
    const std::int32_t place = number * quad_columns + size;
    if (++size == quad_columns) clear();
    return place;
  }
};

template <int words>
__global__ __launch_bounds__(block_threads) void arrange_segments(const SetsView view,
                                                                  std::int32_t* quads_of_segments) {
  __shared__ std::uint32_t sets[block_warps][32][words];
  __shared__ std::int32_t places[block_warps][32];
  if (warp_number() >= view.num_segments) return;
  const Segment segment(view, warp_number());
  auto& warp_sets = sets[threadIdx.x / 32];
  auto& warp_places = places[threadIdx.x / 32];
  const int lane = lane_number();
  OpenQuad<words> quad;
  std::int32_t num_quads = 0;
  std::int32_t column = segment.column(segment.begin_turn);
  std::uint32_t next[words];
  load_set(view, segment, column, next);
  for (std::int32_t turn = segment.begin_turn; turn < segment.end_turn; turn += 8) {
#pragma unroll
    for (int i = 0; i < words; ++i) warp_sets[lane][i] = next[i];
    const std::int32_t own = column;
    column = segment.column(turn + 8);
    load_set(view, segment, column, next);
    __syncwarp();
    for (unsigned left = __ballot_sync(all_lanes, own >= 0); left != 0; left &= left - 1) {
      const int from = __ffs(static_cast<int>(left)) - 1;
      const std::uint32_t* const set = warp_sets[from];
      // The fullest that fits, of equals the first; where none does, the one of which most rows use
      // two makes way.
      const auto rank = [&](int first_by) { return first_by * 32 + 31 - lane; };
      int best = __reduce_max_sync(all_lanes, quad.fits(set) ? rank(quad.size) : -1);
      const bool crowded = best < 0;
      if (crowded) best = __reduce_max_sync(all_lanes, rank(quad.rows_twice()));
      const bool opens = crowded || best < 32;
      if (lane == 31 - best % 32) {
        if (opens) {
          quad.clear();
          quad.number = num_quads;
        }
        warp_places[from] = quad.add(set);
      }
      num_quads += opens ? 1 : 0;
    }
    __syncwarp();
    if (own >= 0) view.places[segment.first_column + own] = warp_places[lane];
  }
  if (lane == 0) quads_of_segments[warp_number()] = num_quads;
}

/// What the words of tiles are made of.
struct QuadsView {
  int height = 16;
  std::int64_t num_tiles = 0;
  const EdgeOffset* step_offsets = nullptr;  ///< of 32 columns
  const EdgeOffset* tile_offsets = nullptr;
  const std::int32_t* quads = nullptr;       ///< of windows
  const EdgeOffset* first_places = nullptr;  ///< of segments
  std::int32_t* numbers =
      nullptr;  ///< by place: the window's column there, counted from 1; 0: none
  VertexId* columns = nullptr;
  std::uint32_t* words = nullptr;
};

__global__ __launch_bounds__(block_threads) void number_places(const SetsView view,
                                                               const QuadsView quads) {
  if (warp_number() >= view.num_segments) return;
  const Segment segment(view, warp_number());
  std::int32_t* const numbers = quads.numbers + quads.first_places[warp_number()];
  for (std::int32_t turn = segment.begin_turn; turn < segment.end_turn; turn += 8) {
    const std::int32_t column = segment.column(turn);
    if (column >= 0) numbers[view.places[segment.first_column + column]] = column + 1;
  }
}

/// `quad_entries` of all sets of columns, four bits and two bits for each.
constexpr std::uint64_t all_indices = [] {
  std::uint64_t all = 0;
  for (unsigned used = 0; used < 16; ++used) {
    all |= std::uint64_t{quad_entries(used).indices} << 4 * used;
  }
  return all;
}();
constexpr std::uint32_t all_present = [] {
  std::uint32_t all = 0;
  for (unsigned used = 0; used < 16; ++used) all |= quad_entries(used).present << 2 * used;
  return all;
}();

/// Which of a quad's columns a row uses: `low` has the rows of the first two, `high` of the others,
/// 16 bits each.
__device__ unsigned used_by(std::uint32_t low, std::uint32_t high, int row) {
  return (low >> row & 1u) | (low >> (row + 16) & 1u) << 1 | (high >> row & 1u) << 2 |
         (high >> (row + 16) & 1u) << 3;
}

/// The words of 16 rows and a tile (tiles/quad_fragment.hpp). Each lane has the rows of two places.
__device__ void write_strip(std::uint32_t rows, std::uint32_t* words) {
  const int lane = lane_number();
  const int group = lane / 4;
  const int step = lane % 4 / 2;
  const int half = lane % 2;
  std::uint32_t indices = 0;
  std::uint32_t present[2] = {};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int quad = 8 * step + 4 * half + i;
    const std::uint32_t low = __shfl_sync(all_lanes, rows, 2 * quad);
    const std::uint32_t high = __shfl_sync(all_lanes, rows, 2 * quad + 1);
#pragma unroll
    for (int lower = 0; lower < 2; ++lower) {
      const unsigned used = used_by(low, high, group + 8 * lower);
      indices |= static_cast<std::uint32_t>(all_indices >> 4 * used & 15u) << (16 * lower + 4 * i);
      const std::uint32_t entries = all_present >> 2 * used;
      present[i / 2] |= ((entries & 1u) | (entries >> 1 & 1u) << 8)
                        << (16 * (i % 2) + 4 * step + 2 * half + lower);
    }
  }
  words[lane] = indices;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    present[i] |= __shfl_xor_sync(all_lanes, present[i], 1);
    present[i] |= __shfl_xor_sync(all_lanes, present[i], 2);
    if (lane % 4 == i) words[32 + 2 * group + i] = present[i];
  }
}

__global__ __launch_bounds__(block_threads) void write_tiles(const SetsView view,
                                                             const QuadsView quads) {
  const int strips = quads.height / 16;
  const int set_words = row_set_words(quads.height);
  const std::int64_t tile = warp_number() / strips;
  const auto strip = static_cast<int>(warp_number() % strips);
  if (tile >= quads.num_tiles) return;
  const std::int64_t window = window_of(quads.tile_offsets, view.num_windows, tile);
  const std::int64_t first_column = view.step_offsets[window] * step_columns;
  const std::int64_t window_place = quads.step_offsets[window] * quad_step_columns;
  const std::int64_t end_place = quads.step_offsets[window + 1] * quad_step_columns;
  const std::int64_t own_place = window_place +
                                 (tile - quads.tile_offsets[window]) * 2 * quad_step_columns +
                                 2 * lane_number();
  std::int32_t numbers[2];
  std::uint32_t rows = 0;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    numbers[i] = own_place + i < end_place ? quads.numbers[own_place + i] : 0;
    if (numbers[i] == 0) continue;
    const std::int64_t word = (first_column + numbers[i] - 1) * set_words + strip / 2;
    rows |= (view.sets[word] >> 16 * (strip % 2) & 0xffffu) << 16 * i;
  }
  write_strip(rows, quads.words + (tile * strips + strip) * quad_strip_words);
  if (strip != 0) return;
  // A place without a column repeats the first of its quad, or of the last quad.
  const std::int32_t first = __shfl_sync(all_lanes, numbers[0], lane_number() / 2 * 2);
  const std::int32_t last = quads.numbers[window_place + (quads.quads[window] - 1) * quad_columns];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const std::int32_t number = numbers[i] > 0 ? numbers[i] : first > 0 ? first : last;
    if (own_place + i < end_place) {
      quads.columns[own_place + i] = view.columns[first_column + number - 1];
    }
  }
}

/// No fewer segments than a window has: its last step may not be full.
std::vector<EdgeOffset> offsets_of_segments(const TiledGraph& windows) {
  std::vector<EdgeOffset> offsets = {0};
  for (std::int64_t w = 0; w < windows.num_windows(); ++w) {
    const EdgeOffset steps = windows.step_offsets[w + 1] - windows.step_offsets[w];
    const QuadOrder order{static_cast<std::int32_t>(steps * step_columns)};
    offsets.push_back(offsets.back() + order.num_segments());
  }
  return offsets;
}

void start_arranging(int words, const SetsView& view, std::int32_t* quads, Stream stream) {
  constexpr std::array kernels = {arrange_segments<1>, arrange_segments<2>, arrange_segments<4>,
                                  arrange_segments<8>};
  const std::size_t kernel = words == 1 ? 0 : words == 2 ? 1 : words == 4 ? 2 : 3;
  cuda::launch(kernels[kernel], dim3(cuda::num_blocks(view.num_segments, block_warps)),
               block_threads, stream, view, quads);
}

/// How many quads windows have, and where those of each segment begin.
struct QuadCounts {
  std::vector<std::int32_t> of_windows;
  std::vector<EdgeOffset> first_places;
};

QuadCounts count_quads(DeviceQuads& quads, const std::vector<EdgeOffset>& segment_offsets,
                       std::span<const std::int32_t> of_segments) {
  const auto windows = static_cast<std::int64_t>(segment_offsets.size()) - 1;
  QuadCounts counts;
  Buffer<EdgeOffset> steps(windows + 1);
  Buffer<EdgeOffset> half_steps(windows + 1);
  Buffer<EdgeOffset> tiles(windows + 1);
  steps[0] = half_steps[0] = tiles[0] = 0;
  for (std::int64_t w = 0; w < windows; ++w) {
    EdgeOffset of_window = 0;
    const auto at = static_cast<std::size_t>(w);
    for (EdgeOffset s = segment_offsets[at]; s < segment_offsets[at + 1]; ++s) {
      counts.first_places.push_back(steps[w] * quad_step_columns + of_window * quad_columns);
      of_window += of_segments[static_cast<std::size_t>(s)];
    }
    const EdgeOffset of_steps = (of_window + quads_per_step - 1) / quads_per_step;
    steps[w + 1] = steps[w] + of_steps;
    half_steps[w + 1] = 2 * steps[w + 1];
    tiles[w + 1] = tiles[w] + (of_steps + 1) / 2;
    counts.of_windows.push_back(static_cast<std::int32_t>(of_window));
    quads.host.num_quads += of_window;
  }
  quads.host.step_offsets = std::move(steps);
  quads.half_step_offsets = std::move(half_steps);
  quads.host.tile_offsets = std::move(tiles);
  return counts;
}

}  // namespace

DeviceQuads arrange_quads(const DeviceTiles& sets, const Place& place) {
  const cuda_backend::CurrentDevice current(place.device.index);
  DeviceQuads quads;
  quads.rest = sets.rest;
  quads.host.num_rows = sets.host.num_rows;
  quads.host.num_cols = sets.host.num_cols;
  quads.host.num_edges = sets.host.num_edges;
  quads.host.height = sets.host.height;
  const std::vector<EdgeOffset> segment_offsets = offsets_of_segments(sets.host);
  const auto offsets = cuda::to_device(std::span<const EdgeOffset>(segment_offsets), place);
  Buffer<std::int32_t> places(sets.columns.size(), place);
  SetsView view;
  view.num_windows = sets.host.num_windows();
  view.step_offsets = sets.step_offsets.data();
  view.columns = sets.columns.data();
  view.sets = sets.words.data();
  view.num_segments = segment_offsets.back();
  view.segment_offsets = offsets.data();
  view.places = places.data();
  Buffer<std::int32_t> of_segments(view.num_segments, place);
  start_arranging(row_set_words(sets.host.height), view, of_segments.data(), place.stream);
  const QuadCounts counts =
      count_quads(quads, segment_offsets, cuda::to_host(of_segments, place).span());

  const auto first_places =
      cuda::to_device(std::span<const EdgeOffset>(counts.first_places), place);
  const auto of_windows = cuda::to_device(std::span<const std::int32_t>(counts.of_windows), place);
  const auto step_offsets = cuda::to_device(quads.host.step_offsets.span(), place);
  const auto tile_offsets = cuda::to_device(quads.host.tile_offsets.span(), place);
  quads.columns = Buffer<VertexId>(quads.host.num_steps() * quad_step_columns, place);
  quads.words = Buffer<std::uint32_t>(quads.host.num_tiles() * quads.host.words_per_tile(), place);
  Buffer<std::int32_t> numbers(quads.columns.size(), place);
  cuda::clear(numbers, place);
  QuadsView tiles;
  tiles.height = quads.host.height;
  tiles.num_tiles = quads.host.num_tiles();
  tiles.step_offsets = step_offsets.data();
  tiles.tile_offsets = tile_offsets.data();
  tiles.quads = of_windows.data();
  tiles.first_places = first_places.data();
  tiles.numbers = numbers.data();
  tiles.columns = quads.columns.data();
  tiles.words = quads.words.data();
  cuda::launch(number_places, dim3(cuda::num_blocks(view.num_segments, block_warps)), block_threads,
               place.stream, view, tiles);
  cuda::launch(write_tiles,
               dim3(cuda::num_blocks(tiles.num_tiles * (tiles.height / 16), block_warps)),
               block_threads, place.stream, view, tiles);
  return quads;
}

}  // namespace tessera::tiles

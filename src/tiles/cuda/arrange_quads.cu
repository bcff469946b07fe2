// SPDX-License-Identifier: Apache-2.0
#include "tiles/cuda/device_quads.hpp"

#include <array>
#include <numeric>
#include <span>
#include <utility>

#include "core/cuda_handles.hpp"
#include "cuda/array.hpp"
#include "cuda/edge_arrays.hpp"
#include "cuda/launch.cuh"
#include "cuda/pinned.hpp"
#include "tiles/cuda/open_quads.cuh"
#include "tiles/cuda/quad_segments.cuh"
#include "tiles/cuda/translate_rows.hpp"
#include "tiles/cuda/write_quads.cuh"

namespace tessera::tiles {
namespace {

/// Several segments in a warp. They begin with the first group of open quads; when one of them
/// needs more, all go on with all groups.
template <int num_words>
__global__ __launch_bounds__(quad_block_threads) void arrange_segments(
    const SetsView view, QuadNote* notes, std::int32_t* quads_of_segments) {
  using Lanes = SegmentLanes<num_words>;
  constexpr int block_segments = quad_block_threads / Lanes::count;
  __shared__ RowWords<num_words> sets[block_segments][Lanes::count];
  const int in_block = static_cast<int>(threadIdx.x) / Lanes::count;
  const std::int64_t number = std::int64_t{blockIdx.x} * block_segments + in_block;
  const bool is_segment = number < view.num_segments;
  // A warp stays together: what is left over has no columns.
  const Segment segment = is_segment ? numbered_segment(view, number) : Segment{};
  const auto load = [&](std::int32_t place) {
    const auto* const from = reinterpret_cast<const RowWords<num_words>*>(view.sets);
    return place < segment.num_columns ? from[segment.first_column + segment.column(place)]
                                       : RowWords<num_words>{};
  };
  RowWords<num_words> ahead = load(Lanes::own());
  notes += segment.first_note;
  for (std::int32_t i = Lanes::own(); i < segment.most_quads(); i += Lanes::count) notes[i] = {};
  OpenQuads<num_words> open(notes);
  const auto add = [&]<int num_groups>(std::int32_t first) {
    const auto* const parts = reinterpret_cast<const RowWords<Lanes::words>*>(sets[in_block]);
#pragma unroll 8
    for (int i = 0; i < Lanes::count; ++i) {
      open.template add<num_groups>(parts[i * Lanes::parts + Lanes::part()], first + i,
                                    first + i < segment.num_columns);
    }
  };
  bool few = true;
  for (std::int32_t first = 0; __any_sync(all_lanes, first < segment.num_columns);
       first += Lanes::count) {
    sets[in_block][Lanes::own()] = ahead;
    __syncwarp();
    ahead = load(first + Lanes::count + Lanes::own());
    if (few) {
      add.template operator()<1>(first);
      const std::int32_t end = min(first + Lanes::count, segment.num_columns);
      few = !__any_sync(all_lanes, open.next() < end);
      if (!few) open.use_all_groups();
    }
    // Of the first such round those columns that are left.
    if (!few) add.template operator()<quad_groups>(first);
    __syncwarp();
  }
  if (Lanes::own() == 0 && is_segment) quads_of_segments[number] = open.num_quads();
}

/// How many quads and columns windows have. The numbers of segments become those of the window's
/// segments before.
__global__ __launch_bounds__(quad_block_threads) void count_quads(const SetsView view,
                                                                  std::int32_t* quads_of_segments,
                                                                  std::int32_t* quads_of_windows,
                                                                  std::int32_t* columns_of_windows,
                                                                  EdgeOffset* offsets) {
  const std::int64_t window = cuda::thread_number();
  if (window >= view.num_windows) return;
  const auto later =
      static_cast<std::int32_t>(view.later_segments(window + 1) - view.later_segments(window));
  std::int32_t quads = 0;
  for (std::int32_t s = 0; s <= later; ++s) {
    std::int32_t& counted = quads_of_segments[view.segment_number(window, s)];
    const std::int32_t of_segment = counted;
    counted = quads;
    quads += of_segment;
  }
  quads_of_windows[window] = quads;
  columns_of_windows[window] = view.order(window).num_columns;
  offsets[window] = QuadOffsets::of_window(quads);
}

template <int num_words>
void start_arranging(const SetsView& view, QuadNote* notes, std::int32_t* quads, Stream stream) {
  constexpr int block_segments = quad_block_threads / SegmentLanes<num_words>::count;
  cuda::launch(arrange_segments<num_words>,
               dim3(cuda::num_blocks(view.num_segments, block_segments)), quad_block_threads,
               stream, view, notes, quads);
}

void start_arranging(int words, const SetsView& view, QuadNote* notes, std::int32_t* quads,
                     Stream stream) {
  constexpr std::array start = {start_arranging<1>, start_arranging<2>, start_arranging<4>,
                                start_arranging<8>};
  start[words == 1 ? 0 : words == 2 ? 1 : words == 4 ? 2 : 3](view, notes, quads, stream);
}

/// Offsets of windows for the host, where work is divided.
void set_offsets(DeviceQuads& quads, std::span<const EdgeOffset> sums) {
  const auto count = static_cast<std::int64_t>(sums.size());
  Buffer<EdgeOffset> steps(count);
  Buffer<EdgeOffset> half_steps(count);
  Buffer<EdgeOffset> tiles(count);
  for (std::int64_t w = 0; w < count; ++w) {
    const EdgeOffset sum = sums[static_cast<std::size_t>(w)];
    steps[w] = QuadOffsets::steps(sum);
    half_steps[w] = 2 * steps[w];
    tiles[w] = QuadOffsets::tiles(sum);
  }
  quads.host.step_offsets = std::move(steps);
  quads.half_step_offsets = std::move(half_steps);
  quads.host.tile_offsets = std::move(tiles);
}

template <class T>
std::span<const T> bring(const Buffer<T>& there, cuda::PinnedMemory& memory) {
  const auto count = static_cast<std::size_t>(there.size());
  if (count == 0) return {};
  return {static_cast<const T*>(memory.bring(there.data(), count * sizeof(T))), count};
}

}  // namespace

DeviceQuads arrange_quads(const DeviceTiles& sets, const Place& place) {
  const cuda_backend::CurrentDevice current(place.device.index);
  const std::int64_t num_windows = sets.host.num_windows();
  SetsView view;
  view.num_windows = num_windows;
  view.num_segments = num_windows > 0 ? num_windows + sets.columns.size() / segment_columns : 0;
  view.step_offsets = sets.step_offsets.data();
  view.columns = sets.columns.data();
  view.sets = sets.words.data();
  Buffer<QuadNote> notes(sets.columns.size() / 2, place);
  Buffer<std::int32_t> of_segments(view.num_segments, place);
  start_arranging(row_set_words(sets.host.height), view, notes.data(), of_segments.data(),
                  place.stream);
  Buffer<std::int32_t> of_windows(num_windows, place);
  Buffer<std::int32_t> columns_of_windows(num_windows, place);
  Buffer<EdgeOffset> offsets(num_windows + 1, place);
  cuda::launch(count_quads, dim3(cuda::num_blocks(num_windows, quad_block_threads)),
               quad_block_threads, place.stream, view, of_segments.data(), of_windows.data(),
               columns_of_windows.data(), offsets.data());
  // The last number counts nothing, and is whatever memory held.
  cuda::exclusive_scan(offsets.data(), offsets.size(), place);

  cuda::PinnedMemory memory(checked_bytes(2 * offsets.size(), sizeof(EdgeOffset)), place);
  const auto sums = bring(offsets, memory);
  const auto counts = bring(of_windows, memory);
  memory.wait();
  DeviceQuads quads;
  quads.rest = sets.rest;
  quads.host.num_rows = sets.host.num_rows;
  quads.host.num_cols = sets.host.num_cols;
  quads.host.num_edges = sets.host.num_edges;
  quads.host.height = sets.host.height;
  QuadsView tiles;
  tiles.height = sets.host.height;
  tiles.num_tiles = QuadOffsets::tiles(sums.back());
  quads.columns = Buffer<VertexId>(QuadOffsets::steps(sums.back()) * quad_step_columns, place);
  quads.words = Buffer<std::uint32_t>(tiles.num_tiles * quads.host.words_per_tile(), place);
  tiles.offsets = offsets.data();
  tiles.quads_of_windows = of_windows.data();
  tiles.columns_of_windows = columns_of_windows.data();
  tiles.quads_before = of_segments.data();
  tiles.notes = notes.data();
  tiles.columns = quads.columns.data();
  tiles.words = quads.words.data();
  cuda::launch(write_tiles, dim3(cuda::num_blocks(tiles.num_tiles, quad_block_warps)),
               quad_block_threads, place.stream, view, tiles);
  set_offsets(quads, sums);
  quads.host.num_quads = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  return quads;
}

}  // namespace tessera::tiles

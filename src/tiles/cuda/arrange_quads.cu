// SPDX-License-Identifier: Apache-2.0
#include "tiles/cuda/arrange_quads.hpp"

#include <array>
#include <numeric>
#include <span>
#include <utility>

#include "core/cuda_handles.hpp"
#include "cuda/array.hpp"
#include "cuda/edge_arrays.hpp"
#include "cuda/launch.cuh"
#include "cuda/pinned.hpp"
#include "cuda/search.cuh"
#include "tiles/cuda/translate_rows.hpp"
#include "tiles/quad_fragment.hpp"
#include "tiles/quad_order.hpp"

namespace tessera::tiles {
namespace {

constexpr int block_warps = 4;
constexpr int block_threads = 32 * block_warps;
constexpr unsigned all_lanes = ~0u;
constexpr std::uint32_t all_rows = ~0u;

__device__ int lane_number() { return static_cast<int>(threadIdx.x) % 32; }

__device__ std::int64_t warp_number() {
  return std::int64_t{blockIdx.x} * block_warps + threadIdx.x / 32;
}

/// Windows whose columns are sets of rows.
///
/// Segments have numbers that follow from where windows begin: wherever that is, a window has
/// enough of them, and may leave the last one without columns.
struct SetsView {
  std::int64_t num_windows = 0;
  std::int64_t num_segments = 0;
  const EdgeOffset* step_offsets = nullptr;  ///< of 16 columns
  const VertexId* columns = nullptr;
  const std::uint32_t* sets = nullptr;

  __device__ std::int64_t first_column(std::int64_t window) const {
    return step_offsets[window] * step_columns;
  }
  __device__ std::int64_t first_segment(std::int64_t window) const {
    return window + first_column(window) / segment_columns;
  }
  __device__ std::int64_t window_of_segment(std::int64_t segment) const {
    std::int64_t window = 0;
    for (std::int64_t end = num_windows; end - window > 1;) {
      const std::int64_t middle = window + (end - window) / 2;
      (first_segment(middle) <= segment ? window : end) = middle;
    }
    return window;
  }
  /// Without those that fill the last step: they repeat the one before. All lanes of a warp ask.
  __device__ QuadOrder order(std::int64_t window) const {
    const std::int64_t first = first_column(window);
    const std::int64_t end = first_column(window + 1);
    const std::int64_t own = end - step_columns + lane_number();
    const bool repeats = end > first && lane_number() > 0 && lane_number() < step_columns &&
                         columns[own] == columns[own - 1];
    return QuadOrder(
        static_cast<std::int32_t>(end - first - __popc(__ballot_sync(all_lanes, repeats))));
  }
};

/// Where the quads of a segment are noted. All but one of them have two columns or more: the first
/// column of a quad takes room from no other.
__device__ std::int64_t first_note(const SetsView& view, std::int64_t window,
                                   const QuadOrder& order, std::int32_t in_window) {
  const std::int64_t columns_before =
      view.first_column(window) + std::int64_t{order.first_turn(in_window)} * order.num_parts();
  return columns_before / 2 + view.first_segment(window) + in_window;
}

/// A part of a window's turns, column after column.
struct Segment {
  __device__ Segment(const SetsView& view, std::int64_t number) {
    const std::int64_t window = view.window_of_segment(number);
    const auto in_window = static_cast<std::int32_t>(number - view.first_segment(window));
    order = view.order(window);
    first_column = view.first_column(window);
    if (in_window >= order.num_segments) return;
    first_turn = order.first_turn(in_window);
    num_places = (order.first_turn(in_window + 1) - first_turn) * order.num_parts();
    note = first_note(view, window, order, in_window);
  }

  /// -1: none.
  __device__ std::int32_t column(std::int32_t place) const {
    if (place >= num_places) return -1;
    return order.column(first_turn + (place >> order.part_bits), place & (order.num_parts() - 1));
  }

  QuadOrder order;
  std::int64_t first_column = 0;
  std::int64_t note = 0;
  std::int32_t first_turn = 0;
  std::int32_t num_places = 0;
};

/// The rows that use a column.
template <int num_words>
struct alignas(num_words < 4 ? 4 * num_words : 16) RowWords {
  std::uint32_t words[num_words] = {};
};

/// Four columns of a window, counted from 1; 0: none.
using QuadNote = int4;

/// The open quads of a segment, one in each lane.
template <int num_words>
class OpenQuads {
 public:
  /// Writes down what comes to be in which quad.
  __device__ explicit OpenQuads(QuadNote* notes) : notes_(notes) {}

  /// To the fullest quad that fits, of equals to the first; where none does, the one of which most
  /// rows use two makes way.
  __device__ void add(const RowWords<num_words>& set, std::int32_t column) {
    const unsigned fitting = __ballot_sync(all_lanes, fits(set));
    if (fitting == 0) make_way();
    unsigned candidates = of_size_[0];
#pragma unroll
    for (int size = 1; size < quad_columns; ++size) {
      candidates = (fitting & of_size_[size]) != 0 ? fitting & of_size_[size] : candidates;
    }
    const unsigned chosen = candidates & (0u - candidates);
    const bool opens = (chosen & of_size_[0]) != 0;
    const bool mine = (chosen & own_) != 0;
    if (mine && opens) {
      place_ = quad_columns * num_quads_;
      notes_[num_quads_] = {column + 1, 0, 0, 0};
    }
    if (mine && !opens) reinterpret_cast<std::int32_t*>(notes_)[place_] = column + 1;
    place_ += mine ? 1 : 0;
    take(set, mine ? all_rows : 0, mine && (chosen & of_size_[3]) != 0 ? 0 : all_rows);
    num_quads_ += opens ? 1 : 0;
    const unsigned full = of_size_[3];
#pragma unroll
    for (int size = 3; size > 0; --size) {
      of_size_[size] = (of_size_[size - 1] & chosen) | (of_size_[size] & ~chosen);
    }
    of_size_[0] = (full & chosen) | (of_size_[0] & ~chosen);
  }

  __device__ std::int32_t num_quads() const { return num_quads_; }

 private:
  __device__ bool fits(const RowWords<num_words>& set) const {
    std::uint32_t common = 0;
#pragma unroll
    for (int i = 0; i < num_words; ++i) common |= set.words[i] & twice_.words[i];
    return common == 0;
  }

  /// Every lane takes those rows that it wants, and keeps all or, when its quad is full, none.
  __device__ void take(const RowWords<num_words>& set, std::uint32_t wanted, std::uint32_t kept) {
#pragma unroll
    for (int i = 0; i < num_words; ++i) {
      const std::uint32_t rows = set.words[i] & wanted;
      twice_.words[i] = (twice_.words[i] | (once_.words[i] & rows)) & kept;
      once_.words[i] = (once_.words[i] | rows) & kept;
    }
  }

  __device__ void make_way() {
    int rows = 0;
#pragma unroll
    for (int i = 0; i < num_words; ++i) rows += __popc(twice_.words[i]);
    const int most = __reduce_max_sync(all_lanes, rows * 32 + 31 - lane_number());
    const unsigned chosen = 1u << (31 - most % 32);
    if ((chosen & own_) != 0) once_ = twice_ = {};
#pragma unroll
    for (int size = 1; size < quad_columns; ++size) of_size_[size] &= ~chosen;
    of_size_[0] = chosen;
  }

  QuadNote* notes_;
  unsigned own_ = 1u << lane_number();
  RowWords<num_words> once_;   ///< rows that use a column of the lane's quad
  RowWords<num_words> twice_;  ///< rows that use two
  std::int32_t place_ = 0;     ///< of its next column
  /// The same for all lanes: those whose quads have so many columns.
  unsigned of_size_[quad_columns] = {all_lanes, 0, 0, 0};
  std::int32_t num_quads_ = 0;
};

template <int num_words>
__global__ __launch_bounds__(block_threads) void arrange_segments(const SetsView view,
                                                                  QuadNote* notes,
                                                                  std::int32_t* quads_of_segments) {
  __shared__ RowWords<num_words> sets[block_warps][32];
  if (warp_number() >= view.num_segments) return;
  const Segment segment(view, warp_number());
  const auto load = [&](std::int32_t column) {
    const auto* const from = reinterpret_cast<const RowWords<num_words>*>(view.sets);
    return column >= 0 ? from[segment.first_column + column] : RowWords<num_words>{};
  };
  auto& warp_sets = sets[threadIdx.x / 32];
  OpenQuads<num_words> open(notes + segment.note);
  std::int32_t own = segment.column(lane_number());
  RowWords<num_words> own_set = load(own);
  for (std::int32_t place = 0; place < segment.num_places; place += 32) {
    const std::int32_t column = own;
    unsigned left = __ballot_sync(all_lanes, column >= 0);
    __syncwarp();
    warp_sets[lane_number()] = own_set;
    __syncwarp();
    own = segment.column(place + 32 + lane_number());
    own_set = load(own);
    int from = __ffs(static_cast<int>(left)) - 1;
    RowWords<num_words> set = warp_sets[from];
    while (left != 0) {
      // The next one is on its way while this one finds its quad.
      left &= left - 1;
      const int next = left != 0 ? __ffs(static_cast<int>(left)) - 1 : 0;
      const RowWords<num_words> next_set = warp_sets[next];
      open.add(set, __shfl_sync(all_lanes, column, from));
      from = next;
      set = next_set;
    }
  }
  if (lane_number() == 0) quads_of_segments[warp_number()] = open.num_quads();
}

/// The tiles of windows before each, and their steps: both in one number, to be added up at once.
struct QuadOffsets {
  static constexpr int tile_shift = 32;
  static constexpr EdgeOffset of_window(std::int32_t quads) {
    const EdgeOffset steps = (quads + quads_per_step - 1) / quads_per_step;
    return (steps + 1) / 2 << tile_shift | steps;
  }
  static constexpr EdgeOffset tiles(EdgeOffset sum) { return sum >> tile_shift; }
  static constexpr EdgeOffset steps(EdgeOffset sum) {
    return sum & ((EdgeOffset{1} << tile_shift) - 1);
  }
};

/// How many quads windows have. The numbers of segments become those of the window's segments
/// before.
__global__ __launch_bounds__(block_threads) void count_quads(const SetsView view,
                                                             std::int32_t* quads_of_segments,
                                                             std::int32_t* quads_of_windows,
                                                             EdgeOffset* offsets) {
  const std::int64_t window = cuda::thread_number();
  if (window >= view.num_windows) return;
  std::int32_t quads = 0;
  for (std::int64_t s = view.first_segment(window); s < view.first_segment(window + 1); ++s) {
    const std::int32_t of_segment = quads_of_segments[s];
    quads_of_segments[s] = quads;
    quads += of_segment;
  }
  quads_of_windows[window] = quads;
  offsets[window] = QuadOffsets::of_window(quads);
}

/// What the words of tiles are made of.
struct QuadsView {
  int height = 16;
  std::int64_t num_tiles = 0;
  const EdgeOffset* offsets = nullptr;  ///< see `QuadOffsets`
  const std::int32_t* quads_of_windows = nullptr;
  const std::int32_t* quads_before = nullptr;  ///< in the window, by segments
  const QuadNote* notes = nullptr;
  VertexId* columns = nullptr;
  std::uint32_t* words = nullptr;

  /// Of 16 rows, for one warp.
  constexpr int warp_strips() const { return height < 64 ? height / 16 : 4; }
  constexpr int tile_warps() const { return height / 16 / warp_strips(); }
};

/// Where a window's quad is noted.
__device__ const QuadNote& note_of(const SetsView& view, const QuadsView& quads,
                                   std::int64_t window, const QuadOrder& order, std::int32_t quad) {
  const std::int32_t* const before = quads.quads_before + view.first_segment(window);
  std::int32_t segment = 0;
  for (std::int32_t end = order.num_segments; end - segment > 1;) {
    const std::int32_t middle = (segment + end) / 2;
    (before[middle] <= quad ? segment : end) = middle;
  }
  return quads.notes[first_note(view, window, order, segment) + quad - before[segment]];
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
  const std::int64_t tile = warp_number() / quads.tile_warps();
  const auto part = static_cast<int>(warp_number() % quads.tile_warps());
  if (tile >= quads.num_tiles) return;
  const EdgeOffset tiles_to_here = (tile + 1) << QuadOffsets::tile_shift;
  const std::int64_t window =
      cuda::lower_bound(quads.offsets, 0, view.num_windows + 1, tiles_to_here) - 1;
  const std::int32_t num_quads = quads.quads_of_windows[window];
  const std::int64_t in_window = tile - QuadOffsets::tiles(quads.offsets[window]);
  const auto quad = static_cast<std::int32_t>(2 * quads_per_step * in_window) + lane_number() / 2;
  // Places beyond the last quad look at it, to repeat its first column.
  const QuadNote& note =
      note_of(view, quads, window, view.order(window), quad < num_quads ? quad : num_quads - 1);
  const int2 numbers = reinterpret_cast<const int2*>(&note)[lane_number() % 2];
  const bool used[2] = {quad < num_quads && numbers.x > 0, quad < num_quads && numbers.y > 0};
  const std::int64_t before_first = view.first_column(window) - 1;
  const int set_words = row_set_words(quads.height);
  const int strips = quads.height / 16;
  const int first_strip = part * quads.warp_strips();
  std::uint32_t* const words = quads.words + tile * strips * quad_strip_words;
  for (int strip = first_strip; strip < first_strip + quads.warp_strips(); ++strip) {
    const auto rows_of = [&](std::int32_t number) {
      return view.sets[(before_first + number) * set_words + strip / 2] >> 16 * (strip % 2) &
             0xffffu;
    };
    const std::uint32_t rows =
        (used[0] ? rows_of(numbers.x) : 0) | (used[1] ? rows_of(numbers.y) << 16 : 0);
    write_strip(rows, words + strip * quad_strip_words);
  }
  const std::int32_t first = __shfl_sync(all_lanes, numbers.x, lane_number() / 2 * 2);
  const std::int64_t end_place = QuadOffsets::steps(quads.offsets[window + 1]) * quad_step_columns;
  const std::int64_t place = QuadOffsets::steps(quads.offsets[window]) * quad_step_columns +
                             std::int64_t{quad} * quad_columns + lane_number() % 2 * 2;
  if (part == 0 && place < end_place) {
    const VertexId* const columns = view.columns + before_first;
    *reinterpret_cast<int2*>(quads.columns + place) = {columns[used[0] ? numbers.x : first],
                                                       columns[used[1] ? numbers.y : first]};
  }
}

void start_arranging(int words, const SetsView& view, QuadNote* notes, std::int32_t* quads,
                     Stream stream) {
  constexpr std::array kernels = {arrange_segments<1>, arrange_segments<2>, arrange_segments<4>,
                                  arrange_segments<8>};
  const std::size_t kernel = words == 1 ? 0 : words == 2 ? 1 : words == 4 ? 2 : 3;
  cuda::launch(kernels[kernel], dim3(cuda::num_blocks(view.num_segments, block_warps)),
               block_threads, stream, view, notes, quads);
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
  Buffer<QuadNote> notes(sets.columns.size() / 2 + view.num_segments, place);
  Buffer<std::int32_t> of_segments(view.num_segments, place);
  start_arranging(row_set_words(sets.host.height), view, notes.data(), of_segments.data(),
                  place.stream);
  Buffer<std::int32_t> of_windows(num_windows, place);
  Buffer<EdgeOffset> offsets(num_windows + 1, place);
  cuda::launch(count_quads, dim3(cuda::num_blocks(num_windows, block_threads)), block_threads,
               place.stream, view, of_segments.data(), of_windows.data(), offsets.data());
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
  tiles.quads_before = of_segments.data();
  tiles.notes = notes.data();
  tiles.columns = quads.columns.data();
  tiles.words = quads.words.data();
  cuda::launch(write_tiles,
               dim3(cuda::num_blocks(tiles.num_tiles * tiles.tile_warps(), block_warps)),
               block_threads, place.stream, view, tiles);
  set_offsets(quads, sums);
  quads.host.num_quads = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  return quads;
}

}  // namespace tessera::tiles

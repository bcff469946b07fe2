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
/// Most segments never have more open quads, since columns seldom meet.
constexpr int few_open = 8;

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
  /// Columns that fill the last step repeat the last one.
  __device__ QuadOrder order(std::int64_t window) const {
    const std::int64_t first = first_column(window);
    const std::int64_t end = first_column(window + 1);
    if (first == end) return {};
    const std::int64_t last = cuda::lower_bound(columns, end - step_columns, end, columns[end - 1]);
    return {static_cast<std::int32_t>(last + 1 - first)};
  }
};

/// A part of a window's order.
struct Segment {
  Segment() = default;
  __device__ Segment(const SetsView& view, std::int64_t window, const QuadOrder& window_order,
                     std::int32_t in_window)
      : order(window_order), first_column(view.first_column(window)) {
    if (in_window >= order.num_segments()) return;
    first_place = order.first_place(in_window);
    num_columns = order.first_place(in_window + 1) - first_place;
    first_note = (first_column + first_place) / 2;
  }

  /// Of the window.
  __device__ std::int32_t column(std::int32_t place) const {
    return order.column(first_place + place);
  }
  /// All but one have two columns or more, since what comes second always fits.
  __device__ std::int32_t most_quads() const { return (num_columns + 1) / 2; }

  QuadOrder order;
  std::int64_t first_column = 0;
  std::int64_t first_note = 0;  ///< of its quads, among those of all segments
  std::int32_t first_place = 0;
  std::int32_t num_columns = 0;
};

__device__ Segment numbered_segment(const SetsView& view, std::int64_t number) {
  const std::int64_t window = view.window_of_segment(number);
  return {view, window, view.order(window),
          static_cast<std::int32_t>(number - view.first_segment(window))};
}

/// The rows that use a column.
template <int num_words>
struct alignas(num_words < 4 ? 4 * num_words : 16) RowWords {
  std::uint32_t words[num_words] = {};
};

/// The places of a quad's columns in their segment, counted from 1; 0: none.
using QuadNote = ushort4;

/// Instead of a number of quads: more of them are open than there are lanes for.
constexpr std::int32_t too_many_open = -1;

/// Which lanes of a warp have what of a segment with up to `num_open` open quads: lane q the first
/// rows of quad q, lane `num_open` + q the next ones. Few rows in each of many lanes are sooner
/// done; with as many quads as may be open there are no lanes left for that.
template <int num_words, int num_open>
struct SegmentLanes {
  static constexpr int parts = num_open < open_quads && num_words > 4 ? num_words / 4 : 1;
  static constexpr int words = num_words / parts;  ///< of a lane
  static constexpr int count = num_open * parts;
  static constexpr unsigned quads = all_lanes >> (32 - num_open);

  static __device__ int own() { return static_cast<int>(threadIdx.x) % count; }
  static __device__ int quad() { return own() % num_open; }
  static __device__ int part() { return own() / num_open; }
  /// The quads for which all lanes of the segment that have a part of them vote.
  static __device__ unsigned vote(bool votes) {
    const unsigned lanes = __ballot_sync(all_lanes, votes) >> (lane_number() - own());
    unsigned agreed = lanes & quads;
#pragma unroll
    for (int i = 1; i < parts; ++i) agreed &= lanes >> (i * num_open);
    return agreed;
  }
};

/// The open quads of a segment. All lanes of a warp act together, whether their segments have
/// columns left or not.
template <int num_words, int num_open>
class OpenQuads {
 public:
  using Lanes = SegmentLanes<num_words, num_open>;
  using Rows = RowWords<Lanes::words>;

  /// Writes down what comes to be in which quad, where there are zeros.
  __device__ explicit OpenQuads(QuadNote* notes)
      : notes_(reinterpret_cast<std::uint16_t*>(notes)) {}

  /// To the fullest quad that fits, of equals to the first; where none does, the one of which most
  /// rows use two makes way, or, with fewer lanes than quads may be open, nothing is added any
  /// more.
  __device__ void add(const Rows& set, std::int32_t place, bool is_column) {
    const unsigned fitting = Lanes::vote(fits(set));
    if constexpr (num_open == open_quads) {
      if (fitting == 0) make_way();
    } else {
      if (fitting == 0 && is_column) num_quads_ = too_many_open;
      is_column = is_column && num_quads_ != too_many_open;
    }
    unsigned candidates = of_size_[0];
#pragma unroll
    for (int size = 1; size < quad_columns; ++size) {
      candidates = (fitting & of_size_[size]) != 0 ? fitting & of_size_[size] : candidates;
    }
    const unsigned chosen = is_column ? candidates & (0u - candidates) : 0;
    const bool opens = (chosen & of_size_[0]) != 0;
    const bool mine = (chosen & own_) != 0;
    next_note_ = mine && opens ? quad_columns * num_quads_ : next_note_;
    if (mine && Lanes::part() == 0) notes_[next_note_] = static_cast<std::uint16_t>(place + 1);
    next_note_ += mine ? 1 : 0;
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
  __device__ bool fits(const Rows& set) const {
    std::uint32_t common[2] = {};  // two sums are known sooner than one
#pragma unroll
    for (int i = 0; i < Lanes::words; ++i) common[i % 2] |= set.words[i] & twice_.words[i];
    return (common[0] | common[1]) == 0;
  }

  /// Every lane takes those rows that it wants, and keeps all or, when its quad is full, none.
  __device__ void take(const Rows& set, std::uint32_t wanted, std::uint32_t kept) {
#pragma unroll
    for (int i = 0; i < Lanes::words; ++i) {
      const std::uint32_t rows = set.words[i] & wanted;
      twice_.words[i] = (twice_.words[i] | (once_.words[i] & rows)) & kept;
      once_.words[i] = (once_.words[i] | rows) & kept;
    }
  }

  __device__ void make_way() {
    int rows = 0;
#pragma unroll
    for (int i = 0; i < Lanes::words; ++i) rows += __popc(twice_.words[i]);
    const int most = __reduce_max_sync(all_lanes, rows * 32 + 31 - lane_number());
    const unsigned chosen = 1u << (31 - most % 32);
    if ((chosen & own_) != 0) once_ = twice_ = {};
#pragma unroll
    for (int size = 1; size < quad_columns; ++size) of_size_[size] &= ~chosen;
    of_size_[0] = chosen;
  }

  std::uint16_t* notes_;
  unsigned own_ = 1u << Lanes::quad();
  Rows once_;                   ///< of the lane's, those that use a column of its quad
  Rows twice_;                  ///< those that use two
  std::int32_t next_note_ = 0;  ///< of its next column
  /// The same for all lanes of the segment: quads that have so many columns.
  unsigned of_size_[quad_columns] = {Lanes::quads, 0, 0, 0};
  std::int32_t num_quads_ = 0;
};

/// All segments, with up to `num_open` open quads; as many as may be open: those segments that were
/// too much for fewer.
template <int num_words, int num_open>
__global__ __launch_bounds__(block_threads) void arrange_segments(const SetsView view,
                                                                  QuadNote* notes,
                                                                  std::int32_t* quads_of_segments) {
  using Lanes = SegmentLanes<num_words, num_open>;
  constexpr int block_segments = block_threads / Lanes::count;
  // One more, since the last looks ahead, too.
  __shared__ RowWords<num_words> sets[block_segments][Lanes::count + 1];
  const int in_block = static_cast<int>(threadIdx.x) / Lanes::count;
  const std::int64_t number = std::int64_t{blockIdx.x} * block_segments + in_block;
  const bool is_segment = number < view.num_segments;
  if constexpr (num_open == open_quads) {
    if (!is_segment || quads_of_segments[number] != too_many_open) return;
  }
  // A warp stays together: what is left over has no columns.
  const Segment segment = is_segment ? numbered_segment(view, number) : Segment{};
  const auto load = [&](std::int32_t place) {
    const auto* const from = reinterpret_cast<const RowWords<num_words>*>(view.sets);
    return place < segment.num_columns ? from[segment.first_column + segment.column(place)]
                                       : RowWords<num_words>{};
  };
  const auto own_rows = [&](int i) {
    const auto* const parts = reinterpret_cast<const RowWords<Lanes::words>*>(&sets[in_block][i]);
    return parts[Lanes::part()];
  };
  RowWords<num_words> ahead = load(Lanes::own());
  notes += segment.first_note;
  for (std::int32_t i = Lanes::own(); i < segment.most_quads(); i += Lanes::count) notes[i] = {};
  OpenQuads<num_words, num_open> open(notes);
  const auto goes_on = [&](std::int32_t first) {
    return first < segment.num_columns && open.num_quads() != too_many_open;
  };
  for (std::int32_t first = 0; __any_sync(all_lanes, goes_on(first)); first += Lanes::count) {
    sets[in_block][Lanes::own()] = ahead;
    __syncwarp();
    ahead = load(first + Lanes::count + Lanes::own());
    RowWords<Lanes::words> set = own_rows(0);
#pragma unroll 1
    for (int i = 0; i < Lanes::count; ++i) {
      // The next one is on its way while this one finds its quad.
      const RowWords<Lanes::words> next = own_rows(i + 1);
      open.add(set, first + i, first + i < segment.num_columns);
      set = next;
    }
    __syncwarp();
  }
  if (Lanes::own() == 0 && is_segment) quads_of_segments[number] = open.num_quads();
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

constexpr int tile_quads = 2 * quads_per_step;

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

  constexpr int tile_warps() const { return height < 64 ? 1 : height / 64; }
};

/// The columns of a window's quad; -1: none.
struct NotedQuad {
  __device__ NotedQuad(const SetsView& view, const QuadsView& quads, std::int64_t window,
                       std::int32_t quad) {
    const QuadOrder order = view.order(window);
    const std::int32_t* const before = quads.quads_before + view.first_segment(window);
    std::int32_t in_window = 0;
    for (std::int32_t end = order.num_segments(); end - in_window > 1;) {
      const std::int32_t middle = (in_window + end) / 2;
      (before[middle] <= quad ? in_window : end) = middle;
    }
    const Segment segment(view, window, order, in_window);
    const QuadNote note = quads.notes[segment.first_note + quad - before[in_window]];
    const int places[] = {note.x, note.y, note.z, note.w};
#pragma unroll
    for (int i = 0; i < quad_columns; ++i) {
      columns[i] = places[i] > 0 ? segment.column(places[i] - 1) : -1;
    }
  }

  std::int32_t columns[quad_columns];
};

/// What stands for the entries of a quad (tiles/quad_fragment.hpp), a bit for each of 16 rows: the
/// low bits of both indices, the high bits, and whether the entries are there; the first entry's in
/// the low half.
struct QuadPlanes {
  std::uint32_t low;
  std::uint32_t high;
  std::uint32_t present;
};

/// From the rows that use each column.
__device__ QuadPlanes planes_of(const std::uint32_t (&rows)[quad_columns]) {
  const auto [a, b, c, d] = rows;
  const auto both = [](std::uint32_t first, std::uint32_t second) {
    return (first & 0xffffu) | second << 16;
  };
  // The first index is 0 but where the first column used is b or c; the second is 3 but where that
  // is not d.
  const std::uint32_t second_is_b = a & b;
  const std::uint32_t second_is_c = c & (a | b);
  return {both(b & ~a, ~second_is_c), both(c & ~(a | b), ~second_is_b),
          both(a | b | c, d | second_is_b | second_is_c)};
}

/// The words of 16 rows and a tile. Lane q has the planes of quad q, from `first_lane` on.
__device__ void write_strip(const QuadPlanes& planes, int first_lane, std::uint32_t* words) {
  const int lane = lane_number();
  const int group = lane / 4;
  const int step = lane % 4 / 2;
  const int half = lane % 2;
  // Rows `group` and `group + 8` of both entries: bits 0, 8, 16 and 24.
  const auto row_bits = [&](std::uint32_t plane, int quad) {
    return __shfl_sync(all_lanes, plane, first_lane + quad) >> group & 0x01010101u;
  };
  std::uint32_t indices = 0;
  std::uint32_t present[2] = {};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int quad = 8 * step + 4 * half + i;
    const std::uint32_t digits = row_bits(planes.low, quad) | row_bits(planes.high, quad) << 1;
    const std::uint32_t both = digits | digits >> 14;  // four bits for each row
    indices |= (both & 0xfu) << 4 * i | (both & 0xf00u) << (8 + 4 * i);
    const std::uint32_t there = row_bits(planes.present, quad);
    const std::uint32_t rows = there | there >> 7;  // two bits for each entry
    present[i / 2] |= ((rows & 3u) | (rows >> 8 & 0x300u)) << (16 * (i % 2));
  }
  words[lane] = indices;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    present[i] <<= 4 * step + 2 * half;
    present[i] |= __shfl_xor_sync(all_lanes, present[i], 1);
    present[i] |= __shfl_xor_sync(all_lanes, present[i], 2);
    if (lane % 4 == i) words[32 + 2 * group + i] = present[i];
  }
}

/// A warp for each tile, and for each 64 rows where there are more. Half of its lanes have the
/// quads for 32 rows, the others for the next 32.
__global__ __launch_bounds__(block_threads) void write_tiles(const SetsView view,
                                                             const QuadsView quads) {
  const std::int64_t tile = warp_number() / quads.tile_warps();
  const auto part = static_cast<int>(warp_number() % quads.tile_warps());
  if (tile >= quads.num_tiles) return;
  const EdgeOffset tiles_to_here = (tile + 1) << QuadOffsets::tile_shift;
  const std::int64_t window =
      cuda::lower_bound(quads.offsets, 0, view.num_windows + 1, tiles_to_here) - 1;
  const std::int32_t num_quads = quads.quads_of_windows[window];
  const auto in_window =
      static_cast<std::int32_t>(tile - QuadOffsets::tiles(quads.offsets[window]));
  const std::int32_t quad = tile_quads * in_window + lane_number() % tile_quads;
  // Quads beyond the last have no entries, and repeat its first column.
  const NotedQuad noted(view, quads, window, min(quad, num_quads - 1));
  const std::int64_t first_column = view.first_column(window);
  const int set_words = row_set_words(quads.height);
  const int word = 2 * part + lane_number() / tile_quads;
  std::uint32_t rows[quad_columns] = {};
#pragma unroll
  for (int i = 0; i < quad_columns; ++i) {
    if (quad < num_quads && word < set_words && noted.columns[i] >= 0) {
      rows[i] = view.sets[(first_column + noted.columns[i]) * set_words + word];
    }
  }
  const int strips = quads.height / 16;
  std::uint32_t* const words = quads.words + tile * strips * quad_strip_words;
#pragma unroll
  for (int upper = 0; upper < 2; ++upper) {
    const QuadPlanes planes = planes_of(rows);
#pragma unroll
    for (int of_warp = 0; of_warp < 2; ++of_warp) {
      const int strip = 4 * part + 2 * of_warp + upper;
      if (strip < strips)
        write_strip(planes, tile_quads * of_warp, words + strip * quad_strip_words);
    }
#pragma unroll
    for (int i = 0; i < quad_columns; ++i) rows[i] >>= 16;
  }
  const std::int64_t place = QuadOffsets::steps(quads.offsets[window]) * quad_step_columns +
                             std::int64_t{quad} * quad_columns;
  const std::int64_t end = QuadOffsets::steps(quads.offsets[window + 1]) * quad_step_columns;
  if (part == 0 && lane_number() < tile_quads && place < end) {
    const auto column = [&](std::int32_t number) {
      const bool is_used = quad < num_quads && number >= 0;
      return view.columns[first_column + (is_used ? number : noted.columns[0])];
    };
    *reinterpret_cast<int4*>(quads.columns + place) = {
        column(noted.columns[0]), column(noted.columns[1]), column(noted.columns[2]),
        column(noted.columns[3])};
  }
}

template <int num_words, int num_open>
void start_with(const SetsView& view, QuadNote* notes, std::int32_t* quads, Stream stream) {
  constexpr int block_segments = block_threads / SegmentLanes<num_words, num_open>::count;
  cuda::launch(arrange_segments<num_words, num_open>,
               dim3(cuda::num_blocks(view.num_segments, block_segments)), block_threads, stream,
               view, notes, quads);
}

template <int num_words>
void start_arranging(const SetsView& view, QuadNote* notes, std::int32_t* quads, Stream stream) {
  start_with<num_words, few_open>(view, notes, quads, stream);
  start_with<num_words, open_quads>(view, notes, quads, stream);
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

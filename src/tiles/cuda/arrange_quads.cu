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
/// Quads that a lane has one of: most segments never have more open, since columns seldom meet.
constexpr int group_quads = 8;
constexpr int quad_groups = open_quads / group_quads;
constexpr unsigned group_bits = (1u << group_quads) - 1;

__device__ int lane_number() { return static_cast<int>(threadIdx.x) % 32; }

__device__ std::int64_t warp_number() {
  return std::int64_t{blockIdx.x} * block_warps + threadIdx.x / 32;
}

/// Windows whose columns are sets of rows.
///
/// Segments have numbers that follow from where windows begin: the first of every window its
/// number, and then all others, of which a window has enough numbers wherever it begins, and may
/// leave the last one without columns.
struct SetsView {
  std::int64_t num_windows = 0;
  std::int64_t num_segments = 0;
  const EdgeOffset* step_offsets = nullptr;  ///< of 16 columns
  const VertexId* columns = nullptr;
  const std::uint32_t* sets = nullptr;

  __device__ std::int64_t first_column(std::int64_t window) const {
    return step_offsets[window] * step_columns;
  }
  /// Segments of the windows before, without their first ones.
  __device__ std::int64_t later_segments(std::int64_t window) const {
    return first_column(window) / segment_columns;
  }
  __device__ std::int64_t segment_number(std::int64_t window, std::int32_t in_window) const {
    return in_window == 0 ? window : num_windows + later_segments(window) + in_window - 1;
  }
  /// The window that has the segment of this number among the later ones.
  __device__ std::int64_t window_of_later(std::int64_t later) const {
    std::int64_t window = 0;
    for (std::int64_t end = num_windows; end - window > 1;) {
      const std::int64_t middle = window + (end - window) / 2;
      (later_segments(middle) <= later ? window : end) = middle;
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
  const std::int64_t later = number - view.num_windows;
  if (later < 0) return {view, number, view.order(number), 0};
  const std::int64_t window = view.window_of_later(later);
  return {view, window, view.order(window),
          static_cast<std::int32_t>(1 + later - view.later_segments(window))};
}

/// The rows that use a column.
template <int num_words>
struct alignas(num_words < 4 ? 4 * num_words : 16) RowWords {
  std::uint32_t words[num_words] = {};
};

/// The places of a quad's columns in their segment, counted from 1; 0: none.
using QuadNote = ushort4;

/// Which lanes of a warp have what of a segment: lane q the first rows of quad q of every group,
/// lane q + 8 the next ones. Few rows in each of many lanes are sooner done.
template <int num_words>
struct SegmentLanes {
  static constexpr int parts = num_words > 4 ? num_words / 4 : 1;
  static constexpr int words = num_words / parts;  ///< of a lane
  static constexpr int count = group_quads * parts;

  static __device__ int own() { return static_cast<int>(threadIdx.x) % count; }
  static __device__ int quad() { return own() % group_quads; }
  static __device__ int part() { return own() / group_quads; }
  /// The quads of a group for which all lanes of the segment that have a part of them vote.
  static __device__ unsigned vote(bool votes) {
    const unsigned lanes = __ballot_sync(all_lanes, votes) >> (lane_number() - own());
    unsigned agreed = lanes & group_bits;
#pragma unroll
    for (int i = 1; i < parts; ++i) agreed &= lanes >> (i * group_quads);
    return agreed;
  }
};

/// The open quads of a segment. All lanes of a warp act together, whether their segments have
/// columns left or not. How long a column waits for the one before is what all of it takes.
template <int num_words>
class OpenQuads {
 public:
  using Lanes = SegmentLanes<num_words>;
  using Rows = RowWords<Lanes::words>;

  /// Writes down what comes to be in which quad, where there are zeros.
  __device__ explicit OpenQuads(QuadNote* notes)
      : notes_(reinterpret_cast<std::uint16_t*>(notes)) {}

  /// The place of the column that comes next: all before it have been added.
  __device__ std::int32_t next() const { return next_; }

  /// From now on there are quads of all groups.
  __device__ void use_all_groups() { of_size_[0] |= ~group_bits; }

  /// Adds the next column, and leaves others alone: to the fullest quad that fits, of equals to the
  /// first. Where none does, the one of which most rows use two makes way, or, if there are more
  /// groups than `num_groups`, the column stays the next one.
  template <int num_groups>
  __device__ void add(const Rows& set, std::int32_t place, bool is_column) {
    is_column = is_column && place == next_;
    unsigned fitting = 0;
#pragma unroll
    for (int group = 0; group < num_groups; ++group) {
      fitting |= Lanes::vote(fits(set, twice_[group])) << (group * group_quads);
    }
    if constexpr (num_groups == quad_groups) {
      const bool none_fits = is_column && (fitting | of_size_[0]) == 0;
      if (__any_sync(all_lanes, none_fits)) make_way(none_fits);
    }
    const unsigned with_three = fitting & of_size_[3];
    const unsigned with_two = fitting & of_size_[2];
    const unsigned with_one = fitting & of_size_[1];
    const unsigned with_more = with_three != 0 ? with_three : with_two;
    const unsigned with_fewer = with_one != 0 ? with_one : of_size_[0];
    const unsigned candidates = with_more != 0 ? with_more : with_fewer;
    const unsigned chosen = is_column ? candidates & (0u - candidates) : 0;
    const bool opens = (chosen & of_size_[0]) != 0;
#pragma unroll
    for (int group = 0; group < num_groups; ++group) {
      take(set, place, group, (chosen >> (group * group_quads) & own_) != 0, opens);
    }
    next_ += chosen != 0 ? 1 : 0;
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
  __device__ static bool fits(const Rows& set, const Rows& twice) {
    std::uint32_t common[2] = {};  // two sums are known sooner than one
#pragma unroll
    for (int i = 0; i < Lanes::words; ++i) common[i % 2] |= set.words[i] & twice.words[i];
    return (common[0] | common[1]) == 0;
  }

  /// The lane's quad of a group takes a column if it is this one's: a new quad forgets what the
  /// last one there had.
  __device__ void take(const Rows& set, std::int32_t place, int group, bool mine, bool opens) {
    const std::uint32_t wanted = mine ? all_rows : 0;
    const std::uint32_t kept = mine && opens ? 0 : all_rows;
    std::int32_t& note = next_note_[group];
    note = mine && opens ? quad_columns * num_quads_ : note;
    if (mine && Lanes::part() == 0) notes_[note] = static_cast<std::uint16_t>(place + 1);
    note += mine ? 1 : 0;
    Rows& once = once_[group];
    Rows& twice = twice_[group];
#pragma unroll
    for (int i = 0; i < Lanes::words; ++i) {
      const std::uint32_t rows = set.words[i] & wanted;
      twice.words[i] = (twice.words[i] | (once.words[i] & rows)) & kept;
      once.words[i] = (once.words[i] & kept) | rows;
    }
  }

  /// In segments that need it, where all quads are open.
  __device__ void make_way(bool needed) {
    int most = 0;
#pragma unroll
    for (int group = 0; group < quad_groups; ++group) {
      int rows = 0;
#pragma unroll
      for (int i = 0; i < Lanes::words; ++i) rows += __popc(twice_[group].words[i]);
#pragma unroll
      for (int i = 1; i < Lanes::parts; i *= 2) {
        rows += __shfl_xor_sync(all_lanes, rows, i * group_quads);
      }
      most = max(most, rows * open_quads + open_quads - 1 - group * group_quads - Lanes::quad());
    }
#pragma unroll
    for (int distance = 1; distance < group_quads; distance *= 2) {
      most = max(most, __shfl_xor_sync(all_lanes, most, distance));
    }
    const unsigned chosen = needed ? 1u << (open_quads - 1 - most % open_quads) : 0;
#pragma unroll
    for (int size = 1; size < quad_columns; ++size) of_size_[size] &= ~chosen;
    of_size_[0] |= chosen;
  }

  std::uint16_t* notes_;
  unsigned own_ = 1u << Lanes::quad();
  /// Of the lane's rows, those that use a column of its quads, and those that use two, where they
  /// are open.
  Rows once_[quad_groups];
  Rows twice_[quad_groups];
  std::int32_t next_note_[quad_groups] = {};  ///< of their next columns
  /// The same for all lanes of the segment: quads that have so many columns.
  unsigned of_size_[quad_columns] = {group_bits, 0, 0, 0};
  std::int32_t next_ = 0;
  std::int32_t num_quads_ = 0;
};

/// Several segments in a warp. They begin with the first group of open quads; when one of them
/// needs more, all go on with all groups.
template <int num_words>
__global__ __launch_bounds__(block_threads) void arrange_segments(const SetsView view,
                                                                  QuadNote* notes,
                                                                  std::int32_t* quads_of_segments) {
  using Lanes = SegmentLanes<num_words>;
  constexpr int block_segments = block_threads / Lanes::count;
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

/// How many quads and columns windows have. The numbers of segments become those of the window's
/// segments before.
__global__ __launch_bounds__(block_threads) void count_quads(const SetsView view,
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

constexpr int tile_quads = 2 * quads_per_step;

/// What the words of tiles are made of.
struct QuadsView {
  int height = 16;
  std::int64_t num_tiles = 0;
  const EdgeOffset* offsets = nullptr;  ///< see `QuadOffsets`
  const std::int32_t* quads_of_windows = nullptr;
  const std::int32_t* columns_of_windows = nullptr;
  const std::int32_t* quads_before = nullptr;  ///< in the window, by segments
  const QuadNote* notes = nullptr;
  VertexId* columns = nullptr;
  std::uint32_t* words = nullptr;
};

/// The columns of a window's quad; -1: none.
struct NotedQuad {
  __device__ NotedQuad(const SetsView& view, const QuadsView& quads, std::int64_t window,
                       std::int32_t quad) {
    const QuadOrder order{quads.columns_of_windows[window]};
    const auto before = [&](std::int32_t segment) {
      return quads.quads_before[view.segment_number(window, segment)];
    };
    std::int32_t in_window = 0;
    for (std::int32_t end = order.num_segments(); end - in_window > 1;) {
      const std::int32_t middle = (in_window + end) / 2;
      (before(middle) <= quad ? in_window : end) = middle;
    }
    const Segment segment(view, window, order, in_window);
    const QuadNote note = quads.notes[segment.first_note + quad - before(in_window)];
    const int places[] = {note.x, note.y, note.z, note.w};
#pragma unroll
    for (int i = 0; i < quad_columns; ++i) {
      columns[i] = places[i] > 0 ? segment.column(places[i] - 1) : -1;
    }
  }

  std::int32_t columns[quad_columns];
};

/// What stands for the entries of a quad (tiles/quad_fragment.hpp), for 16 rows: a bit for each
/// that says whether the entry is there, the first entry's in the low half, and two for its index,
/// where the bits of even rows are, or of odd ones and the next.
struct alignas(16) QuadPlanes {
  std::uint32_t even_digits;
  std::uint32_t present;
  std::uint32_t odd_digits;
  std::uint32_t present_again;
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
  const std::uint32_t low = both(b & ~a, ~second_is_c);
  const std::uint32_t high = both(c & ~(a | b), ~second_is_b);
  const std::uint32_t present = both(a | b | c, d | second_is_b | second_is_c);
  constexpr std::uint32_t even = 0x55555555u;
  return {(low & even) | (high & even) << 1, present, (low >> 1 & even) | (high & ~even), present};
}

/// The words of 16 rows and a tile, from its 16 quads.
__device__ void write_strip(const QuadPlanes* quads, std::uint32_t* words) {
  const int lane = lane_number();
  const int group = lane / 4;
  const int step = lane % 4 / 2;
  const int half = lane % 2;
  // Of rows `group` and `group + 8`, of the first entry and the second: a byte for each.
  std::uint32_t digits[4];
  std::uint32_t present[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const auto* const of_rows = reinterpret_cast<const uint2*>(quads + 8 * step + 4 * half + i);
    const uint2 planes = of_rows[group % 2];
    const std::uint32_t entries = planes.x >> (group & ~1) & 0x03030303u;
    digits[i] = (entries | entries >> 14) & 0x0f0fu;  // four bits for each row
    const std::uint32_t there = planes.y >> group & 0x01010101u;
    present[i] = there | there >> 7;  // two bits for each entry
  }
  words[lane] = __byte_perm(digits[0] | digits[1] << 4, digits[2] | digits[3] << 4, 0x5140);
  // Four lanes have bits of both words: each keeps one and gives the other away.
  const std::uint32_t first = __byte_perm(present[0], present[1], 0x6420) << (2 * (lane % 4));
  const std::uint32_t second = __byte_perm(present[2], present[3], 0x6420) << (2 * (lane % 4));
  std::uint32_t kept = half == 0 ? first : second;
  kept |= __shfl_xor_sync(all_lanes, half == 0 ? second : first, 1);
  kept |= __shfl_xor_sync(all_lanes, kept, 2);
  if (step == 0) words[32 + 2 * group + half] = kept;
}

/// `cuda::lower_bound` by all lanes of a warp, which look at 32 values at once.
__device__ std::int64_t find_in_warp(const EdgeOffset* values, std::int64_t end,
                                     EdgeOffset wanted) {
  std::int64_t begin = 0;
  while (begin < end) {
    const std::int64_t stride = (end - begin + 31) / 32;
    const std::int64_t at = begin + (lane_number() + 1) * stride - 1;
    const bool below = at < end && values[at] < wanted;
    begin = min(end, begin + __popc(__ballot_sync(all_lanes, below)) * stride);
    end = min(end, begin + stride - 1);
  }
  return begin;
}

/// A warp for each tile. Half of its lanes have the quads for 32 rows, the others for the next 32,
/// as often as there are 64.
__global__ __launch_bounds__(block_threads) void write_tiles(const SetsView view,
                                                             const QuadsView quads) {
  __shared__ QuadPlanes planes[block_warps][2][32];
  const std::int64_t tile = warp_number();
  if (tile >= quads.num_tiles) return;
  const EdgeOffset tiles_to_here = (tile + 1) << QuadOffsets::tile_shift;
  const std::int64_t window = find_in_warp(quads.offsets, view.num_windows + 1, tiles_to_here) - 1;
  const std::int32_t num_quads = quads.quads_of_windows[window];
  const auto in_window =
      static_cast<std::int32_t>(tile - QuadOffsets::tiles(quads.offsets[window]));
  const std::int32_t quad = tile_quads * in_window + lane_number() % tile_quads;
  // Quads beyond the last have no entries, and repeat its first column.
  const NotedQuad noted(view, quads, window, min(quad, num_quads - 1));
  const std::int64_t first_column = view.first_column(window);
  const int set_words = row_set_words(quads.height);
  const std::uint32_t* sets[quad_columns];  // null: no column
#pragma unroll
  for (int i = 0; i < quad_columns; ++i) {
    const bool is_used = quad < num_quads && noted.columns[i] >= 0;
    sets[i] = is_used ? view.sets + (first_column + noted.columns[i]) * set_words : nullptr;
  }
  const int strips = quads.height / 16;
  std::uint32_t* const words = quads.words + tile * strips * quad_strip_words;
  for (int first_strip = 0; first_strip < strips; first_strip += 4) {
    const int word = first_strip / 2 + lane_number() / tile_quads;
    std::uint32_t rows[quad_columns] = {};
#pragma unroll
    for (int i = 0; i < quad_columns; ++i) {
      if (sets[i] != nullptr && word < set_words) rows[i] = sets[i][word];
    }
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      // The other half was read before all lanes came here.
      QuadPlanes* const of_rows = planes[threadIdx.x / 32][upper];
      of_rows[lane_number()] = planes_of(rows);
      __syncwarp();
#pragma unroll
      for (int of_warp = 0; of_warp < 2; ++of_warp) {
        const int strip = first_strip + 2 * of_warp + upper;
        if (strip < strips)
          write_strip(of_rows + tile_quads * of_warp, words + strip * quad_strip_words);
      }
#pragma unroll
      for (int i = 0; i < quad_columns; ++i) rows[i] >>= 16;
    }
  }
  const std::int64_t place = QuadOffsets::steps(quads.offsets[window]) * quad_step_columns +
                             std::int64_t{quad} * quad_columns;
  const std::int64_t end = QuadOffsets::steps(quads.offsets[window + 1]) * quad_step_columns;
  if (lane_number() < tile_quads && place < end) {
    const auto column = [&](std::int32_t number) {
      const bool is_used = quad < num_quads && number >= 0;
      return view.columns[first_column + (is_used ? number : noted.columns[0])];
    };
    *reinterpret_cast<int4*>(quads.columns + place) = {
        column(noted.columns[0]), column(noted.columns[1]), column(noted.columns[2]),
        column(noted.columns[3])};
  }
}

template <int num_words>
void start_arranging(const SetsView& view, QuadNote* notes, std::int32_t* quads, Stream stream) {
  constexpr int block_segments = block_threads / SegmentLanes<num_words>::count;
  cuda::launch(arrange_segments<num_words>,
               dim3(cuda::num_blocks(view.num_segments, block_segments)), block_threads, stream,
               view, notes, quads);
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
  cuda::launch(count_quads, dim3(cuda::num_blocks(num_windows, block_threads)), block_threads,
               place.stream, view, of_segments.data(), of_windows.data(), columns_of_windows.data(),
               offsets.data());
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
  cuda::launch(write_tiles, dim3(cuda::num_blocks(tiles.num_tiles, block_warps)), block_threads,
               place.stream, view, tiles);
  set_offsets(quads, sums);
  quads.host.num_quads = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  return quads;
}

}  // namespace tessera::tiles

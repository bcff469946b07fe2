// SPDX-License-Identifier: Apache-2.0
#include "tiles/cuda/translate_rows.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/cuda_handles.hpp"
#include "cuda/array.hpp"
#include "cuda/edge_arrays.hpp"
#include "cuda/launch.cuh"
#include "cuda/pinned.hpp"
#include "tiles/cuda/window_bitmap.cuh"
#include "tiles/fragment.hpp"
#include "tiles/window_columns.hpp"

namespace tessera::tiles {
namespace {

constexpr int block_threads = translation_threads;
/// Shared memory of a block: two of them share a processor.
constexpr int max_shared_words = 24 * 1024;

/// The edges of a round that are not on tiles, and how many a row has.
__device__ void leave_rest(const TranslationLaunch& launch, const WindowBitmap& window,
                           int* rest_of_rows) {
  window.for_edges([&](EdgeOffset edge, int at) {
    const bool in_rest = !window.is_dense(at);
    launch.in_rest[edge] = in_rest ? 1 : 0;
    if (in_rest) atomicAdd(rest_of_rows + window.row_of(edge), 1);
  });
}

__device__ void store_rest_counts(const TranslationLaunch& launch, const WindowBitmap& window,
                                  const int* rest_of_rows) {
  for (int row = static_cast<int>(threadIdx.x); row < window.num_rows(); row += block_threads) {
    const std::int64_t at = window.first_row() + row;
    if (launch.rest_narrow != nullptr) {
      launch.rest_narrow[at] = rest_of_rows[row];
    } else {
      launch.rest_wide[at] = rest_of_rows[row];
    }
  }
}

/// With a number for every row of the window where edges are left to a rest, else without.
template <bool leaves_rest>
__global__ __launch_bounds__(block_threads,
                             leaves_rest ? 3
                                         : 4) void count_columns(const TranslationLaunch launch) {
  extern __shared__ std::uint32_t memory[];
  __shared__ int rest_of_rows[leaves_rest ? window_heights.back() : 1];
  if constexpr (leaves_rest) {
    for (int row = static_cast<int>(threadIdx.x); row < launch.height; row += block_threads) {
      rest_of_rows[row] = 0;
    }
  }
  WindowBitmap window(launch, memory, std::int64_t{blockIdx.x} * launch.height);
  int mine = 0;
  while (window.mark()) {
    window.for_own_words([&](int, std::uint32_t bits) { mine += __popc(bits); });
    if constexpr (leaves_rest) leave_rest(launch, window, rest_of_rows);
  }
  int total = 0;
  scan_block(mine, total);
  if (threadIdx.x == 0) launch.counts[blockIdx.x] = total;
  if constexpr (leaves_rest) store_rest_counts(launch, window, rest_of_rows);
}

__global__ __launch_bounds__(block_threads) void fill_tiles(const TranslationLaunch launch) {
  extern __shared__ std::uint32_t memory[];
  // Dense columns before each word; nothing is counted any more when they are written.
  std::uint32_t* const before = memory + launch.bitmap_words;
  WindowBitmap window(launch, memory, std::int64_t{blockIdx.x} * launch.height);
  const std::int64_t first_column = launch.step_offsets[blockIdx.x] * step_columns;
  const std::int64_t end_column = launch.step_offsets[blockIdx.x + 1] * step_columns;
  const std::int64_t words_per_tile = 2 * launch.height;
  std::uint32_t* const words =
      launch.set_words > 0 ? launch.words + first_column * launch.set_words
                           : launch.words + launch.tile_offsets[blockIdx.x] * words_per_tile;
  int placed = 0;  // columns of earlier rounds
  while (window.mark()) {
    int mine = 0;
    window.for_own_words([&](int, std::uint32_t bits) { mine += __popc(bits); });
    int total = 0;
    int place = placed + scan_block(mine, total);
    window.for_own_words([&](int word, std::uint32_t bits) {
      before[word] = static_cast<std::uint32_t>(place);
      for (; bits != 0; bits &= bits - 1) {
        launch.columns[first_column + place++] =
            window.column(word * 32 + __ffs(static_cast<int>(bits)) - 1);
      }
    });
    __syncthreads();
    window.for_edges([&](EdgeOffset edge, int at) {
      if (!window.is_dense(at)) return;
      const std::uint32_t lower = window.bits(at / 32) & ((1u << (at % 32)) - 1);
      const int column = static_cast<int>(before[at / 32]) + __popc(lower);
      const int row = window.row_of(edge);
      if (launch.set_words > 0) {
        atomicOr(words + std::int64_t{column} * launch.set_words + row / 32, 1u << row % 32);
        return;
      }
      const BitPlace bit = bit_place(launch.height, row, column % tile_columns);
      atomicOr(words + column / tile_columns * words_per_tile + bit.word, 1u << bit.bit);
    });
    placed += total;
  }
  for (std::int64_t k = first_column + placed + threadIdx.x; k < end_column; k += block_threads) {
    launch.columns[k] = launch.columns[first_column + placed - 1];
  }
}

/// Offsets of the windows from their columns: `per` columns in each unit.
SharedArray<EdgeOffset> offsets_of(const std::vector<std::int32_t>& counts, int per) {
  Buffer<EdgeOffset> offsets(static_cast<std::int64_t>(counts.size()) + 1);
  EdgeOffset sum = 0;
  for (std::size_t w = 0; w < counts.size(); ++w) {
    offsets[static_cast<std::int64_t>(w)] = sum;
    sum += (counts[w] + per - 1) / per;
  }
  offsets[offsets.size() - 1] = sum;
  return offsets;
}

void start(void (*kernel)(TranslationLaunch), const TranslationLaunch& launch, unsigned windows,
           int bitmaps, Stream stream) {
  const std::size_t bytes =
      static_cast<std::size_t>(bitmaps * launch.bitmap_words) * sizeof(std::uint32_t);
  // As much as any graph needs: another thread's graph may be larger.
  cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  max_shared_words * static_cast<int>(sizeof(std::uint32_t))),
             "asking for shared memory");
  kernel<<<windows, block_threads, bytes, cuda::raw(stream)>>>(launch);
  cuda_check(cudaGetLastError(), "translating a graph");
}

/// The edges that are not on tiles, by rows. First it is known which they are and how many, then
/// their offsets, then they are put side by side.
class Rest {
 public:
  Rest(const cuda::DeviceRows& rows, const Place& place)
      : rows_(rows),
        place_(place),
        in_rest_(rows.num_edges, place),
        rest_(std::make_shared<cuda::DeviceRows>()) {
    rest_->num_rows = rows.num_rows;
    rest_->num_cols = rows.num_cols;
    const std::int64_t count = std::int64_t{rows.num_rows} + 1;
    if (rows.num_edges <= std::numeric_limits<std::int32_t>::max()) {
      narrow_offsets_ = Buffer<std::int32_t>(count, place);
    } else {
      wide_offsets_ = Buffer<EdgeOffset>(count, place);
    }
  }

  void set_outputs(TranslationLaunch& launch) {
    launch.leaves_rest = true;
    launch.in_rest = in_rest_.data();
    launch.rest_narrow = narrow_offsets_.data();
    launch.rest_wide = wide_offsets_.data();
  }

  /// Counts become offsets.
  void add_up() {
    // The last number counts nothing, and is whatever memory held.
    if (wide_offsets_.empty()) {
      cuda::exclusive_scan(narrow_offsets_.data(), narrow_offsets_.size(), place_);
    } else {
      cuda::exclusive_scan(wide_offsets_.data(), wide_offsets_.size(), place_);
    }
  }

  /// Queues a copy of the last offset; it says how many edges there are.
  void bring_total(cuda::PinnedMemory& memory) {
    if (wide_offsets_.empty()) {
      narrow_total_ = static_cast<const std::int32_t*>(
          memory.bring(narrow_offsets_.data() + narrow_offsets_.size() - 1, sizeof(std::int32_t)));
    } else {
      wide_total_ = static_cast<const EdgeOffset*>(
          memory.bring(wide_offsets_.data() + wide_offsets_.size() - 1, sizeof(EdgeOffset)));
    }
  }
  EdgeOffset brought_total() const {
    return wide_total_ != nullptr ? *wide_total_ : EdgeOffset{*narrow_total_};
  }

  std::shared_ptr<const cuda::DeviceRows> gather(EdgeOffset num_edges) {
    rest_->num_edges = num_edges;
    Buffer<VertexId> indices(num_edges, place_);
    cuda::keep_flagged(rows_.indices.data(), in_rest_.data(), rows_.num_edges, indices.data(),
                       place_);
    if (!narrow_offsets_.empty()) rest_->narrow_offsets = std::move(narrow_offsets_);
    if (!wide_offsets_.empty()) rest_->wide_offsets = std::move(wide_offsets_);
    rest_->indices = std::move(indices);
    return rest_;
  }

 private:
  const cuda::DeviceRows& rows_;
  Place place_;
  Buffer<std::uint8_t> in_rest_;
  Buffer<std::int32_t> narrow_offsets_;  ///< one of the two is empty
  Buffer<EdgeOffset> wide_offsets_;
  const std::int32_t* narrow_total_ = nullptr;
  const EdgeOffset* wide_total_ = nullptr;
  std::shared_ptr<cuda::DeviceRows> rest_;
};

/// Queues the counting of the windows' columns, and of what is left to a rest.
Buffer<std::int32_t> count(TranslationLaunch& launch, unsigned windows, std::optional<Rest>& rest,
                           const Place& place) {
  Buffer<std::int32_t> counts(windows, place);
  launch.counts = counts.data();
  if (windows > 0) {
    start(launch.leaves_rest ? count_columns<true> : count_columns<false>, launch, windows,
          1 + launch.digits, place.stream);
  }
  if (rest) rest->add_up();
  return counts;
}

/// Waits for what was counted.
WindowCounts brought(const Buffer<std::int32_t>& counts, std::optional<Rest>& rest,
                     EdgeOffset num_edges, const Place& place) {
  const std::size_t bytes = checked_bytes(counts.size(), sizeof(std::int32_t));
  cuda::PinnedMemory memory(bytes + sizeof(EdgeOffset), place);
  const std::int32_t* columns = nullptr;
  if (!counts.empty()) {
    columns = static_cast<const std::int32_t*>(memory.bring(counts.data(), bytes));
  }
  if (rest) rest->bring_total(memory);
  memory.wait();
  return {{columns, columns + counts.size()}, num_edges - (rest ? rest->brought_total() : 0)};
}

/// The arrays of tiles whose windows have so many columns, not yet filled.
DeviceTiles empty_tiles(const cuda::DeviceRows& rows, int height,
                        const std::vector<std::int32_t>& counts, int set_words,
                        const Place& place) {
  DeviceTiles tiles;
  tiles.host.num_rows = rows.num_rows;
  tiles.host.num_cols = rows.num_cols;
  tiles.host.num_edges = rows.num_edges;
  tiles.host.height = height;
  tiles.host.step_offsets = offsets_of(counts, step_columns);
  tiles.host.tile_offsets = offsets_of(counts, tile_columns);
  tiles.step_offsets = cuda::to_device(tiles.host.step_offsets.span(), place);
  tiles.tile_offsets = cuda::to_device(tiles.host.tile_offsets.span(), place);
  tiles.columns = Buffer<VertexId>(tiles.host.num_steps() * step_columns, place);
  tiles.words = Buffer<std::uint32_t>(
      set_words > 0 ? tiles.columns.size() * set_words : tiles.host.num_tiles() * 2 * height,
      place);
  cuda::clear(tiles.words, place);
  return tiles;
}

TranslationLaunch launch_of(const cuda::DeviceRows& rows, int height, int min_uses) {
  TranslationLaunch launch;
  launch.num_rows = rows.num_rows;
  launch.height = height;
  // No column is used more often than there are rows.
  const auto uses = static_cast<unsigned>(std::min(min_uses, height + 1));
  launch.digits = std::bit_width(uses - 1);
  launch.first_count = (1u << launch.digits) - uses;
  launch.bitmap_words =
      static_cast<int>(std::clamp<std::int64_t>((std::int64_t{rows.num_cols} + 63) / 32, 1,
                                                max_shared_words / std::max(2, 1 + launch.digits)));
  launch.offsets = rows.offsets();
  launch.indices = rows.indices.data();
  return launch;
}

}  // namespace

DeviceTiles translate_rows(const cuda::DeviceRows& rows, int height, const Place& place,
                           int min_uses, const WindowCounts* known, WindowBits bits) {
  check_height(height);
  check_min_uses(min_uses);
  const cuda_backend::CurrentDevice current(place.device.index);
  const unsigned windows = cuda::num_blocks(rows.num_rows, height);
  TranslationLaunch launch = launch_of(rows, height, min_uses);
  launch.set_words = bits == WindowBits::row_sets ? row_set_words(height) : 0;
  std::optional<Rest> rest;
  if (min_uses > 1) rest.emplace(rows, place).set_outputs(launch);

  WindowCounts found;
  if (known == nullptr || rest) {
    const Buffer<std::int32_t> counts = count(launch, windows, rest, place);
    if (known == nullptr) found = brought(counts, rest, rows.num_edges, place);
  }
  const WindowCounts& sizes = known != nullptr ? *known : found;
  DeviceTiles tiles = empty_tiles(rows, height, sizes.columns, launch.set_words, place);
  if (rest) {
    tiles.rest = rest->gather(rows.num_edges - sizes.dense_edges);
    tiles.host.num_edges = sizes.dense_edges;
  }
  if (windows == 0) return tiles;
  launch.step_offsets = tiles.step_offsets.data();
  launch.tile_offsets = tiles.tile_offsets.data();
  launch.columns = tiles.columns.data();
  launch.words = tiles.words.data();
  start(fill_tiles, launch, windows, std::max(2, 1 + launch.digits), place.stream);
  return tiles;
}

}  // namespace tessera::tiles

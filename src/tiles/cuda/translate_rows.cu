// SPDX-License-Identifier: Apache-2.0
#include "tiles/cuda/translate_rows.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "cuda/array.hpp"
#include "cuda/launch.cuh"
#include "tiles/fragment.hpp"
#include "tiles/window_columns.hpp"

namespace tessera::tiles {
namespace {

constexpr int block_threads = 512;
constexpr int block_warps = block_threads / 32;
/// Of the bitmap, each with a count beside it: two blocks share a processor.
constexpr int max_bitmap_words = 12 * 1024;

struct TranslationLaunch {
  VertexId num_rows = 0;
  int height = 64;
  int bitmap_words = 0;
  cuda::Offsets offsets;
  const VertexId* indices = nullptr;
  std::int32_t* counts = nullptr;  ///< distinct columns of each window
  const EdgeOffset* step_offsets = nullptr;
  const EdgeOffset* tile_offsets = nullptr;
  VertexId* columns = nullptr;
  std::uint32_t* words = nullptr;
};

__device__ EdgeOffset offset_at(const cuda::Offsets& offsets, std::int64_t row) {
  return offsets.narrow != nullptr ? __ldg(offsets.narrow + row) : __ldg(offsets.wide + row);
}

/// One window and the columns of it that are marked.
class WindowBitmap {
 public:
  __device__ WindowBitmap(const TranslationLaunch& launch, std::uint32_t* memory)
      : launch_(launch),
        bits_(memory),
        first_row_(std::int64_t{blockIdx.x} * launch.height),
        num_rows_(static_cast<int>(launch.num_rows - first_row_ < launch.height
                                       ? launch.num_rows - first_row_
                                       : launch.height)) {
    __shared__ VertexId lowest, highest;
    if (threadIdx.x == 0) {
      lowest = 0x7fffffff;
      highest = -1;
    }
    __syncthreads();
    for (int row = static_cast<int>(threadIdx.x); row < num_rows_; row += block_threads) {
      const EdgeOffset begin = offset_at(launch_.offsets, first_row_ + row);
      const EdgeOffset end = offset_at(launch_.offsets, first_row_ + row + 1);
      if (begin == end) continue;
      // Columns rise within a row.
      atomicMin(&lowest, __ldg(launch_.indices + begin));
      atomicMax(&highest, __ldg(launch_.indices + end - 1));
    }
    __syncthreads();
    next_column_ = lowest / 32 * 32;
    last_column_ = highest;
    begin_ = offset_at(launch.offsets, first_row_);
    end_ = offset_at(launch.offsets, first_row_ + num_rows_);
  }

  /// Goes to the next columns that the bitmap has room for, and marks them; false if none are left.
  __device__ bool mark() {
    first_column_ = next_column_;
    if (first_column_ > last_column_) return false;
    const std::int64_t room = std::int64_t{launch_.bitmap_words} * 32;
    const std::int64_t left = std::int64_t{last_column_} + 1 - first_column_;
    span_ = static_cast<int>(left < room ? left : room);
    next_column_ = first_column_ + span_;
    __syncthreads();
    for (int word = static_cast<int>(threadIdx.x); word < num_words(); word += block_threads) {
      bits_[word] = 0;
    }
    __syncthreads();
    for (EdgeOffset edge = begin_ + threadIdx.x; edge < end_; edge += block_threads) {
      const int at = __ldg(launch_.indices + edge) - first_column_;
      if (at >= 0 && at < span_) atomicOr(bits_ + at / 32, 1u << (at % 32));
    }
    __syncthreads();
    return true;
  }

  /// Calls body(word, bits) for this thread's share, which is contiguous.
  template <class Body>
  __device__ void for_own_words(Body&& body) const {
    const int share = (num_words() + block_threads - 1) / block_threads;
    const int begin = static_cast<int>(threadIdx.x) * share;
    const int end = begin + share < num_words() ? begin + share : num_words();
    for (int word = begin; word < end; ++word) body(word, bits_[word]);
  }

  /// Calls body(row, place in the bitmap) for every edge whose column is marked.
  template <class Body>
  __device__ void for_marked_edges(Body&& body) const {
    for (EdgeOffset edge = begin_ + threadIdx.x; edge < end_; edge += block_threads) {
      const int at = __ldg(launch_.indices + edge) - first_column_;
      if (at >= 0 && at < span_) body(row_of(edge), at);
    }
  }

  __device__ std::uint32_t bits(int word) const { return bits_[word]; }
  __device__ VertexId column(int at) const { return first_column_ + at; }
  __device__ VertexId highest_column() const { return last_column_; }

 private:
  __device__ int num_words() const { return (span_ + 31) / 32; }

  /// The last row that starts at or before the edge.
  __device__ int row_of(EdgeOffset edge) const {
    int low = 0;
    for (int high = num_rows_; high - low > 1;) {
      const int middle = (low + high) / 2;
      (offset_at(launch_.offsets, first_row_ + middle) <= edge ? low : high) = middle;
    }
    return low;
  }

  const TranslationLaunch& launch_;
  std::uint32_t* bits_;
  std::int64_t first_row_;
  int num_rows_;
  VertexId first_column_ = 0;
  VertexId next_column_ = 0;
  VertexId last_column_ = -1;
  int span_ = 0;
  EdgeOffset begin_ = 0;
  EdgeOffset end_ = 0;
};

/// The sum of the threads' numbers before this one; `total` becomes that of all.
__device__ int scan_block(int mine, int& total) {
  __shared__ int warp_sums[block_warps];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  int sum = mine;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const int other = __shfl_up_sync(~0u, sum, distance);
    if (lane >= distance) sum += other;
  }
  if (lane == 31) warp_sums[warp] = sum;
  __syncthreads();
  int before = 0;
  total = 0;
#pragma unroll
  for (int w = 0; w < block_warps; ++w) {
    before += w < warp ? warp_sums[w] : 0;
    total += warp_sums[w];
  }
  __syncthreads();
  return before + sum - mine;
}

__global__ __launch_bounds__(block_threads) void count_columns(const TranslationLaunch launch) {
  extern __shared__ std::uint32_t memory[];
  WindowBitmap window(launch, memory);
  int mine = 0;
  while (window.mark()) {
    window.for_own_words([&](int, std::uint32_t bits) { mine += __popc(bits); });
  }
  int total = 0;
  scan_block(mine, total);
  if (threadIdx.x == 0) launch.counts[blockIdx.x] = total;
}

__global__ __launch_bounds__(block_threads) void fill_tiles(const TranslationLaunch launch) {
  extern __shared__ std::uint32_t memory[];
  std::uint32_t* const before = memory + launch.bitmap_words;  // marked columns before each word
  WindowBitmap window(launch, memory);
  const std::int64_t first_column = launch.step_offsets[blockIdx.x] * step_columns;
  const std::int64_t end_column = launch.step_offsets[blockIdx.x + 1] * step_columns;
  const std::int64_t words_per_tile = 2 * launch.height;
  std::uint32_t* const words = launch.words + launch.tile_offsets[blockIdx.x] * words_per_tile;
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
    window.for_marked_edges([&](int row, int at) {
      const std::uint32_t lower = window.bits(at / 32) & ((1u << (at % 32)) - 1);
      const int column = static_cast<int>(before[at / 32]) + __popc(lower);
      const BitPlace bit = bit_place(launch.height, row, column % tile_columns);
      atomicOr(words + column / tile_columns * words_per_tile + bit.word, 1u << bit.bit);
    });
    placed += total;
  }
  for (std::int64_t k = first_column + placed + threadIdx.x; k < end_column; k += block_threads) {
    launch.columns[k] = window.highest_column();
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

void allow_shared(void (*kernel)(TranslationLaunch), int bytes) {
  cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "asking for shared memory");
}

std::vector<std::int32_t> counted(TranslationLaunch& launch, unsigned windows, Device device) {
  Buffer<std::int32_t> counts(windows, default_memory(device));
  launch.counts = counts.data();
  const int bytes = launch.bitmap_words * static_cast<int>(sizeof(std::uint32_t));
  allow_shared(count_columns, bytes);
  count_columns<<<windows, block_threads, static_cast<std::size_t>(bytes)>>>(launch);
  cuda_check(cudaGetLastError(), "counting the columns of windows");
  std::vector<std::int32_t> on_host(windows);
  copy_bytes(on_host.data(), counts.data(), windows * sizeof(std::int32_t), device);
  synchronise(device);
  return on_host;
}

}  // namespace

DeviceTiles translate_rows(const cuda::DeviceRows& rows, int height, Device device) {
  check_height(height);
  const unsigned windows = cuda::num_blocks(rows.num_rows, height);
  TranslationLaunch launch;
  launch.num_rows = rows.num_rows;
  launch.height = height;
  launch.bitmap_words = static_cast<int>(
      std::clamp<std::int64_t>((std::int64_t{rows.num_cols} + 63) / 32, 1, max_bitmap_words));
  launch.offsets = rows.offsets();
  launch.indices = rows.indices.data();
  const int fill_bytes = 2 * launch.bitmap_words * static_cast<int>(sizeof(std::uint32_t));
  allow_shared(fill_tiles, fill_bytes);
  const std::vector<std::int32_t> counts =
      windows == 0 ? std::vector<std::int32_t>{} : counted(launch, windows, device);

  DeviceTiles tiles;
  tiles.host.num_rows = rows.num_rows;
  tiles.host.num_cols = rows.num_cols;
  tiles.host.num_edges = rows.num_edges;
  tiles.host.height = height;
  tiles.host.step_offsets = offsets_of(counts, step_columns);
  tiles.host.tile_offsets = offsets_of(counts, tile_columns);
  tiles.columns = Buffer<VertexId>(tiles.host.num_steps() * step_columns, default_memory(device));
  tiles.words = Buffer<std::uint32_t>(tiles.host.num_tiles() * 2 * height, default_memory(device));
  if (windows == 0) return tiles;
  const Buffer<EdgeOffset> step_offsets = cuda::to_device(tiles.host.step_offsets.span(), device);
  const Buffer<EdgeOffset> tile_offsets = cuda::to_device(tiles.host.tile_offsets.span(), device);
  fill_zero(tiles.words.data(),
            static_cast<std::size_t>(tiles.words.size()) * sizeof(std::uint32_t), device);
  launch.step_offsets = step_offsets.data();
  launch.tile_offsets = tile_offsets.data();
  launch.columns = tiles.columns.data();
  launch.words = tiles.words.data();
  fill_tiles<<<windows, block_threads, static_cast<std::size_t>(fill_bytes)>>>(launch);
  cuda_check(cudaGetLastError(), "filling tiles");
  synchronise(device);
  return tiles;
}

}  // namespace tessera::tiles

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "cuda/launch.cuh"
#include "tiles/cuda/survey.hpp"
#include "tiles/cuda/window_bitmap.cuh"

namespace tessera::tiles {
namespace {

constexpr int num_samples = static_cast<int>(sampled_windows.size());
/// Shared memory of a block: two of them share a processor.
constexpr std::int64_t max_shared_words = 24 * 1024;
/// A bit for each column, and the digits of how often it is used.
constexpr int most_bitmaps = 3;

/// Windows of one kind and side, a block for each that is looked at.
struct Part {
  std::int64_t first_block = 0;
  std::int64_t windows = 0;
  std::int64_t sampled = 0;
  std::int32_t* counts = nullptr;  ///< columns of each window; null: only samples are looked at
  int side = 0;
  int kind = 0;
};

constexpr int most_parts = 2 * num_samples;

struct WindowsLaunch {
  SurveyedRows sides[2];
  Part parts[most_parts];
  int num_parts = 0;
  int bitmap_words = 0;
  SurveyReport* report = nullptr;
};

/// The launch that translates such windows, as far as looking at one needs it.
__device__ TranslationLaunch windows_of(const SurveyedRows& rows, int height, int min_uses,
                                        int bitmap_words) {
  TranslationLaunch launch;
  launch.num_rows = rows.num_rows;
  launch.height = height;
  launch.bitmap_words = bitmap_words;
  launch.digits = min_uses == 1 ? 0 : 32 - __clz(min_uses - 1);
  launch.first_count = (1u << launch.digits) - static_cast<unsigned>(min_uses);
  launch.offsets = rows.offsets;
  launch.indices = rows.indices;
  return launch;
}

/// Right for the first thread.
__device__ WindowSums count_window(const TranslationLaunch& launch, std::uint32_t* memory,
                                   std::int64_t first_row) {
  WindowBitmap window(launch, memory, first_row);
  int columns = 0, dense_edges = 0;
  while (window.mark()) {
    window.for_own_words([&](int, std::uint32_t bits) { columns += __popc(bits); });
    if (launch.digits == 0) continue;  // all edges are
    window.for_edges([&](EdgeOffset, int at) { dense_edges += window.is_dense(at) ? 1 : 0; });
  }
  int all_columns = 0, all_dense_edges = 0;
  scan_block(columns, all_columns);
  scan_block(dense_edges, all_dense_edges);
  const EdgeOffset edges = window.num_edges();
  return {edges, all_columns, launch.digits == 0 ? edges : EdgeOffset{all_dense_edges}};
}

__device__ void add(SurveyReport::Sums& to, const WindowSums& found) {
  atomicAdd(&to.edges, static_cast<unsigned long long>(found.edges));
  atomicAdd(&to.columns, static_cast<unsigned long long>(found.columns));
  atomicAdd(&to.dense_edges, static_cast<unsigned long long>(found.dense_edges));
}

/// The i for which it is windows * i / sampled, from 0 to `sampled` - 1; -1 where there is none.
__device__ std::int64_t sample_number(const Part& part, std::int64_t window) {
  const std::int64_t i = (window * part.sampled + part.windows - 1) / part.windows;
  return i < part.sampled && part.windows * i / part.sampled == window ? i : -1;
}

/// What a sampled window says of all that it stands for.
__device__ WindowSums around(const WindowSums& found, const SurveyedRows& rows, const Part& part,
                             std::int64_t sample, int height) {
  const std::int64_t first = part.windows * sample / part.sampled;
  const std::int64_t next = part.windows * (sample + 1) / part.sampled;
  const std::int64_t end_row = next * height;
  const EdgeOffset edges =
      offset_at(rows.offsets, end_row < rows.num_rows ? end_row : rows.num_rows) -
      offset_at(rows.offsets, first * height);
  return found.for_windows(next - first, edges);
}

__global__ __launch_bounds__(translation_threads) void look_at_windows(
    const __grid_constant__ WindowsLaunch launch) {
  extern __shared__ std::uint32_t memory[];
  int number = 0;
  while (number + 1 < launch.num_parts && launch.parts[number + 1].first_block <= blockIdx.x) {
    ++number;
  }
  const Part& part = launch.parts[number];
  const std::int64_t i = blockIdx.x - part.first_block;
  const SurveyedRows& rows = launch.sides[part.side];
  constexpr auto kinds = sampled_windows;
  constexpr SampledWindows chosen = chosen_windows;
  const SampledWindows kind = kinds[part.kind];
  const std::int64_t at = part.counts != nullptr ? i : part.windows * i / part.sampled;
  const TranslationLaunch window =
      windows_of(rows, kind.height, kind.min_uses, launch.bitmap_words);
  const WindowSums found = count_window(window, memory, at * kind.height);
  if (threadIdx.x != 0) return;
  const std::int64_t sample = part.counts == nullptr ? i : sample_number(part, at);
  if (sample >= 0) {
    add(launch.report->windows[part.side][part.kind],
        around(found, rows, part, sample, kind.height));
    if (kind.height == chosen.height && kind.min_uses == chosen.min_uses) {
      launch.report->sampled_columns[part.side][sample] = static_cast<std::int32_t>(found.columns);
    }
  }
  if (part.counts == nullptr) return;
  part.counts[at] = static_cast<std::int32_t>(found.columns);
  atomicAdd(&launch.report->dense_edges[part.side][part.kind],
            static_cast<unsigned long long>(found.dense_edges));
}

/// Adds parts to the launch; returns how many blocks there are.
std::int64_t divide(WindowsLaunch& launch, const WindowColumnCounts& counts) {
  std::int64_t blocks = 0;
  const auto append = [&](Part part, std::int64_t of_part) {
    if (of_part == 0) return;
    part.first_block = blocks;
    launch.parts[launch.num_parts++] = part;
    blocks += of_part;
  };
  for (int side = 0; side < 2; ++side) {
    const std::int64_t num_rows = launch.sides[side].num_rows;
    for (int kind = 0; kind < num_samples; ++kind) {
      const auto k = static_cast<std::size_t>(kind);
      Part part;
      part.windows = (num_rows + sampled_windows[k].height - 1) / sampled_windows[k].height;
      part.sampled = std::min(part.windows, most_sampled);
      part.counts = counts[static_cast<std::size_t>(side)][k];
      part.side = side;
      part.kind = kind;
      append(part, part.counts != nullptr ? part.windows : part.sampled);
    }
  }
  return blocks;
}

constexpr int compare_threads = 256;
constexpr std::int64_t most_compare_blocks = 1056;

__global__ __launch_bounds__(compare_threads) void compare_edges(const SurveyedRows rows,
                                                                 const SurveyedRows columns,
                                                                 EdgeOffset num_edges,
                                                                 SurveyReport* report) {
  const std::int64_t stride = std::int64_t{gridDim.x} * compare_threads;
  const std::int64_t first = std::int64_t{blockIdx.x} * compare_threads + threadIdx.x;
  bool differ = false;
  for (std::int64_t row = first; row < rows.num_rows; row += stride) {
    differ |= offset_at(rows.offsets, row) != offset_at(columns.offsets, row);
  }
#pragma unroll 8
  for (std::int64_t edge = first; edge < num_edges; edge += stride) {
    differ |= rows.indices[edge] != columns.indices[edge];
  }
  if (differ) report->sides_differ = 1;
}

struct SizesLaunch {
  SurveyedWeights weights[num_weights];
  SurveyReport* report = nullptr;
};

constexpr int sizes_threads = 256;
constexpr std::int64_t most_sizes_blocks = 264;

/// The second dimension of the grid has the arrays.
__global__ void find_size_bits(const SizesLaunch launch) {
  const SurveyedWeights& weights = launch.weights[blockIdx.y];
  SizeBits bits;
  const std::int64_t stride = std::int64_t{gridDim.x} * sizes_threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * sizes_threads + threadIdx.x; i < weights.count;
       i += stride) {
    bits.add(__float_as_uint(weights.numbers[i]));
  }
  const unsigned inverted = __reduce_max_sync(~0u, ~bits.smallest);
  const unsigned largest = __reduce_max_sync(~0u, bits.largest);
  const unsigned largest_of_all = __reduce_max_sync(~0u, bits.largest_of_all);
  if (threadIdx.x % 32 != 0) return;
  SurveyReport::Sizes& sizes = launch.report->weights[blockIdx.y];
  atomicMax(&sizes.inverted_smallest, inverted);
  atomicMax(&sizes.largest, largest);
  atomicMax(&sizes.largest_of_all, largest_of_all);
}

}  // namespace

void count_windows(const std::array<SurveyedRows, 2>& sides, const WindowColumnCounts& counts,
                   SurveyReport* report, Stream stream) {
  WindowsLaunch launch;
  std::int64_t columns = 0;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    launch.sides[i] = sides[i];
    columns = std::max<std::int64_t>(columns, sides[i].num_cols);
  }
  launch.bitmap_words = static_cast<int>(
      std::clamp<std::int64_t>((columns + 63) / 32, 1, max_shared_words / most_bitmaps));
  launch.report = report;
  const auto bytes =
      static_cast<std::size_t>(most_bitmaps * launch.bitmap_words) * sizeof(std::uint32_t);
  constexpr std::size_t without_asking = 48 * 1024;
  if (bytes > without_asking) {
    // As much as any graph needs: another thread's graph may be larger.
    constexpr auto most_bytes = static_cast<int>(max_shared_words * sizeof(std::uint32_t));
    cuda_check(cudaFuncSetAttribute(look_at_windows, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    most_bytes),
               "asking for shared memory");
  }
  const std::int64_t blocks = divide(launch, counts);
  if (blocks == 0) return;
  look_at_windows<<<static_cast<unsigned>(blocks), translation_threads, bytes, cuda::raw(stream)>>>(
      launch);
  cuda_check(cudaGetLastError(), "looking at windows");
}

void compare_sides(const std::array<SurveyedRows, 2>& sides, EdgeOffset num_edges,
                   SurveyReport* report, Stream stream) {
  const std::int64_t most = std::max<std::int64_t>(sides[0].num_rows, num_edges);
  const std::int64_t blocks = (most + compare_threads - 1) / compare_threads;
  if (blocks == 0) return;
  cuda::launch(compare_edges, dim3(static_cast<unsigned>(std::min(blocks, most_compare_blocks))),
               compare_threads, stream, sides[0], sides[1], num_edges, report);
}

void find_sizes(const std::array<SurveyedWeights, num_weights>& weights, SurveyReport* report,
                Stream stream) {
  SizesLaunch launch;
  std::int64_t most = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    launch.weights[i] = weights[i];
    most = std::max(most, weights[i].count);
  }
  launch.report = report;
  const std::int64_t blocks = (most + sizes_threads - 1) / sizes_threads;
  const dim3 grid(static_cast<unsigned>(std::min(blocks, most_sizes_blocks)), num_weights);
  cuda::launch(find_size_bits, grid, sizes_threads, stream, launch);
}

}  // namespace tessera::tiles

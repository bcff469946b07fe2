// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "cuda/launch.cuh"
#include "tiles/cuda/survey.hpp"
#include "tiles/cuda/window_bitmap.cuh"
#include "tiles/panels.hpp"

namespace tessera::tiles {
namespace {

constexpr int num_samples = static_cast<int>(sampled_windows.size());
/// Shared memory of a block: two of them share a processor.
constexpr std::int64_t max_shared_words = 24 * 1024;
/// A bit for each column, and the digits of how often it is used.
constexpr int most_bitmaps = 3;

struct SampleLaunch {
  SurveyedRows sides[2];
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

__device__ void count_window(const TranslationLaunch& launch, std::uint32_t* memory,
                             std::int64_t first_row, EdgeOffset most_edges,
                             SurveyReport::Sums& sums) {
  WindowBitmap window(launch, memory, first_row, most_edges);
  int columns = 0, dense_edges = 0;
  while (window.mark()) {
    window.for_own_words([&](int, std::uint32_t bits) { columns += __popc(bits); });
    window.for_edges([&](EdgeOffset, int at) { dense_edges += window.is_dense(at) ? 1 : 0; });
  }
  int all_columns = 0, all_dense_edges = 0;
  scan_block(columns, all_columns);
  scan_block(dense_edges, all_dense_edges);
  if (threadIdx.x != 0) return;
  atomicAdd(&sums.edges, static_cast<unsigned long long>(window.num_edges()));
  atomicAdd(&sums.columns, static_cast<unsigned long long>(all_columns));
  atomicAdd(&sums.dense_edges, static_cast<unsigned long long>(all_dense_edges));
}

/// A block for each window that is looked at. The second dimension of the grid has the kinds of
/// windows and then panels, the third the sides.
__global__ __launch_bounds__(translation_threads) void count_sampled(const SampleLaunch launch) {
  extern __shared__ std::uint32_t memory[];
  const SurveyedRows& rows = launch.sides[blockIdx.z];
  const std::int64_t i = blockIdx.x;
  if (rows.num_rows == 0) return;
  if (blockIdx.y == num_samples) {
    if (blockIdx.z != 0 || i >= sampled_panels) return;
    const std::int64_t first_row = std::int64_t{rows.num_rows} * (2 * i + 1) / (2 * sampled_panels);
    const TranslationLaunch panel = windows_of(rows, panel_rows, 1, launch.bitmap_words);
    count_window(panel, memory, first_row, panel_edges, launch.report->panels);
    return;
  }
  constexpr auto kinds = sampled_windows;
  const SampledWindows kind = kinds[blockIdx.y];
  const std::int64_t windows = (std::int64_t{rows.num_rows} + kind.height - 1) / kind.height;
  const std::int64_t taken = windows < most_sampled ? windows : most_sampled;
  if (i >= taken) return;
  const TranslationLaunch window =
      windows_of(rows, kind.height, kind.min_uses, launch.bitmap_words);
  count_window(window, memory, windows * i / taken * kind.height, INT64_MAX,
               launch.report->windows[blockIdx.z][blockIdx.y]);
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

void count_samples(const std::array<SurveyedRows, 2>& sides, SurveyReport* report, Stream stream) {
  SampleLaunch launch;
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
    cuda_check(cudaFuncSetAttribute(count_sampled, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(bytes)),
               "asking for shared memory");
  }
  const dim3 grid(static_cast<unsigned>(most_sampled), num_samples + 1, 2);
  count_sampled<<<grid, translation_threads, bytes, cuda::raw(stream)>>>(launch);
  cuda_check(cudaGetLastError(), "looking at windows");
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

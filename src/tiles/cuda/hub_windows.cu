// SPDX-License-Identifier: Apache-2.0
#include "cuda/launch.cuh"
#include "tiles/cuda/survey.hpp"
#include "tiles/cuda/window_bitmap.cuh"

namespace tessera::tiles {
namespace {

constexpr int block_threads = 512;
constexpr int block_warps = block_threads / 32;
constexpr int bitmap_words = hub_column_places / 32;

/// The row's edges, and which row it is: the larger, the more popular; of equal ones the first.
using Popularity = unsigned long long;

class Rows {
 public:
  __device__ explicit Rows(const SurveyedRows& rows) : rows_(rows) {}

  __device__ EdgeOffset begin(VertexId row) const { return offset_at(rows_.offsets, row); }
  __device__ EdgeOffset degree(VertexId row) const {
    return offset_at(rows_.offsets, row + 1) - begin(row);
  }
  __device__ VertexId column(EdgeOffset edge) const { return __ldg(rows_.indices + edge); }

  /// Found by all lanes of a warp.
  __device__ VertexId hub_of(VertexId row) const {
    Popularity best = popularity(row);
    const EdgeOffset first = begin(row);
    const EdgeOffset count = degree(row);
    if (count > longest_hub_row) return row;
#pragma unroll 4
    for (EdgeOffset k = threadIdx.x % 32; k < count; k += 32) {
      best = max(best, popularity(column(first + k)));
    }
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
      best = max(best, __shfl_xor_sync(~0u, best, distance));
    }
    return static_cast<VertexId>(~static_cast<unsigned>(best));
  }

 private:
  __device__ Popularity popularity(VertexId row) const {
    return static_cast<Popularity>(degree(row)) << 32 | ~static_cast<unsigned>(row);
  }

  const SurveyedRows& rows_;
};

/// A block for each hub; a warp for each row that may have it.
__global__ __launch_bounds__(block_threads) void look_at_hubs(
    const __grid_constant__ SurveyedRows of_rows, const EdgeOffset num_edges,
    SurveyReport* report) {
  __shared__ std::uint32_t seen[bitmap_words];
  __shared__ HubWindow window;
  for (int word = static_cast<int>(threadIdx.x); word < bitmap_words; word += block_threads) {
    seen[word] = 0;
  }
  if (threadIdx.x == 0) window = {0, 0};
  __syncthreads();

  const Rows rows(of_rows);
  const EdgeOffset number = blockIdx.x;
  const VertexId hub = rows.hub_of(rows.column(num_edges * number / sampled_hubs));
  const EdgeOffset degree = rows.degree(hub);
  const EdgeOffset step = max(EdgeOffset{1}, degree / sampled_hub_columns);
  for (EdgeOffset k = threadIdx.x / 32; k < sampled_hub_columns; k += block_warps) {
    const EdgeOffset at = number % step + k * step;
    if (at >= degree) break;
    const VertexId beside = rows.column(rows.begin(hub) + at);
    const EdgeOffset count = rows.degree(beside);
    if (count > longest_hub_row || rows.hub_of(beside) != hub) continue;
    int columns = 0;
    for (EdgeOffset edge = threadIdx.x % 32; edge < count; edge += 32) {
      const int column = rows.column(rows.begin(beside) + edge) % hub_column_places;
      const std::uint32_t bit = 1u << column % 32;
      columns += (atomicOr(seen + column / 32, bit) & bit) == 0 ? 1 : 0;
    }
    columns = __reduce_add_sync(~0u, columns);
    if (threadIdx.x % 32 != 0) continue;
    atomicAdd(&window.columns, columns);
    atomicAdd(&window.edges, static_cast<std::int32_t>(count));
  }
  __syncthreads();
  if (threadIdx.x == 0) report->hub_windows[number] = window;
}

}  // namespace

void count_hub_windows(const SurveyedRows& rows, EdgeOffset num_edges, SurveyReport* report,
                       Stream stream) {
  if (num_edges == 0) return;
  cuda::launch(look_at_hubs, dim3(sampled_hubs), block_threads, stream, rows, num_edges, report);
}

}  // namespace tessera::tiles

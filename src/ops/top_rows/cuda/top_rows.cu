// SPDX-License-Identifier: Apache-2.0
#include "ops/top_rows/cuda/top_rows.hpp"

#include <bit>

#include "core/on_device.hpp"
#include "cuda/launch.cuh"
#include "ops/top_rows/key.hpp"

namespace tessera::ops {
namespace {

constexpr int warp = 32;
constexpr int block_threads = 256;
constexpr int block_warps = block_threads / warp;
constexpr unsigned all_lanes = ~0u;
/// Scores that a thread reads at once, side by side.
constexpr int width = 4;

/// One row of a block of scores. Scores that are no higher than a threshold are passed over; it is
/// not a number while everything is to be offered. Later columns never replace an equal score, so
/// whoever offers them in their order needs to look at higher ones alone.
struct Row {
  const float* scores;
  std::int64_t cols, first_col;
  const VertexId *left_out, *left_out_end;
  std::int32_t* not_a_number;

  template <bool aligned>
  __device__ void load(std::int64_t col, float (&values)[width]) const {
    if (aligned && col + width <= cols) {
      const float4 four = *reinterpret_cast<const float4*>(scores + col);
      values[0] = four.x, values[1] = four.y, values[2] = four.z, values[3] = four.w;
      return;
    }
#pragma unroll
    for (int i = 0; i < width; ++i) {
      values[i] = col + i < cols ? scores[col + i] : -INFINITY;
    }
  }

  /// Bit i: score i of a thread may be listed.
  __device__ unsigned above(std::int64_t col, float threshold, const float (&values)[width]) const {
    unsigned bits = 0;
#pragma unroll
    for (int i = 0; i < width; ++i) {
      if (!(values[i] <= threshold) && col + i < cols) bits |= 1u << i;
    }
    return bits;
  }

  /// The key of a score, or 0 where it is not to be listed.
  __device__ TopKey key(float score, std::int64_t col) const {
    if (isnan(score)) {
      *not_a_number = 1;
      return 0;
    }
    const auto wanted = static_cast<VertexId>(first_col + col);
    const VertexId *begin = left_out, *end = left_out_end;
    while (begin < end) {
      const VertexId* const middle = begin + (end - begin) / 2;
      if (*middle < wanted) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    return begin < left_out_end && *begin == wanted ? 0 : top_key(score, wanted);
  }
};

struct Rows {
  const float* scores;
  std::int64_t stride, cols, first_col;
  LeftOut left_out;
  std::int32_t* not_a_number;

  __device__ Row operator[](std::int64_t i) const {
    const bool any = left_out.offsets != nullptr;
    return {scores + i * stride,
            cols,
            first_col,
            any ? left_out.cols + left_out.offsets[i] : nullptr,
            any ? left_out.cols + left_out.offsets[i + 1] : nullptr,
            not_a_number};
  }
};

/// What a list lets pass, by the worst key that it keeps.
__device__ float threshold_of(TopKey worst) {
  return worst == 0 ? __int_as_float(0x7fffffff) : score_of(worst);
}

/// A list of a warp: lane i has its i-th best.
class WarpList {
 public:
  __device__ WarpList(TopKey mine, int count) : mine_(mine), count_(count) {}

  __device__ TopKey mine() const { return mine_; }
  __device__ TopKey worst() const { return __shfl_sync(all_lanes, mine_, count_ - 1); }

  /// All lanes offer the same.
  __device__ void offer(TopKey key) {
    const int place = __popc(__ballot_sync(all_lanes, mine_ > key));
    const TopKey before = __shfl_up_sync(all_lanes, mine_, 1);
    const int lane = static_cast<int>(threadIdx.x) % warp;
    if (lane > place) mine_ = before;
    if (lane == place) mine_ = key;
  }

 private:
  TopKey mine_;
  int count_;
};

/// Offers the scores of a row that are this warp's, in the order of their columns.
template <bool aligned>
__device__ void offer_part(const Row& row, float floor, WarpList& list) {
  constexpr int ahead = 4;  // reads that are under way at the same time
  constexpr std::int64_t step = warp * width;
  const int lane = static_cast<int>(threadIdx.x) % warp;
  float threshold = floor;
  for (std::int64_t first = threadIdx.x / warp * ahead * step; first < row.cols;
       first += block_warps * ahead * step) {
    float values[ahead][width];
#pragma unroll
    for (int u = 0; u < ahead; ++u) {
      row.load<aligned>(first + u * step + lane * width, values[u]);
    }
#pragma unroll
    for (int u = 0; u < ahead; ++u) {
      const std::int64_t begin = first + u * step;
      const unsigned mine = row.above(begin + lane * width, threshold, values[u]);
      for (unsigned left = __ballot_sync(all_lanes, mine != 0); left != 0; left &= left - 1) {
        const int from = __ffs(static_cast<int>(left)) - 1;
        const unsigned bits = __shfl_sync(all_lanes, mine, from);
#pragma unroll
        for (int i = 0; i < width; ++i) {
          const float score = __shfl_sync(all_lanes, values[u][i], from);
          if ((bits >> i & 1u) == 0 || score <= threshold) continue;
          const TopKey key = row.key(score, begin + from * width + i);
          if (key == 0) continue;
          list.offer(key);
          const TopKey worst = list.worst();
          if (worst != 0) threshold = fmaxf(floor, score_of(worst));
        }
      }
    }
  }
}

/// A block for each row; each warp keeps a list of its own, and the first one joins them.
template <bool aligned>
__global__ __launch_bounds__(block_threads) void offer_to_short(const Rows rows,
                                                                MatrixView<TopKey> keys) {
  __shared__ TopKey lists[block_warps][warp];
  cuda::begin_overlapped();
  const int lane = static_cast<int>(threadIdx.x) % warp, me = static_cast<int>(threadIdx.x) / warp;
  const int count = static_cast<int>(keys.cols);
  TopKey* const best = keys.data + blockIdx.x * keys.stride;
  const TopKey known = lane < count ? best[lane] : 0;
  const float floor = threshold_of(__shfl_sync(all_lanes, known, count - 1));
  WarpList list(me == 0 ? known : 0, count);
  offer_part<aligned>(rows[blockIdx.x], floor, list);
  lists[me][lane] = list.mine();
  __syncthreads();
  if (me != 0) return;
  for (int other = 1; other < block_warps; ++other) {
    for (int i = 0; i < count; ++i) {
      const TopKey key = lists[other][i];
      if (key <= list.worst()) break;
      list.offer(key);
    }
  }
  if (lane < count) best[lane] = list.mine();
}

/// Sorts shared memory, the largest first; `size` is a power of 2.
__device__ void sort(TopKey* keys, int size) {
  for (int run = 2; run <= size; run *= 2) {
    for (int distance = run / 2; distance > 0; distance /= 2) {
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < size / 2; i += block_threads) {
        const int low = i / distance * distance * 2 + i % distance, high = low + distance;
        const bool falls = (low & run) == 0;
        const TopKey a = keys[low], b = keys[high];
        if (falls ? a < b : a > b) {
          keys[low] = b;
          keys[high] = a;
        }
      }
    }
  }
  __syncthreads();
}

/// New keys of one round of a block.
constexpr int round_keys = block_threads * width;

/// Keys that shared memory has room for: the list and those of two rounds.
int room_for(std::int64_t count) {
  return static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(count + 2 * round_keys)));
}

/// A block for each row; what may be listed is gathered behind the list, and all of it is sorted
/// where there is no room for more.
template <bool aligned>
__global__ __launch_bounds__(block_threads) void offer_to_long(const Rows rows,
                                                               MatrixView<TopKey> keys, int room) {
  extern __shared__ TopKey gathered[];
  __shared__ int used;
  cuda::begin_overlapped();
  const int count = static_cast<int>(keys.cols);
  TopKey* const best = keys.data + blockIdx.x * keys.stride;
  const Row row = rows[blockIdx.x];
  const auto me = static_cast<int>(threadIdx.x);
  for (int i = me; i < count; i += block_threads) gathered[i] = best[i];
  if (me == 0) used = count;
  __syncthreads();
  float threshold = threshold_of(gathered[count - 1]);
  const auto join = [&] {
    for (int i = used + me; i < room; i += block_threads) gathered[i] = 0;
    sort(gathered, room);
    if (me == 0) used = count;
    threshold = threshold_of(gathered[count - 1]);
    __syncthreads();
  };
  for (std::int64_t first = 0; first < row.cols; first += round_keys) {
    const std::int64_t col = first + me * width;
    float values[width];
    row.load<aligned>(col, values);
    const unsigned bits = row.above(col, threshold, values);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      if ((bits >> i & 1u) == 0) continue;
      const TopKey key = row.key(values[i], col + i);
      if (key != 0) gathered[atomicAdd(&used, 1)] = key;
    }
    __syncthreads();
    const bool is_full = used > room - round_keys;
    __syncthreads();
    if (is_full) join();
  }
  if (used > count) join();
  for (int i = me; i < count; i += block_threads) best[i] = gathered[i];
}

__global__ void list_keys(const TopKey* keys, std::int64_t size, VertexId* cols, float* scores) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= size) return;
  const TopKey key = keys[i];
  cols[i] = col_of(key);
  scores[i] = score_of(key);
}

}  // namespace

void offer_to_top_on_gpu(const ConstOperand& scores, std::int64_t first_col,
                         const LeftOut& left_out, MatrixView<TopKey> keys,
                         std::int32_t* not_a_number, Device device, Stream stream) {
  const OnDevice there(device);
  const Rows rows{static_cast<const float*>(scores.data),
                  scores.stride,
                  scores.cols,
                  first_col,
                  left_out,
                  not_a_number};
  const bool aligned = reinterpret_cast<std::uintptr_t>(scores.data) % sizeof(float4) == 0 &&
                       scores.stride % width == 0;
  const dim3 grid(cuda::num_blocks(scores.rows, 1));
  if (keys.cols <= warp) {
    return cuda::launch_overlapped(aligned ? offer_to_short<true> : offer_to_short<false>, grid,
                                   block_threads, stream, rows, keys);
  }
  const int room = room_for(keys.cols);
  const std::size_t shared = static_cast<std::size_t>(room) * sizeof(TopKey);
  const auto kernel = aligned ? offer_to_long<true> : offer_to_long<false>;
  cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared)),
             "asking for shared memory");
  cuda::launch_overlapped(kernel, grid, block_threads, shared, stream, rows, keys, room);
}

void list_top_on_gpu(const TopKey* keys, std::int64_t size, VertexId* cols, float* scores,
                     Device device, Stream stream) {
  const OnDevice there(device);
  cuda::launch_each(list_keys, size, stream, keys, size, cols, scores);
}

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/overlap.cuh"
#include "cuda/shared_memory.cuh"
#include "cuda/wgmma.cuh"
#include "ops/gemm/cuda/neighbours.cuh"
#include "ops/gemm/cuda/planes.cuh"
#include "ops/gemm/cuda/split_sums.cuh"
#include "ops/gemm/cuda/stream_moments.cuh"

/// Products of very many rows with a small matrix, at the speed at which the rows come from memory.
/// A block keeps the right factor in shared memory as bf16 planes; each group of four warps goes
/// over rows, 64 at a time, straight from memory into registers, and multiplies them on Hopper's
/// matrix units. There is no barrier between the beginning and the end.
namespace tessera::ops {

inline constexpr int stream_tile_rows = 64;
/// Steps of 16 of the inner size that are in flight from memory.
inline constexpr int stream_batch = 4;

/// The right factor in shared memory: one line of 128 bytes per number of the inner size and 64
/// columns, in the order that wgmma reads. Behind it what is done to columns of the left factor.
struct StreamLayout {
  /// Shared memory of a block on Hopper.
  static constexpr int most_bytes = 227 << 10;

  __host__ __device__ static std::int64_t padded(std::int64_t inner) {
    return (inner + 15) / 16 * 16;
  }
  __host__ __device__ static std::int64_t plane_bytes(std::int64_t inner) {
    return padded(inner) * 128;
  }
  __host__ __device__ static std::int64_t columns_at(std::int64_t inner) {
    return num_planes * plane_bytes(inner);
  }
  /// 1024 bytes more than that, to begin on such a boundary.
  __host__ __device__ static std::int64_t bytes(std::int64_t inner, bool fused) {
    const std::int64_t columns = padded(inner) * static_cast<std::int64_t>(sizeof(float4));
    return columns_at(inner) + 1024 + (fused ? columns : 0);
  }

  /// A lane loads four neighbours of a row at once, and the matrix unit takes them as two pairs
  /// eight apart: so the lines of a step are exchanged.
  __device__ static int line_of(int inner) {
    const int four = inner % 16 / 4;
    const int place = inner % 4;
    return inner / 16 * 16 + (place < 2 ? 0 : 8) + four * 2 + place % 2;
  }
};

/// The matrix unit leaves a lane pairs of columns eight apart. Columns are exchanged so that two
/// such pairs are neighbours: a lane writes four at once.
__device__ inline int exchanged_column(int col) {
  const int lane = col % 16 / 4;
  const int place = col % 4;
  return col / 16 * 16 + (place < 2 ? 0 : 8) + lane * 2 + place % 2;
}

/// Writes `cols` columns of the right factor, or as many as there are, into shared memory: `first`
/// is the first of them. Called once: its registers must not be asked of what follows.
template <int cols>
__device__ __noinline__ void keep_right(const float* first, std::int64_t stride, int inner,
                                        bool inner_in_row, std::int64_t columns, char* planes) {
  using Layout = StreamLayout;
  const auto plane_bytes = static_cast<int>(Layout::plane_bytes(inner));
  constexpr int kept_cols = 64;
  // Neighbouring threads read neighbours: a block has 16 by 16 numbers at a time, and many such on
  // their way, as no row is multiplied before all are there.
  constexpr int steps_at_once = 4, per_step = kept_cols / 16;
  const int along = static_cast<int>(threadIdx.x) % 16, across = static_cast<int>(threadIdx.x) / 16;
  const int in_step = inner_in_row ? along : across, in_columns = inner_in_row ? across : along;
  const std::int64_t inner_step = inner_in_row ? 1 : stride,
                     column_step = inner_in_row ? stride : 1;
#pragma unroll 1
  for (int begin = in_step; begin < Layout::padded(inner); begin += 16 * steps_at_once) {
    float values[steps_at_once][per_step];
#pragma unroll
    for (int step = 0; step < steps_at_once; ++step) {
#pragma unroll
      for (int i = 0; i < per_step; ++i) {
        const int k = begin + 16 * step, col = 16 * i + in_columns;
        const bool exists = k < inner && col < cols && col < columns;
        values[step][i] = exists ? first[k * inner_step + col * column_step] : 0.0f;
      }
    }
#pragma unroll
    for (int step = 0; step < steps_at_once; ++step) {
      const int k = begin + 16 * step;
      if (k >= Layout::padded(inner)) break;
      const int line = Layout::line_of(k);
#pragma unroll
      for (int i = 0; i < per_step; ++i) {
        const int at = exchanged_column(16 * i + in_columns);
        char* const place = planes + line * 128 + ((at / 8) ^ (line % 8)) * 16 + at % 8 * 2;
        float rest = values[step][i];
#pragma unroll
        for (int plane = 0; plane < num_planes; ++plane) {
          const __nv_bfloat16 part = __float2bfloat16_rn(rest);
          *reinterpret_cast<__nv_bfloat16*>(place + plane * plane_bytes) = part;
          rest -= __bfloat162float(part);
        }
      }
    }
  }
}
static_assert(stream_threads == 16 * 16);

/// Writes what is done to columns of the left factor into shared memory; those that only fill up
/// stay 0.
__device__ inline void keep_columns(const ProductLaunch& launch, cuda::ColumnNumbers* columns) {
  const auto padded = static_cast<int>(StreamLayout::padded(launch.inner));
  for (int i = static_cast<int>(threadIdx.x); i < padded; i += stream_threads) {
    columns[i] =
        i < launch.inner ? launch.left_columns.numbers[i] : cuda::ColumnNumbers{0, 0, 0, 0};
  }
}

/// Where a lane's two rows, eight apart, are in memory, from its first four numbers on.
struct StreamRows {
  const float* upper;
  std::int64_t eight_rows;
  int num_rows;   ///< of the two
  int inner;      ///< numbers from there on
  bool is_whole;  ///< all rows of the tile are there, in fours, and no step is left out

  __device__ StreamRows(const ProductLaunch& launch, std::int64_t tile, std::int64_t row,
                        int at_once) {
    const int four = static_cast<int>(threadIdx.x) % 4 * 4;
    upper = launch.left.data + row * launch.left.stride + four;
    eight_rows = 8 * launch.left.stride;
    num_rows = row + 8 < launch.rows ? 2 : row < launch.rows ? 1 : 0;
    inner = static_cast<int>(launch.inner) - four;
    is_whole = at_once == 4 && launch.inner % (16 * stream_batch) == 0 &&
               (tile + 1) * stream_tile_rows <= launch.rows;
  }
};

/// What a lane has of one step: four neighbours of both rows.
struct StreamStep {
  float values[2][4];

  __device__ void load(const StreamRows& rows, int step, int at_once) {
    const float* const source = rows.upper + step * 16;
    if (rows.is_whole) {
      // With no questions asked: these kernels wait for instructions.
      load_neighbours(source, 4, 4, values[0]);
      load_neighbours(source + rows.eight_rows, 4, 4, values[1]);
      return;
    }
    const int count = rows.inner - step * 16;
    load_neighbours(source, rows.num_rows > 0 ? count : 0, at_once, values[0]);
    load_neighbours(source + rows.eight_rows, rows.num_rows > 1 ? count : 0, at_once, values[1]);
  }

  /// `columns` are those of the four neighbours.
  __device__ void read(const ReadColumns& reading, const cuda::ColumnNumbers* columns) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const cuda::ColumnNumbers column = columns[i];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        values[half][i] = reading.value(values[half][i], column);
      }
    }
  }
};

/// The left factor of one step, as planes.
struct StreamFragment {
  std::uint32_t words[num_planes][4];

  __device__ void cut(const StreamStep& step) {
    const FourInPlanes upper(step.values[0]);
    const FourInPlanes lower(step.values[1]);
#pragma unroll
    for (int plane = 0; plane < num_planes; ++plane) {
      words[plane][0] = upper.words[plane][0];
      words[plane][1] = lower.words[plane][0];
      words[plane][2] = upper.words[plane][1];
      words[plane][3] = lower.words[plane][1];
      cuda::keep_in_place(words[plane]);
    }
  }

  /// Begins to add its product with the right factor, the smallest parts first.
  template <int count>
  __device__ void multiply(std::uint64_t right, std::uint64_t plane_step,
                           float (&sums)[count]) const {
    cuda::wgmma_fence();
    each_plane_pair(
        [&](int p, int q) { cuda::wgmma<__nv_bfloat16>(sums, words[p], right + q * plane_step); });
    cuda::wgmma_commit();
  }
};

/// Where planes could not hold a factor: rare, so out of the way.
template <int cols>
__device__ __noinline__ void sum_plainly(const ProductLaunch& launch, bool inner_in_row,
                                         std::int64_t row, std::int64_t first_col, float* sums) {
  const int four = static_cast<int>(threadIdx.x) % 4 * 4;
  for (int i = 0; i < cols / 2; ++i) {
    const std::int64_t at_row = row + i / 2 % 2 * 8;
    const std::int64_t col = first_col + i / 8 * 16 + four + i / 4 % 2 * 2 + i % 2;
    if (isfinite(sums[i]) || at_row >= launch.rows || col >= launch.cols) continue;
    sums[i] = inner_in_row ? plain_sum<true, true>(launch, at_row, col, 0, launch.inner)
                           : plain_sum<true, false>(launch, at_row, col, 0, launch.inner);
  }
}

/// What is stored; a not-a-number passes. Products that do more already leave ReLU to others.
template <bool fused>
__device__ float finished(const ProductLaunch& launch, float result) {
  return !fused && launch.target.relu && result <= 0 ? 0.0f : result;
}

/// Writes the sums of a lane's two rows, four columns at a time.
template <int cols, class Moments>
__device__ void write_rows(const ProductLaunch& launch, std::int64_t row, std::int64_t first_col,
                           bool in_fours, const float (&sums)[cols / 2], Moments& moments) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int j = 0; j < cols / 16; ++j) {
    const std::int64_t col = first_col + j * 16 + lane % 4 * 4;
    cuda::Pack<float, 4> results[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t at_row = row + half * 8;
      if (at_row >= launch.rows) continue;
      float* const to = launch.target.data + at_row * launch.target.row_step;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (col + i >= launch.cols) break;
        float result = launch.alpha * sums[j * 8 + i / 2 * 4 + half * 2 + i % 2];
        if (launch.target.bias != nullptr) result += launch.target.bias[col + i];
        if (launch.beta != 0) result = fmaf(launch.beta, to[col + i], result);
        results[half].values[i] = finished<Moments::wanted>(launch, result);
      }
      if (in_fours && col + 3 < launch.cols) {
        *reinterpret_cast<cuda::Pack<float, 4>*>(to + col) = results[half];
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (col + i < launch.cols) to[col + i] = results[half].values[i];
        }
      }
    }
    moments.add(j, results, launch.cols - col, row < launch.rows, row + 8 < launch.rows);
  }
}

/// The same of a tile whose rows and columns are all there, with as few instructions as may be.
template <int cols, class Moments>
__device__ void write_whole_rows(const ProductLaunch& launch, std::int64_t row,
                                 std::int64_t first_col, const float (&sums)[cols / 2],
                                 Moments& moments) {
  const std::int64_t col = first_col + static_cast<int>(threadIdx.x) % 4 * 4;
  float* const upper = launch.target.data + row * launch.target.row_step + col;
  float* const lower = upper + 8 * launch.target.row_step;
#pragma unroll
  for (int j = 0; j < cols / 16; ++j) {
    float bias[4] = {};
    if (launch.target.bias != nullptr) {
#pragma unroll
      for (int i = 0; i < 4; ++i) bias[i] = launch.target.bias[col + j * 16 + i];
    }
    cuda::Pack<float, 4> results[2];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = j * 8 + i / 2 * 4 + i % 2;
      results[0].values[i] =
          finished<Moments::wanted>(launch, fmaf(launch.alpha, sums[at], bias[i]));
      results[1].values[i] =
          finished<Moments::wanted>(launch, fmaf(launch.alpha, sums[at + 2], bias[i]));
    }
    *reinterpret_cast<cuda::Pack<float, 4>*>(upper + j * 16) = results[0];
    *reinterpret_cast<cuda::Pack<float, 4>*>(lower + j * 16) = results[1];
    moments.add(j, results, 4, true, true);
  }
}

template <int cols, bool fused>
__global__ __launch_bounds__(stream_threads,
                             2) void stream_rows(const __grid_constant__ ProductLaunch launch,
                                                 bool inner_in_row) {
#if defined(TESSERA_HAS_WGMMA)
  using Layout = StreamLayout;
  extern __shared__ char shared[];
  const auto [address, memory] = cuda::AlignedShared(shared);
  auto* const columns =
      reinterpret_cast<cuda::ColumnNumbers*>(memory + Layout::columns_at(launch.inner));
  const std::int64_t first_col = std::int64_t{blockIdx.y} * cols;
  cuda::begin_overlapped();
  keep_right<cols>(launch.right.data + first_col * (inner_in_row ? launch.right.stride : 1),
                   launch.right.stride, static_cast<int>(launch.inner), inner_in_row,
                   launch.cols - first_col, memory);
  const bool reads_columns = fused && launch.left_columns.numbers != nullptr;
  if (reads_columns) keep_columns(launch, columns);
  StreamMoments<cols, fused> moments(launch, inner_in_row, first_col);
  cuda::fence_shared_for_wgmma();
  __syncthreads();

  const std::uint64_t descriptor = cuda::wgmma_descriptor(address, 0);
  const auto plane_step = static_cast<std::uint64_t>(Layout::plane_bytes(launch.inner) >> 4);
  const auto steps = static_cast<int>(Layout::padded(launch.inner) / 16);
  const int at_once = neighbours_at_once(launch.left);
  const bool in_fours = reinterpret_cast<std::uintptr_t>(launch.target.data) % 16 == 0 &&
                        launch.target.row_step % 4 == 0;
  const bool has_whole_columns =
      in_fours && first_col + cols <= launch.cols && launch.alpha == 1 && launch.beta == 0;
  constexpr int groups = stream_threads / 128;
  const std::int64_t tiles = (launch.rows + stream_tile_rows - 1) / stream_tile_rows;
  const std::int64_t stride = std::int64_t{gridDim.x} * groups;
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t first_tile = std::int64_t{blockIdx.x} * groups + thread / 128;
  const auto row_of = [&](std::int64_t tile) {
    return tile * stream_tile_rows + thread % 128 / 32 * 16 + thread % 32 / 4;
  };

  StreamStep ahead[stream_batch];
#pragma unroll
  for (int i = 0; i < stream_batch; ++i) {
    ahead[i].load(StreamRows(launch, first_tile, row_of(first_tile), at_once), i, at_once);
  }
  for (std::int64_t tile = first_tile; tile < tiles; tile += stride) {
    float sums[cols / 2] = {};
    for (int first_step = 0; first_step < steps; first_step += stream_batch) {
      // What comes after this batch: the tile's next one, or the next tile's first.
      const bool same_tile = first_step + stream_batch < steps;
      const std::int64_t next_tile = same_tile ? tile : tile + stride;
      const StreamRows next(launch, next_tile, row_of(next_tile), at_once);
      const int next_step = same_tile ? first_step + stream_batch : 0;
#pragma unroll
      for (int i = 0; i < stream_batch; ++i) {
        const bool exists = first_step + i < steps;
        StreamFragment left;
        if (exists) {
          if (reads_columns) {
            ahead[i].read(launch.left_columns, columns + (first_step + i) * 16 + thread % 4 * 4);
          }
          left.cut(ahead[i]);
        }
        ahead[i].load(next, next_step + i, at_once);
        if (exists) {
          left.multiply(descriptor + (first_step + i) * cuda::wgmma_step, plane_step, sums);
          cuda::wgmma_wait();
          cuda::keep_in_place(sums);
        }
      }
    }
    float rest = 0;
#pragma unroll
    for (int i = 0; i < cols / 2; ++i) rest = fmaf(sums[i], 0.0f, rest);
    if (rest != 0) {
      float copies[cols / 2];
#pragma unroll
      for (int i = 0; i < cols / 2; ++i) copies[i] = sums[i];
      sum_plainly<cols>(launch, inner_in_row, row_of(tile), first_col, copies);
#pragma unroll
      for (int i = 0; i < cols / 2; ++i) sums[i] = copies[i];
    }
    if (has_whole_columns && (tile + 1) * stream_tile_rows <= launch.rows) {
      write_whole_rows<cols>(launch, row_of(tile), first_col, sums, moments);
    } else {
      write_rows<cols>(launch, row_of(tile), first_col, in_fours, sums, moments);
    }
  }
  moments.finish(launch, first_col);
#endif
}

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/launch.cuh"
#include "cuda/shared_memory.cuh"
#include "cuda/wgmma.cuh"
#include "ops/gemm/cuda/neighbours.cuh"
#include "ops/gemm/cuda/planes.cuh"
#include "ops/gemm/cuda/split_sums.cuh"

/// Products with a small result of two matrices that have very many rows, A^T B: the gradients of
/// weights. Both factors go once from memory through registers, where they are cut into bf16
/// planes, into shared memory, as they lie: Hopper's matrix units read them across their rows.
namespace tessera::ops {

inline constexpr int inner_threads = product_threads;
/// Rows of both factors between two barriers.
inline constexpr int inner_lines = 64;
inline constexpr int inner_tile_rows = 64;

/// D[64][n] += A B, A of 64 x 16 and B of 16 x n numbers in shared memory, n being 64, 32 or 16; a
/// lane has the first n / 2 of `d`. Lines of 64 numbers are one of the 16 each, or the rows of A
/// unless `left_across`. Without `adds` what was in `d` is forgotten.
template <int n, int left_across = 1>
__device__ void wgmma_across(float (&d)[32], std::uint64_t a, std::uint64_t b, int adds) {
#if defined(TESSERA_HAS_WGMMA)
  if constexpr (n == 64) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" TESSERA_PLACES_32
        "}, %32, %33, p, 1, 1, %35, 1;\n}"
        : TESSERA_SUMS_32(d, 0)
        : "l"(a), "l"(b), "r"(adds), "n"(left_across));
  } else if constexpr (n == 32) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %18, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {" TESSERA_PLACES_16
        "}, %16, %17, p, 1, 1, %19, 1;\n}"
        : TESSERA_SUMS_16(d, 0)
        : "l"(a), "l"(b), "r"(adds), "n"(left_across));
  } else {
    static_assert(n == 16);
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %10, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7}"
        ", %8, %9, p, 1, 1, %11, 1;\n}"
        : TESSERA_SUMS_8(d, 0)
        : "l"(a), "l"(b), "r"(adds), "n"(left_across));
  }
#endif
}

/// A tile in shared memory, whatever its width.
inline constexpr int inner_plane_bytes = inner_lines * 128;
inline constexpr int inner_tile_bytes = num_planes * inner_plane_bytes;

/// `width` columns of a factor, 64, 32 or 16, `inner_lines` rows at a time.
template <int width>
class InnerTile {
 public:
  __device__ InnerTile(const cuda::Rows<const float>& matrix, int first_col, std::int64_t cols,
                       char* shared)
      : matrix_(matrix), shared_(shared), vector_(neighbours_at_once(matrix)) {
    first_col_ = first_col + static_cast<int>(threadIdx.x) % lanes * 4;
    cols_left_ = static_cast<int>(cols) - first_col_;
  }

  /// Begins to load the rows [begin, end), at most `inner_lines` of them; the others are 0.
  __device__ void fetch(std::int64_t begin, std::int64_t end) {
#pragma unroll
    for (int i = 0; i < fours; ++i) {
      const std::int64_t row = begin + line(i);
      load_neighbours(matrix_.data + row * matrix_.stride + first_col_, row < end ? cols_left_ : 0,
                      vector_, values_[i]);
    }
  }

  /// Does to its columns what there is to do. Rows that are not there may become anything: those of
  /// the other factor are 0.
  __device__ void read(const ReadColumns& reading) {
    if (reading.numbers == nullptr) return;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const cuda::ColumnNumbers column =
          i < cols_left_ ? reading.numbers[first_col_ + i] : cuda::ColumnNumbers{0, 0, 0, 0};
#pragma unroll
      for (int four = 0; four < fours; ++four) {
        float& value = values_[four][i];
        value = reading.value(value, column);
      }
    }
  }

  __device__ void keep() const {
#pragma unroll
    for (int i = 0; i < fours; ++i) {
      const int col = static_cast<int>(threadIdx.x) % lanes * 4;
      FourInPlanes(values_[i])
          .keep(shared_ + line(i) * 128 + ((col / 8) ^ (line(i) % 8)) * 16 + col % 8 * 2,
                inner_plane_bytes);
    }
  }

 private:
  static constexpr int lanes = width / 4;  // of a line
  static constexpr int lines_at_once = inner_threads / lanes;
  static constexpr int fours = inner_lines / lines_at_once;

  __device__ static int line(int i) {
    return i * lines_at_once + static_cast<int>(threadIdx.x) / lanes;
  }

  const cuda::Rows<const float>& matrix_;
  char* shared_;
  int vector_;
  int first_col_, cols_left_;
  float values_[fours][4];
};

/// The product of 64 and n columns of so many lines for one group of four warps, its smallest parts
/// first; every `stride`-th of its steps from `first` on. Of numbers that are not cut there is one
/// plane.
template <int n, int stride, int planes = num_planes, int lines = inner_lines>
__device__ void multiply_lines(std::uint32_t left, std::uint32_t right, int first,
                               float (&sums)[32]) {
  constexpr std::uint64_t plane_step = lines * 128 >> 4;
  const std::uint64_t of_left = cuda::wgmma_descriptor(left, 0);
  const std::uint64_t of_right = cuda::wgmma_descriptor(right, 0);
  int adds = 0;
  cuda::wgmma_fence();
#pragma unroll
  for (int step = 0; step < lines / 16; step += stride) {
    const int at = step + first;
    each_plane_pair<planes>([&](int p, int q) {
      wgmma_across<n>(sums, of_left + at * cuda::wgmma_step + p * plane_step,
                      of_right + at * cuda::wgmma_step + q * plane_step, adds);
      adds = 1;
    });
  }
  cuda::wgmma_commit();
}

/// The same for both groups: with 64 columns they share the lines, with `more` the second has
/// those, which lie in `rest`.
template <int more, int planes = num_planes, int lines = inner_lines>
__device__ void multiply_in_groups(std::uint32_t left, std::uint32_t right, std::uint32_t rest,
                                   int group, float (&sums)[32]) {
  if constexpr (more == 0) {
    multiply_lines<64, 2, planes, lines>(left, right, group, sums);
  } else if (group == 0) {
    multiply_lines<64, 1, planes, lines>(left, right, 0, sums);
  } else {
    multiply_lines<more, 1, planes, lines>(left, rest, 0, sums);
  }
}

/// Waits for the products of a chunk and adds them; the second group has no more than its columns.
template <int more>
__device__ void add_lines(int group, float (&chunk)[32], float (&sums)[32]) {
  cuda::wgmma_wait();
  cuda::keep_in_place(chunk);
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    if (more == 0 || group == 0 || i < more / 2) sums[i] += chunk[i];
  }
}

/// Where two groups of warps have 64 columns of the same result, each of its own lines, the first
/// gets all sums of the first 32 columns and the second those of the others: one block adds up what
/// the others found, and takes half as long with twice as many threads. `shared` has room for 32
/// numbers of 128 threads each.
__device__ inline void share_columns(const float (&sums)[32], float* shared, int group,
                                     float (&own)[16]) {
  const int place = static_cast<int>(threadIdx.x) % 128;
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    shared[(i + group * 16) * 128 + place] = group == 0 ? sums[i + 16] : sums[i];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    own[i] = (group == 0 ? sums[i] : sums[i + 16]) + shared[(i + (1 - group) * 16) * 128 + place];
  }
}

/// Calls visit(row, column, sum) for the sums of this thread: each group has 32 columns, or the
/// first has 64 and the second `more`.
template <int more, class Launch, int num_sums, class Visit>
__device__ void for_inner_sums(const Launch& launch, int group, float (&sums)[num_sums],
                               Visit&& visit) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t row = static_cast<int>(threadIdx.x) % 128 / 32 * 16 + lane / 4;
  const std::int64_t col = group * (more > 0 ? 64 : 32) + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < num_sums; ++i) {
    if (more > 0 && group == 1 && i >= more / 2) break;
    const std::int64_t at_row = row + i / 2 % 2 * 8, at_col = col + i / 4 * 8 + i % 2;
    if (at_row < launch.rows && at_col < launch.cols) visit(at_row, at_col, sums[i]);
  }
}

/// Adds up what all blocks found and stores it. Where planes could not hold a factor of the lines
/// from `begin` to `end` sums are found plainly. `shared` is as for `share_columns`.
template <int more, class T>
__device__ void finish_inner(const ProductLaunchOf<T>& launch, int group, std::int64_t begin,
                             std::int64_t end, float (&sums)[32], float* shared) {
  const auto finish = [&](auto& own) {
    const auto each = [&](auto&& visit) { for_inner_sums<more>(launch, group, own, visit); };
    if constexpr (num_planes_of<T> != 1) {
      each([&](std::int64_t row, std::int64_t col, float& sum) {
        if (!isfinite(sum)) sum = plain_sum<false, false>(launch, row, col, begin, end);
      });
    }
    if (!add_across_splits(launch.split, {0, 0, 0, static_cast<int>(blockIdx.x)}, own)) return;
    each([&](std::int64_t row, std::int64_t col, float sum) {
      write_result(launch, row, col, sum);
    });
  };
  if constexpr (more > 0) {
    finish(sums);
  } else {
    float own[16];
    share_columns(sums, shared, group, own);
    finish(own);
  }
}

/// A block for each part of the inner size.
template <class Launch>
void launch_splits(void (*kernel)(const Launch), int threads, int bytes, const Launch& launch,
                   Stream stream) {
  cuda::allow_shared(kernel, bytes);
  cuda::launch_overlapped(kernel, dim3(static_cast<unsigned>(launch.split.splits)),
                          static_cast<unsigned>(threads), static_cast<std::size_t>(bytes), stream,
                          launch);
}

/// Of a block whose result has 64 columns, or `more` than that.
template <int more>
constexpr int stream_inner_bytes() {
  return (more > 0 ? 3 : 2) * inner_tile_bytes + 1024;
}

template <int more, bool fused>
__global__ __launch_bounds__(inner_threads,
                             2) void stream_inner(const __grid_constant__ ProductLaunch launch) {
#if defined(TESSERA_HAS_WGMMA)
  extern __shared__ char shared[];
  const auto [address, memory] = cuda::AlignedShared(shared);
  const std::int64_t begin = blockIdx.x * launch.split.inner_per_split;
  const std::int64_t end = min(launch.inner, begin + launch.split.inner_per_split);
  constexpr int tile_bytes = inner_tile_bytes;
  constexpr bool has_more = more > 0;
  constexpr int rest_cols = has_more ? more : 16;
  InnerTile<64> left(launch.left, 0, launch.rows, memory);
  InnerTile<64> right(launch.right, 0, launch.cols, memory + tile_bytes);
  InnerTile<rest_cols> rest(launch.right, 64, launch.cols, memory + 2 * tile_bytes);
  cuda::begin_overlapped();

  float sums[32] = {};
  const int group = static_cast<int>(threadIdx.x) / 128;
  const auto fetch = [&](std::int64_t at) {
    left.fetch(at, end);
    right.fetch(at, end);
    if constexpr (has_more) rest.fetch(at, end);
  };
  fetch(begin);
  for (std::int64_t at = begin; at < end; at += inner_lines) {
    if constexpr (fused) {
      left.read(launch.left_columns);
      right.read(launch.right_columns);
      if constexpr (has_more) rest.read(launch.right_columns);
    }
    left.keep();
    right.keep();
    if constexpr (has_more) rest.keep();
    cuda::fence_shared_for_wgmma();
    __syncthreads();
    float chunk[32];
    multiply_in_groups<more>(address, address + tile_bytes, address + 2 * tile_bytes, group, chunk);
    if (at + inner_lines < end) fetch(at + inner_lines);
    add_lines<more>(group, chunk, sums);
    __syncthreads();
  }
  finish_inner<more>(launch, group, begin, end, sums, reinterpret_cast<float*>(memory));
#endif
}

}  // namespace tessera::ops

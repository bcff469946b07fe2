// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/async_copy.cuh"
#include "ops/gemm/cuda/stream_inner.cuh"

/// Products of bf16 matrices with very many rows, A^T B, as in stream_inner.cuh. Numbers need not
/// be cut, so rows are copied as they lie to where the matrix units read them, as many tiles ahead
/// as a processor has room for: with one block on each of them, half as many sums are added up.
namespace tessera::ops {

using NarrowLaunch = ProductLaunchOf<__nv_bfloat16>;

/// 64 rows of 64 columns.
inline constexpr int narrow_matrix_bytes = inner_plane_bytes;

/// The left factor, the right one, and its columns beyond 64 where it has `more`.
template <int more>
constexpr int narrow_stage_bytes() {
  return (more > 0 ? 3 : 2) * narrow_matrix_bytes;
}
template <int more>
inline constexpr int narrow_stages = more > 0 ? 8 : 12;
template <int more>
constexpr int stream_inner_narrow_bytes() {
  return narrow_stages<more> * narrow_stage_bytes<more>() + 1024;
}

/// Copies `bytes` bytes, 16 or 4, or writes as many zeros.
template <int bytes>
__device__ void copy_or_zero(std::uint32_t to, const void* from, bool exists) {
  const int count = exists ? bytes : 0;
  if constexpr (bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(count)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(count)
                 : "memory");
  }
}

/// Begins to copy `width` columns from `first_col` on of the rows [begin, end), 64 at most, `bytes`
/// at once.
template <int width, int bytes>
__device__ void copy_narrow_rows(const cuda::Rows<const __nv_bfloat16>& matrix, int first_col,
                                 std::int64_t cols, std::int64_t begin, std::int64_t end,
                                 std::uint32_t to) {
  constexpr int pieces = width * 2 / bytes, numbers = bytes / 2;
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < inner_lines * pieces; i += inner_threads) {
    const int line = i / pieces, col = i % pieces * numbers;
    const bool exists = begin + line < end && first_col + col < cols;
    const __nv_bfloat16* const from =
        matrix.data + (exists ? (begin + line) * matrix.stride + first_col + col : 0);
    copy_or_zero<bytes>(to + line * 128 + ((col / 8) ^ (line % 8)) * 16 + col % 8 * 2, from,
                        exists);
  }
}

/// Whether rows can be copied so many bytes at once, none of which lies beyond the last column.
inline bool copies_narrow_rows(const cuda::Rows<const __nv_bfloat16>& matrix, std::int64_t cols,
                               int bytes) {
  const std::int64_t numbers = bytes / 2;
  return reinterpret_cast<std::uintptr_t>(matrix.data) % static_cast<std::uintptr_t>(bytes) == 0 &&
         matrix.stride % numbers == 0 && cols % numbers == 0;
}

/// `wide`: rows of the right factor are copied 16 bytes at once, else 4. Those of the left one are
/// copied 16 at once.
template <int more, bool wide>
__global__ __launch_bounds__(inner_threads, 1) void stream_inner_narrow(
    const __grid_constant__ NarrowLaunch launch) {
#if defined(TESSERA_HAS_WGMMA)
  extern __shared__ char shared[];
  const auto [address, memory] = cuda::AlignedShared(shared);
  constexpr bool has_more = more > 0;
  constexpr int rest_cols = has_more ? more : 16, bytes = wide ? 16 : 4;
  constexpr int stages = narrow_stages<more>;
  const std::int64_t begin = blockIdx.x * launch.split.inner_per_split;
  const std::int64_t end = min(launch.inner, begin + launch.split.inner_per_split);
  const int group = static_cast<int>(threadIdx.x) / 128;
  cuda::begin_overlapped();
  const auto stage_of = [&](int tile) {
    return address + static_cast<std::uint32_t>(tile % stages * narrow_stage_bytes<more>());
  };
  const auto copy = [&](int tile) {
    const std::int64_t first = begin + std::int64_t{tile} * inner_lines;
    if (first < end) {
      const std::uint32_t to = stage_of(tile);
      copy_narrow_rows<64, 16>(launch.left, 0, launch.rows, first, end, to);
      copy_narrow_rows<64, bytes>(launch.right, 0, launch.cols, first, end,
                                  to + narrow_matrix_bytes);
      if constexpr (has_more) {
        copy_narrow_rows<rest_cols, bytes>(launch.right, 64, launch.cols, first, end,
                                           to + 2 * narrow_matrix_bytes);
      }
    }
    cuda::commit_copies();
  };
  for (int tile = 0; tile < stages - 1; ++tile) copy(tile);

  float sums[32] = {};
  const auto tiles = static_cast<int>((end - begin + inner_lines - 1) / inner_lines);
  for (int tile = 0; tile < tiles; ++tile) {
    cuda::wait_for_copies<stages - 2>();
    cuda::fence_shared_for_wgmma();
    __syncthreads();
    // All are done with the tile before this one, whose place the next copies take.
    const std::uint32_t left = stage_of(tile), right = left + narrow_matrix_bytes;
    float chunk[32];
    multiply_in_groups<more, 1>(left, right, right + narrow_matrix_bytes, group, chunk);
    copy(tile + stages - 1);
    add_lines<more>(group, chunk, sums);
  }
  cuda::wait_for_copies<0>();
  __syncthreads();
  finish_inner<more>(launch, group, begin, end, sums, reinterpret_cast<float*>(memory));
#endif
}

/// One instance for each width.
template <int more>
void run_stream_inner_narrow(const NarrowLaunch& launch, bool wide, Stream stream);

}  // namespace tessera::ops

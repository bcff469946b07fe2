// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/async_copy.cuh"
#include "cuda/overlap.cuh"
#include "cuda/wgmma_rows.cuh"
#include "ops/bits/cuda/integer_mma.cuh"
#include "ops/bits/cuda/planes.cuh"
#include "ops/bits/cuda/store.cuh"

/// One plane of bits times numbers of up to eight bits, as bytes on Hopper's matrix units. A lane
/// keeps 16 bytes of two rows of A, and a shift and a mask make four numbers of a fragment: bits i,
/// i + 8, i + 16 and i + 24 of a word. The order of K is free as long as both sides have the same,
/// so B's bytes lie in the order that A's bits come out in.
///
/// K goes in groups of 512. In group G, number k = 128 q + 32 j + i + 8 c (q, j, c < 4, i < 8)
/// stands in tile 4 G + j at byte 16 i + 4 q + c of its column's line of 128. A tile is the lines
/// of `width` columns in the order that the matrix unit reads them from shared memory.
namespace tessera::ops {

template <int groups_, int width_, int slots_>
struct BytesPolicy {
  static constexpr int groups = groups_;  ///< warp groups
  static constexpr int width = width_;    ///< columns of a block, and of a tile of B
  static constexpr int slots = slots_;    ///< groups of K in shared memory
};

inline constexpr int group_bits = 512;
inline constexpr int group_words = 16;

template <class Policy>
inline constexpr int bytes_slot_bytes = Policy::width* group_bits;
template <class Policy>
inline constexpr int bytes_shared_bytes = Policy::slots* bytes_slot_bytes<Policy> + 1024;

/// What B takes as bytes.
inline std::int64_t byte_operand_bytes(std::int64_t columns, std::int64_t row_words, int width) {
  const std::int64_t groups = (row_words + group_words - 1) / group_words;
  return groups * group_bits * ((columns + width - 1) / width * width);
}

/// Makes bytes of planes: a thread has one word of one column. Lines of columns behind the last
/// become 0.
template <int width>
__global__ void planes_to_bytes_kernel(const BitRows from, std::uint8_t* to,
                                       std::int64_t padded_columns, std::int64_t groups) {
  cuda::let_next_begin();
  cuda::wait_for_previous();
  const std::int64_t thread = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t q = thread % 4;
  const std::int64_t column = thread / 4 % padded_columns;
  const std::int64_t tile = thread / 4 / padded_columns;  // 4 G + j
  if (tile >= groups * 4) return;
  const std::int64_t word = tile / 4 * group_words + q * 4 + tile % 4;
  std::uint32_t bytes[8] = {};
  if (column < from.rows && word < from.row_words) {
    const std::uint32_t* at = from.words + column * from.row_words + word;
    for (int plane = 0; plane < from.planes; ++plane) {
      const std::uint32_t bits = at[plane * from.plane_words];
#pragma unroll
      for (int i = 0; i < 8; ++i) bytes[i] |= (bits >> i & 0x01010101u) << plane;
    }
  }
  const std::int64_t tiles_of_columns = padded_columns / width;
  const int line = static_cast<int>(column % width);
  std::uint8_t* line_bytes =
      to + ((tile / 4 * tiles_of_columns + column / width) * 4 + tile % 4) * (width * 128) +
      line * 128;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    *reinterpret_cast<std::uint32_t*>(line_bytes + (i ^ line % 8) * 16 + q * 4) = bytes[i];
  }
}

template <class Policy>
__device__ void multiply_bytes(const BitProduct& product, char* memory) {
  constexpr int threads = Policy::groups * 128;
  constexpr int ahead = Policy::slots - 1;
  constexpr int slot_bytes = bytes_slot_bytes<Policy>;
  using Layout = cuda::RowLayout<128>;
  const auto cluster = cooperative_groups::this_cluster();
  const int ranks = static_cast<int>(cluster.num_blocks());
  const int tile = static_cast<int>(blockIdx.x) / ranks;
  const std::int64_t first_row = std::int64_t{tile} * Policy::groups * 64;
  const std::int64_t first_col = std::int64_t{blockIdx.y} * Policy::width;
  const int all_groups = static_cast<int>((product.a.row_words + group_words - 1) / group_words);
  const PartRange range =
      part_range(product.index, all_groups, tile, static_cast<int>(cluster.block_rank()), ranks);
  const int group = static_cast<int>(threadIdx.x) / 128;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::uint32_t base = (cuda::shared_address(memory) + 1023u) & ~1023u;

  const auto part = [&](int turn) -> std::int64_t {
    const int index = range.first + turn;
    return product.index.parts == nullptr ? index : product.index.parts[index];
  };
  const auto load = [&](int turn, int slot) {
    const std::uint8_t* from =
        product.b_bytes + (part(turn) * gridDim.y + blockIdx.y) * slot_bytes + threadIdx.x * 16;
    const std::uint32_t to =
        base + static_cast<std::uint32_t>(slot * slot_bytes) + threadIdx.x * 16;
#pragma unroll
    for (int byte = 0; byte < slot_bytes; byte += threads * 16) {
      cuda::copy_16_async(to + byte, from + byte);
    }
  };
  // Two rows of this lane: 16 bytes of a group of K each.
  const std::int64_t row = first_row + group * 64 + threadIdx.x % 128 / 32 * 16 + lane / 4;
  const std::uint32_t* upper = product.a.words + row * product.a.row_words + lane % 4 * 4;
  const std::uint32_t* lower = upper + 8 * product.a.row_words;
  const auto bits_of = [&](const std::uint32_t* of_row, bool exists, int turn) {
    const std::int64_t word = part(turn) * group_words;
    if (!exists || word + lane % 4 * 4 >= product.a.row_words) return make_uint4(0, 0, 0, 0);
    return __ldg(reinterpret_cast<const uint4*>(of_row + word));
  };
  const bool has_upper = row < product.a.rows;
  const bool has_lower = row + 8 < product.a.rows;

  for (int turn = 0; turn < ahead; ++turn) {
    if (turn < range.count) load(turn, turn);
    cuda::commit_copies();
  }
  uint4 next_upper = make_uint4(0, 0, 0, 0);
  uint4 next_lower = make_uint4(0, 0, 0, 0);
  if (range.count > 0) {
    next_upper = bits_of(upper, has_upper, 0);
    next_lower = bits_of(lower, has_lower, 0);
  }
  std::int32_t sums[Policy::width / 2] = {};
  int slot = 0;
  int next_slot = ahead;
  for (int turn = 0; turn < range.count; ++turn) {
    cuda::wait_for_copies<ahead - 1>();
    cuda::fence_shared_for_wgmma();
    __syncthreads();
    if (turn + ahead < range.count) load(turn + ahead, next_slot);
    cuda::commit_copies();
    const std::uint32_t upper_words[4] = {next_upper.x, next_upper.y, next_upper.z, next_upper.w};
    const std::uint32_t lower_words[4] = {next_lower.x, next_lower.y, next_lower.z, next_lower.w};
    if (turn + 1 < range.count) {
      next_upper = bits_of(upper, has_upper, turn + 1);
      next_lower = bits_of(lower, has_lower, turn + 1);
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const std::uint64_t b = Layout::descriptor(
          base + static_cast<std::uint32_t>(slot * slot_bytes + j * Policy::width * 128));
      std::uint32_t fragments[4][4];
#pragma unroll
      for (int step = 0; step < 4; ++step) {
        fragments[step][0] = upper_words[j] >> (2 * step) & 0x01010101u;
        fragments[step][1] = lower_words[j] >> (2 * step) & 0x01010101u;
        fragments[step][2] = upper_words[j] >> (2 * step + 1) & 0x01010101u;
        fragments[step][3] = lower_words[j] >> (2 * step + 1) & 0x01010101u;
      }
#pragma unroll
      for (int step = 0; step < 4; ++step) cuda::keep_in_place(fragments[step]);
      keep_in_place(sums);
      cuda::wgmma_fence();
#pragma unroll
      for (int step = 0; step < 4; ++step) {
        wgmma_bytes(sums, fragments[step], b + step * cuda::row_step);
      }
      cuda::wgmma_commit();
      wgmma_wait_for<0>();
      keep_in_place(sums);
    }
    slot = slot + 1 < Policy::slots ? slot + 1 : 0;
    next_slot = next_slot + 1 < Policy::slots ? next_slot + 1 : 0;
  }
  cuda::wait_for_copies<0>();
  __syncthreads();
  store_sums<Policy::width>(product, first_row, first_col, Policy::groups * 64, group * 64, sums,
                            reinterpret_cast<std::int32_t*>(memory));
}

template <class Policy>
__global__ __launch_bounds__(Policy::groups * 128,
                             1) void multiply_bytes_kernel(const BitProduct product) {
#ifdef TESSERA_HAS_WGMMA
  extern __shared__ __align__(1024) char shared[];
  cuda::let_next_begin();
  cuda::wait_for_previous();
  multiply_bytes<Policy>(product, shared);
#else
  __trap();
#endif
}

}  // namespace tessera::ops

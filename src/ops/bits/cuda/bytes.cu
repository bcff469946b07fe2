// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "cuda/async_copy.cuh"
#include "cuda/overlap.cuh"
#include "cuda/wgmma_rows.cuh"
#include "ops/bits/cuda/instances.cuh"
#include "ops/bits/cuda/integer_mma.cuh"
#include "ops/bits/cuda/plane_counts.cuh"
#include "ops/bits/cuda/store_sums.cuh"
#include "ops/windows/quad_rows.cuh"

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
  static constexpr int groups = groups_;  ///< warp groups, each with 64 rows
  static constexpr int rows = groups * 64;
  static constexpr int width = width_;  ///< columns of a block, and of a tile of B
  static constexpr int slots = slots_;  ///< groups of K in shared memory
};

inline constexpr int group_bits = 512;
inline constexpr int group_words = 16;

template <class Policy>
inline constexpr int bytes_slot_bytes = Policy::width* group_bits;
template <class Policy>
inline constexpr int bytes_shared_bytes = Policy::slots* bytes_slot_bytes<Policy> + 1024;

/// Makes bytes of planes: a thread has one word of one column, and with its neighbours the words
/// that meet in 16 bytes. Lines of columns behind the last become 0. `padded_columns` is a multiple
/// of 8, so that a warp stays together.
template <int width>
__global__ void planes_to_bytes_kernel(const BitRows from, std::uint8_t* to,
                                       std::int64_t padded_columns, std::int64_t groups) {
  cuda::begin_overlapped();
  const std::int64_t thread = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const int quarter = static_cast<int>(thread % 4);
  const int tile = static_cast<int>(thread / 4 % 4);
  const std::int64_t column = thread / group_words % padded_columns;
  const std::int64_t group = thread / group_words / padded_columns;
  if (group >= groups) return;
  const std::int64_t word = group * group_words + quarter * 4 + tile;
  std::uint32_t bytes[8] = {};
  if (column < from.rows && word < from.row_words) {
    const std::uint32_t* at = from.words + column * from.row_words + word;
#pragma unroll
    for (int plane = 0; plane < 8; ++plane) {
      if (plane >= from.planes) break;
      const std::uint32_t bits = at[plane * from.plane_words];
#pragma unroll
      for (int i = 0; i < 8; ++i) bytes[i] |= (bits >> i & 0x01010101u) << plane;
    }
  }
  const int line = static_cast<int>(column % width);
  std::uint8_t* of_line =
      to + (group * (padded_columns / width) + column / width) * (width * group_bits) +
      tile * width * 128 + line * 128;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    std::uint32_t words[4] = {bytes[half * 4], bytes[half * 4 + 1], bytes[half * 4 + 2],
                              bytes[half * 4 + 3]};
    transpose_quad(words);
    *reinterpret_cast<uint4*>(of_line + ((half * 4 + quarter) ^ line % 8) * 16) =
        make_uint4(words[0], words[1], words[2], words[3]);
  }
}

/// The bits of A that a lane has: 16 bytes of a group of K in two rows.
class LaneBits {
 public:
  __device__ LaneBits(const BitRows& a, std::int64_t first_row)
      : words_(a.words + first_row * a.row_words + threadIdx.x % 4 * 4),
        first_row_(first_row),
        rows_(a.rows),
        row_words_(a.row_words) {}

  __device__ void load(std::int64_t group) {
    const std::int64_t word = group * group_words;
    const bool exists = word + threadIdx.x % 4 * 4 < row_words_;
#pragma unroll
    for (int line = 0; line < 2; ++line) {
      const std::int64_t row = line * 8;
      bits_[line] = make_uint4(0, 0, 0, 0);
      if (exists && first_row_ + row < rows_) {
        bits_[line] = __ldg(reinterpret_cast<const uint4*>(words_ + row * row_words_ + word));
      }
    }
  }

  __device__ std::uint32_t word(int line, int j) const {
    const uint4& bits = bits_[line];
    return j == 0 ? bits.x : j == 1 ? bits.y : j == 2 ? bits.z : bits.w;
  }

 private:
  const std::uint32_t* words_;
  std::int64_t first_row_;
  std::int64_t rows_;
  std::int64_t row_words_;
  uint4 bits_[2];
};

template <class Policy>
__device__ void multiply_bytes(const BitProduct& product, char* memory) {
  constexpr int threads = Policy::groups * 128;
  constexpr int ahead = Policy::slots - 2;
  constexpr int slot_bytes = bytes_slot_bytes<Policy>;
  using Layout = cuda::RowLayout<128>;
  const auto cluster = cooperative_groups::this_cluster();
  const int ranks = static_cast<int>(cluster.num_blocks());
  const int tile_row = static_cast<int>(blockIdx.x) / ranks;
  const std::int64_t first_row = std::int64_t{tile_row} * Policy::rows;
  const std::int64_t first_col = std::int64_t{blockIdx.y} * Policy::width;
  const int all_groups = static_cast<int>((product.a.row_words + group_words - 1) / group_words);
  const PartRange range = part_range(product.index, all_groups, tile_row,
                                     static_cast<int>(cluster.block_rank()), ranks);
  const int group = static_cast<int>(threadIdx.x) / 128;
  const std::uint32_t base = cuda::AlignedShared(memory).address;

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

  LaneBits next(product.a,
                first_row + group * 64 + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4);
  // An A that stays is there before the bytes of B are.
  if (product.a_stays && range.count > 0) next.load(part(0));
  cuda::wait_for_previous();
  for (int turn = 0; turn < ahead; ++turn) {
    if (turn < range.count) load(turn, turn);
    cuda::commit_copies();
  }
  if (!product.a_stays && range.count > 0) next.load(part(0));
  std::int32_t sums[Policy::width / 2] = {};
  std::uint32_t fragments[4][4] = {};
  // The matrix unit may read fragments and slots until it is waited for, which is before the next
  // fragments are made: products go on across the barrier, and a slot rests for one turn.
  const auto finish_products = [&] {
    wgmma_wait_for<0>();
#pragma unroll
    for (auto& step : fragments) cuda::keep_in_place(step);
    keep_in_place(sums);
  };
  int slot = 0;
  int next_slot = ahead;
  for (int turn = 0; turn < range.count; ++turn) {
    cuda::wait_for_copies<ahead - 1>();
    cuda::fence_shared_for_wgmma();
    __syncthreads();
    if (turn + ahead < range.count) load(turn + ahead, next_slot);
    cuda::commit_copies();
    const LaneBits now = next;
    if (turn + 1 < range.count) next.load(part(turn + 1));
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const std::uint64_t b = Layout::descriptor(
          base + static_cast<std::uint32_t>(slot * slot_bytes + j * Policy::width * 128));
      finish_products();
#pragma unroll
      for (int step = 0; step < 4; ++step) {
#pragma unroll
        for (int place = 0; place < 4; ++place) {
          fragments[step][place] = now.word(place % 2, j) >> (2 * step + place / 2) & 0x01010101u;
        }
        cuda::keep_in_place(fragments[step]);
      }
      cuda::wgmma_fence();
#pragma unroll
      for (int step = 0; step < 4; ++step) {
        wgmma_bytes(sums, fragments[step], b + step * cuda::row_step);
      }
      cuda::wgmma_commit();
    }
    slot = slot + 1 < Policy::slots ? slot + 1 : 0;
    next_slot = next_slot + 1 < Policy::slots ? next_slot + 1 : 0;
  }
  finish_products();
  cuda::wait_for_copies<0>();
  __syncthreads();
  store_sums<Policy::width, Policy::groups>(product, first_row, first_col, group, sums,
                                            reinterpret_cast<std::int32_t*>(memory));
}

template <class Policy>
__global__ __launch_bounds__(Policy::groups * 128,
                             1) void multiply_bytes_kernel(const BitProduct product) {
#ifdef TESSERA_HAS_WGMMA
  extern __shared__ __align__(1024) char shared[];
  cuda::let_next_begin();
  multiply_bytes<Policy>(product, shared);
#else
  __trap();
#endif
}

namespace {

template <class Policy>
constexpr BitFunction function_of = clustered_function<Policy, multiply_bytes_kernel<Policy>,
                                                       group_words, bytes_shared_bytes<Policy>>();

std::int64_t padded_to(std::int64_t columns, int width) {
  return (columns + width - 1) / width * width;
}

std::int64_t num_groups(std::int64_t row_words) {
  return (row_words + group_words - 1) / group_words;
}

}  // namespace

const BitFunction bytes_functions[2] = {
    function_of<BytesPolicy<4, 128, 3>>,
    function_of<BytesPolicy<4, 64, 3>>,
};

std::int64_t byte_operand_bytes(std::int64_t columns, std::int64_t row_words, int width) {
  return num_groups(row_words) * group_bits * padded_to(columns, width);
}

void planes_to_bytes(const BitRows& b, int width, std::uint8_t* bytes, Stream stream) {
  constexpr int threads = 128;
  const std::int64_t columns = padded_to(b.rows, width);
  const std::int64_t groups = num_groups(b.row_words);
  const auto kernel = width == 128 ? planes_to_bytes_kernel<128> : planes_to_bytes_kernel<64>;
  cuda::launch_overlapped(kernel, cuda::num_blocks(groups * columns * group_words, threads),
                          threads, stream, b, bytes, columns, groups);
}

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/byte_quads.hpp"

#include "cuda/launch.cuh"
#include "tessera/tiles/quad_tiles.hpp"
#include "tiles/quad_fragment.hpp"

/// Codes on sparse tensor cores, `mma.sp.m16n8k64` of bytes: a tile of 64 columns at once.
///
/// Quads may stand in any order as long as all operands have the same. With g = lane / 4 and
/// q = lane % 4, a lane has the entries of its quads q and q + 4 of both steps
/// (tiles/quad_fragment.hpp), and the instruction wants those of two neighbours: quad i of a step
/// is its quad 2 i, quad 4 + i its quad 2 i + 1. Of the codes a lane loads eight columns, from
/// 8 g on, of the sixteen rows of four quads, straight into registers; a transposition of four by
/// four bytes makes operands of them. The instruction j of eight takes the columns 8 n + j, so that
/// a lane ends with 16 neighbouring columns of the rows g and g + 8.
namespace tessera::ops {
namespace {

constexpr int block_warps = 4;
constexpr int block_threads = 32 * block_warps;
constexpr int block_columns = 64;

/// sums[16][8] += a[16][64] b[64][8] of unsigned bytes. a[0] and a[1] are the entries of the quads
/// 2 q and 2 q + 1 of the rows g and g + 8, a[2] and a[3] of those eight further on; b[i] are the
/// rows 16 i + 4 q to 16 i + 4 q + 3 of column g. Lanes 4 g and 4 g + 1 have the indices of the
/// first eight quads of the rows g and g + 8, the next two lanes of the others.
__device__ void multiply_sparse_bytes(std::int32_t (&sums)[4], const std::uint32_t (&a)[4],
                                      const std::uint32_t (&b)[4], std::uint32_t indices) {
  asm("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.u8.u8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, 0x0;"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]),
        "r"(indices));
}

/// Four nibbles to the low halves of four bytes.
__device__ std::uint32_t spread_nibbles(std::uint32_t nibbles) {
  const std::uint32_t bytes = (nibbles | nibbles << 8) & 0x00FF00FFu;
  return (bytes | bytes << 4) & 0x0F0F0F0Fu;
}

/// The indices of a step and a row, quads i and 4 + i side by side.
__device__ std::uint32_t indices_of(const std::uint32_t* words) {
  const auto lane = static_cast<int>(threadIdx.x) % 32;
  const uint2 both = *reinterpret_cast<const uint2*>(words + lane / 2 * 2);
  const unsigned half = lane % 2 == 0 ? 0x4410u : 0x4432u;
  return spread_nibbles(__byte_perm(both.x, 0, half)) | spread_nibbles(__byte_perm(both.y, 0, half))
                                                            << 4;
}

/// 1 where there is an edge: of a register of a step and the one two further on.
__device__ std::uint32_t entries_of(std::uint32_t bits) {
  return (bits & 0x0101u) | (bits & 0x0404u) << 14;
}

/// Byte j of four words becomes word j.
__device__ void transpose_bytes(const std::uint32_t (&from)[4], std::uint32_t (&to)[4]) {
  const std::uint32_t low[2] = {__byte_perm(from[0], from[1], 0x5140),
                                __byte_perm(from[2], from[3], 0x5140)};
  const std::uint32_t high[2] = {__byte_perm(from[0], from[1], 0x7362),
                                 __byte_perm(from[2], from[3], 0x7362)};
  to[0] = __byte_perm(low[0], low[1], 0x5410);
  to[1] = __byte_perm(low[0], low[1], 0x7632);
  to[2] = __byte_perm(high[0], high[1], 0x5410);
  to[3] = __byte_perm(high[0], high[1], 0x7632);
}

__device__ void store_sums(const ByteQuadsLaunch& launch, const QuadPiece& piece,
                           const std::int32_t (&sums)[8][4]) {
  const auto lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t first_column = std::int64_t{blockIdx.y} * block_columns + lane % 4 * 16;
#pragma unroll
  for (int lower = 0; lower < 2; ++lower) {
    const std::int64_t row = std::int64_t{piece.first_row} + lane / 4 + 8 * lower;
    if (row >= launch.rows) continue;
    std::int32_t* const to = launch.sums + row * launch.stride + first_column;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      if (first_column + i >= launch.cols) break;
      const std::int32_t sum = sums[i % 8][2 * lower + i / 8];
      if (piece.is_part != 0) {
        atomicAdd(to + i, sum);  // integers: the same in every order
      } else {
        to[i] = sum;
      }
    }
  }
}

__global__ __launch_bounds__(block_threads) void sum_quads(const ByteQuadsLaunch launch) {
  const std::int64_t number = std::int64_t{blockIdx.x} * block_warps + threadIdx.x / 32;
  if (number >= launch.num_pieces) return;
  const QuadPiece piece = launch.pieces[number];
  const auto lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t own = std::int64_t{blockIdx.y} * block_columns + lane / 4 * 8;
  // Lanes beyond the last column multiply the first ones, which nobody stores.
  const std::uint8_t* const codes = launch.codes + (own < launch.width ? own : 0);
  std::int32_t sums[8][4] = {};
#pragma unroll 1
  for (int step = 0; step < piece.num_steps; step += 2) {
    const std::int64_t tile = std::int64_t{piece.first_tile} + step / 2;
    const std::uint32_t* const words = launch.words + tile * tiles::quad_strip_words;
    std::uint32_t operands[8][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      // The second step of the last tile may not exist; it has no entries then.
      const int in_tile = step + i / 2 < piece.num_steps ? i / 2 : 0;
      const int quad = 2 * (i % 2) + lane % 4 / 2 + lane % 2 * 4;
      const std::int64_t first =
          (std::int64_t{piece.first_step} + step + in_tile) * tiles::quad_step_columns +
          quad * tiles::quad_columns;
      const int4 columns = *reinterpret_cast<const int4*>(launch.columns + first);
      const auto load = [&](VertexId column) {
        return __ldg(reinterpret_cast<const uint2*>(codes + column * launch.code_stride));
      };
      const uint2 rows[4] = {load(columns.x), load(columns.y), load(columns.z), load(columns.w)};
      const std::uint32_t low[4] = {rows[0].x, rows[1].x, rows[2].x, rows[3].x};
      const std::uint32_t high[4] = {rows[0].y, rows[1].y, rows[2].y, rows[3].y};
      std::uint32_t of_columns[2][4];
      transpose_bytes(low, of_columns[0]);
      transpose_bytes(high, of_columns[1]);
#pragma unroll
      for (int j = 0; j < 8; ++j) operands[j][i] = of_columns[j / 4][j % 4];
    }
    const std::uint32_t indices = indices_of(words);
    const std::uint32_t bits = words[32 + lane / 2] >> (lane % 2 * 16) & 0xFFFFu;
    const std::uint32_t entries[4] = {entries_of(bits), entries_of(bits >> 1),
                                      entries_of(bits >> 4), entries_of(bits >> 5)};
#pragma unroll
    for (int j = 0; j < 8; ++j) multiply_sparse_bytes(sums[j], entries, operands[j], indices);
  }
  store_sums(launch, piece, sums);
}

}  // namespace

void sum_byte_quads(const ByteQuadsLaunch& launch, Stream stream) {
  if (launch.has_parts) {
    constexpr std::size_t bytes = sizeof(std::int32_t);
    // A single row may have any stride, and none below the width is a pitch.
    const std::int64_t pitch = launch.rows == 1 ? launch.cols : launch.stride;
    cuda_check(cudaMemset2DAsync(launch.sums, static_cast<std::size_t>(pitch) * bytes, 0,
                                 static_cast<std::size_t>(launch.cols) * bytes,
                                 static_cast<std::size_t>(launch.rows), cuda::raw(stream)),
               "clearing sums");
  }
  const dim3 grid(cuda::num_blocks(launch.num_pieces, block_warps),
                  cuda::num_blocks(launch.cols, block_columns));
  cuda::launch(sum_quads, grid, block_threads, stream, launch);
}

}  // namespace tessera::ops

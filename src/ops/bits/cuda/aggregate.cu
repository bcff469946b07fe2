// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/aggregate.hpp"

#include "cuda/launch.cuh"
#include "ops/bits/cuda/emit.cuh"

namespace tessera::ops {
namespace {

constexpr int threads = 256;
constexpr int columns_of_lane = 16;
constexpr int columns_of_block = 512;

/// A thread makes 16 codes: half of a word of each plane.
__global__ void spread_rows_kernel(const BitRows from, std::int64_t width, std::uint8_t* to) {
  cuda::begin_overlapped();
  const std::int64_t units = width / columns_of_lane;
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= from.rows * units) return;
  const std::int64_t row = i / units;
  const std::int64_t unit = i % units;
  std::uint32_t bytes[4] = {};
  for (int plane = 0; plane < from.planes; ++plane) {
    const std::uint32_t bits =
        from.words[plane * from.plane_words + row * from.row_words + unit / 2] >> (unit % 2 * 16);
#pragma unroll
    for (int word = 0; word < 4; ++word) {
      // Four bits to the lowest places of four bytes.
      const std::uint32_t four = bits >> (word * 4) & 15u;
      bytes[word] |= (four * 0x00204081u & 0x01010101u) << plane;
    }
  }
  *reinterpret_cast<uint4*>(to + row * width + unit * columns_of_lane) =
      make_uint4(bytes[0], bytes[1], bytes[2], bytes[3]);
}

/// Adds the codes of sources `first`, `first` + stride and so on below `count`. Sums of bytes grow
/// in halves of 16 bits, which 256 of them cannot fill.
template <int stride>
__device__ void add_sources(const AggregateLaunch& launch, const VertexId* sources, int first,
                            int count, std::int64_t column, std::int32_t (&sums)[16]) {
  constexpr int together = 4;
  const std::uint8_t* const codes = launch.codes + column;
  for (int begin = 0; begin < count; begin += 256 * stride) {
    const int end = min(count, begin + 256 * stride);
    std::uint32_t even[4] = {};
    std::uint32_t odd[4] = {};
    for (int edge = begin + first; edge < end; edge += together * stride) {
      uint4 loaded[together];
#pragma unroll
      for (int i = 0; i < together; ++i) {
        loaded[i] = make_uint4(0, 0, 0, 0);
        if (edge + i * stride < end) {
          const std::int64_t source = __ldg(sources + edge + i * stride);
          loaded[i] = __ldg(reinterpret_cast<const uint4*>(codes + source * launch.code_stride));
        }
      }
#pragma unroll
      for (int i = 0; i < together; ++i) {
        const std::uint32_t words[4] = {loaded[i].x, loaded[i].y, loaded[i].z, loaded[i].w};
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          even[w] += words[w] & 0x00FF00FFu;
          odd[w] += words[w] >> 8 & 0x00FF00FFu;
        }
      }
    }
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      sums[w * 4] += static_cast<std::int32_t>(even[w] & 0xFFFFu);
      sums[w * 4 + 1] += static_cast<std::int32_t>(odd[w] & 0xFFFFu);
      sums[w * 4 + 2] += static_cast<std::int32_t>(even[w] >> 16);
      sums[w * 4 + 3] += static_cast<std::int32_t>(odd[w] >> 16);
    }
  }
}

__device__ inline std::int64_t offset_of(const AggregateLaunch& launch, std::int64_t row) {
  return launch.narrow_offsets != nullptr ? launch.narrow_offsets[row] : launch.wide_offsets[row];
}

/// Whether all pieces of the row have arrived: then `sums` are those of the row. A warp asks.
__device__ inline bool add_pieces(const AggregateLaunch& launch, const RowPiece& piece,
                                  std::int64_t column, bool owns, std::int32_t (&sums)[16]) {
  const auto slot = [&](std::int32_t index) {
    return reinterpret_cast<int4*>(launch.slots + index * launch.width + column);
  };
  if (owns) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      slot(piece.slot)[i] =
          make_int4(sums[i * 4], sums[i * 4 + 1], sums[i * 4 + 2], sums[i * 4 + 3]);
    }
  }
  __threadfence();
  __syncwarp();
  unsigned* const counter = launch.counters + std::int64_t{piece.counter} * gridDim.y + blockIdx.y;
  int arrived = 0;
  if (threadIdx.x % 32 == 0) arrived = static_cast<int>(atomicAdd(counter, 1u));
  arrived = __shfl_sync(0xFFFFFFFFu, arrived, 0);
  if (arrived + 1 < piece.num_slots) return false;
  if (threadIdx.x % 32 == 0) *counter = 0;
  __threadfence();
  if (!owns) return true;
#pragma unroll
  for (std::int32_t& sum : sums) sum = 0;
  for (std::int32_t i = 0; i < piece.num_slots; ++i) {
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      const int4 four = __ldcg(slot(piece.first_slot + i) + part);
      sums[part * 4] += four.x;
      sums[part * 4 + 1] += four.y;
      sums[part * 4 + 2] += four.z;
      sums[part * 4 + 3] += four.w;
    }
  }
  return true;
}

/// A group of `lanes` has up to 512 columns, 16 to a lane. The first blocks take pieces of long
/// rows, a warp each, whose groups share its sources; in the others every group has a row.
template <int lanes>
__global__ __launch_bounds__(threads) void aggregate_rows_kernel(const AggregateLaunch launch,
                                                                 unsigned piece_blocks) {
  cuda::begin_overlapped();
  constexpr int groups = 32 / lanes;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t column =
      std::int64_t{blockIdx.y} * columns_of_block + lane % lanes * columns_of_lane;
  const bool exists = column < launch.width;
  std::int32_t sums[16] = {};
  if (blockIdx.x < piece_blocks) {
    const std::int64_t warp = (std::int64_t{blockIdx.x} * threads + threadIdx.x) / 32;
    if (warp >= launch.num_pieces) return;
    const RowPiece piece = launch.pieces[warp];
    if (exists) {
      add_sources<groups>(launch, launch.sources + piece.begin, lane / lanes, piece.count, column,
                          sums);
    }
#pragma unroll
    for (int distance = lanes; distance < 32; distance *= 2) {
#pragma unroll
      for (std::int32_t& sum : sums) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, distance);
    }
    const bool owns = exists && lane < lanes;
    if (piece.slot >= 0 && !add_pieces(launch, piece, column, owns, sums)) return;
    emit<lanes>(launch, piece.row, column, lane < lanes, sums);
    return;
  }
  const std::int64_t row =
      (std::int64_t{blockIdx.x - piece_blocks} * threads + threadIdx.x) / lanes;
  bool takes = row < launch.all_rows;
  if (row < launch.rows) {
    const std::int64_t begin = offset_of(launch, row);
    const auto count = offset_of(launch, row + 1) - begin;
    takes = count <= longest_short_row;
    if (takes && exists) {
      add_sources<1>(launch, launch.sources + begin, 0, static_cast<int>(count), column, sums);
    }
  }
  __syncwarp();
  emit<lanes>(launch, row, column, takes, sums);
}

using Kernel = void (*)(const AggregateLaunch, unsigned);
struct Shape {
  Kernel kernel;
  int lanes;
};

template <int lanes>
constexpr Shape shape() {
  return {aggregate_rows_kernel<lanes>, lanes};
}

Shape shape_for(std::int64_t width) {
  if (width <= 16) return shape<1>();
  if (width <= 32) return shape<2>();
  if (width <= 64) return shape<4>();
  if (width <= 128) return shape<8>();
  if (width <= 256) return shape<16>();
  return shape<32>();
}

}  // namespace

void spread_rows(const BitRows& from, std::int64_t width, std::uint8_t* to, Stream stream) {
  cuda::launch_overlapped(spread_rows_kernel,
                          cuda::num_blocks(from.rows * (width / columns_of_lane), threads), threads,
                          stream, from, width, to);
}

void aggregate_rows(const AggregateLaunch& launch, Stream stream) {
  if (launch.cols == 0) return;
  const Shape shape = shape_for(launch.width);
  const unsigned piece_blocks = cuda::num_blocks(launch.num_pieces, threads / 32);
  const unsigned row_blocks = cuda::num_blocks(launch.all_rows * shape.lanes, threads);
  const dim3 grid(piece_blocks + row_blocks, cuda::num_blocks(launch.width, columns_of_block));
  cuda::launch_overlapped(shape.kernel, grid, threads, stream, launch, piece_blocks);
}

}  // namespace tessera::ops

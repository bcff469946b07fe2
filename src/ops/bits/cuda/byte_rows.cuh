// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/launch.cuh"
#include "ops/bits/cuda/byte_rows.hpp"
#include "ops/bits/cuda/emit.cuh"

/// Codes of a byte summed by rows on CUDA cores, with the schedule of spmm/cuda/rows: short rows
/// belong to teams of lanes, longer ones to whole warps, and what is too long for a warp to blocks,
/// each with a piece of a row. Sums of integers are the same in every order.
namespace tessera::ops {

/// `groups` groups of `lanes` lanes add every so manieth source of a row, each lane `bytes`
/// columns. Two sums share a word while they grow.
template <int lanes_, int groups_, int bytes_>
class ByteGather {
 public:
  static constexpr int lanes = lanes_;
  static constexpr int groups = groups_;
  static constexpr int bytes = bytes_;
  static constexpr int words = bytes / 4;
  static constexpr int in_flight = 4;
  static constexpr int step = groups * in_flight;
  /// Columns that a block takes of each row.
  static constexpr int block_columns = lanes * bytes;
  using Vector = std::conditional_t<bytes == 16, uint4, uint2>;
  static_assert(bytes == 16 || bytes == 8);
  struct Sources {
    VertexId ids[in_flight];
  };

  /// Lanes beyond the last column load the first one instead.
  __device__ explicit ByteGather(const ByteRowsLaunch& launch)
      : sources_(launch.sources),
        group_(static_cast<int>(threadIdx.x) % 32 % (lanes * groups) / lanes),
        column_(std::int64_t{blockIdx.y} * block_columns +
                static_cast<int>(threadIdx.x) % lanes * bytes),
        codes_(launch.codes + (column_ < launch.width ? column_ : 0)),
        row_bytes_(static_cast<std::uint32_t>(launch.code_stride)) {
    // One register pair, not a sum that is formed again for every source.
    asm volatile("" : "+l"(codes_));
  }

  __device__ std::int64_t column() const { return column_; }

  __device__ Sources first_sources(EdgeOffset begin, int count) const {
    return loaded(sources_ + begin + group_, count);
  }

  /// The ids of the next step are on their way while the codes of this one are.
  __device__ void gather(EdgeOffset begin, int left, Sources next) {
    const VertexId* ids = sources_ + begin + group_;
#pragma unroll 1
    while (left >= step) {
      const Sources now = next;
      ids += step;
      left -= step;
      next = loaded(ids, left);
      add<true>(step, now);
    }
    if (left > 0) add<false>(left, next);
  }

  /// As numbers of fp32: 0x4B000000 with a sum in its lowest digits is 2^23 more than the sum.
  __device__ void take_sums(float (&sums)[bytes]) const {
    const auto number = [](std::uint32_t two, unsigned places) {
      return __uint_as_float(__byte_perm(two, 0x4B000000u, places)) - 8388608.0f;
    };
#pragma unroll
    for (int w = 0; w < words; ++w) {
      sums[w * 4] = number(even_[w], 0x7610);
      sums[w * 4 + 1] = number(odd_[w], 0x7610);
      sums[w * 4 + 2] = number(even_[w], 0x7632);
      sums[w * 4 + 3] = number(odd_[w], 0x7632);
    }
  }
  __device__ void take_sums(std::int32_t (&sums)[bytes]) const {
#pragma unroll
    for (int w = 0; w < words; ++w) {
      sums[w * 4] = static_cast<std::int32_t>(even_[w] & 0xFFFFu);
      sums[w * 4 + 1] = static_cast<std::int32_t>(odd_[w] & 0xFFFFu);
      sums[w * 4 + 2] = static_cast<std::int32_t>(even_[w] >> 16);
      sums[w * 4 + 3] = static_cast<std::int32_t>(odd_[w] >> 16);
    }
  }

 private:
  __device__ Sources loaded(const VertexId* ids, int left) const {
    Sources sources;
#pragma unroll
    for (int u = 0; u < in_flight; ++u) {
      const bool live = left >= step || u * groups + group_ < left;
      sources.ids[u] = live ? __ldg(ids + u * groups) : 0;
    }
    return sources;
  }

  template <bool whole>
  __device__ void add(int left, const Sources& sources) {
    std::uint32_t codes[in_flight][words];
#pragma unroll
    for (int u = 0; u < in_flight; ++u) {
      Vector loaded{};
      if (whole || u * groups + group_ < left) {
        const auto offset =
            static_cast<std::uint64_t>(static_cast<std::uint32_t>(sources.ids[u])) * row_bytes_;
        loaded = __ldg(reinterpret_cast<const Vector*>(codes_ + offset));
      }
      memcpy(codes[u], &loaded, sizeof(loaded));
    }
#pragma unroll
    for (int u = 0; u < in_flight; u += 2) {
#pragma unroll
      for (int w = 0; w < words; ++w) {
        even_[w] += (codes[u][w] & 0x00FF00FFu) + (codes[u + 1][w] & 0x00FF00FFu);
        odd_[w] += __byte_perm(codes[u][w], 0, 0x4341) + __byte_perm(codes[u + 1][w], 0, 0x4341);
      }
    }
  }

  const VertexId* sources_;
  int group_;
  std::int64_t column_;
  const std::uint8_t* codes_;  ///< this lane's, of the first row
  std::uint32_t row_bytes_;
  std::uint32_t even_[words] = {};
  std::uint32_t odd_[words] = {};
};

/// The sums of a warp's groups put together: each exchange halves the columns that a lane is
/// concerned with, so that all of them finish some.
template <int lanes, int bytes>
class WarpSums {
 public:
  static constexpr int groups = 32 / lanes;
  static constexpr int kept = bytes > groups ? bytes / groups : 1;

  /// All lanes of a warp come here.
  __device__ explicit WarpSums(std::int32_t (&sums)[bytes]) {
    exchange<lanes, bytes>(sums);
#pragma unroll
    for (int i = 0; i < kept; ++i) sums_[i] = sums[i];
  }

  /// Other lanes have the same sums as one that counts.
  __device__ bool counts() const { return group() < bytes; }
  /// Where the sums of this lane begin among those of the block's columns.
  __device__ int first() const {
    int from = 0;
#pragma unroll
    for (int half = bytes / 2, bit = 1; half >= kept; half /= 2, bit *= 2) {
      if ((group() & bit) != 0) from += half;
    }
    return lane() % lanes * bytes + from;
  }
  __device__ const std::int32_t (&sums() const)[kept] { return sums_; }

 private:
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int group() { return lane() / lanes; }

  template <int distance, int count>
  __device__ static void exchange(std::int32_t (&sums)[bytes]) {
    if constexpr (distance < 32) {
      constexpr int half = count > 1 ? count / 2 : 1;
      const bool upper = count > 1 && (lane() & distance) != 0;
#pragma unroll
      for (int i = 0; i < half; ++i) {
        const std::int32_t sent = count == 1 || upper ? sums[i] : sums[count - half + i];
        if (upper) sums[i] = sums[count - half + i];
        sums[i] += __shfl_xor_sync(0xFFFFFFFFu, sent, distance);
      }
      exchange<2 * distance, half>(sums);
    }
  }

  std::int32_t sums_[kept];
};

/// One code of each column of a row, which a warp stores.
template <int lanes, int bytes>
__device__ void store_row_of_codes(const AggregateResult& out, std::int64_t row,
                                   const std::uint8_t* codes) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  std::uint32_t words[bytes / 4];
  const auto* const from = reinterpret_cast<const std::uint32_t*>(codes) + lane % lanes * bytes / 4;
#pragma unroll
  for (int w = 0; w < bytes / 4; ++w) words[w] = from[w];
  const std::int64_t column = std::int64_t{blockIdx.y} * lanes * bytes + lane % lanes * bytes;
  store_codes<lanes>(out, row, column, lane < lanes, words);
}

template <int lanes, int bytes>
__device__ void sum_wide_row(const ByteRowsLaunch& launch, std::uint8_t* shared) {
  using Gather = ByteGather<lanes, 32 / lanes, bytes>;
  const unsigned warp =
      (blockIdx.x - launch.work.num_pieces) * (blockDim.x / 32) + threadIdx.x / 32;
  const bool takes = warp < launch.work.num_wide;
  RowSlice slice;
  if (takes) {
    const int4 raw = __ldg(reinterpret_cast<const int4*>(launch.work.wide_rows + warp));
    memcpy(&slice, &raw, sizeof(slice));
  }
  Gather gather(launch);
  const auto sources = gather.first_sources(slice.begin, slice.count);
  cuda::wait_for_previous();
  if (!takes) return;
  gather.gather(slice.begin, slice.count, sources);
  std::int32_t all[bytes];
  gather.take_sums(all);
  const WarpSums<lanes, bytes> own(all);
  const std::int64_t column = std::int64_t{blockIdx.y} * Gather::block_columns + own.first();
  std::uint32_t codes[WarpSums<lanes, bytes>::kept];
  finish_sums(launch.out.result, slice.row, column, own.counts() ? launch.out.cols - column : 0,
              own.sums(), codes);
  if (!gives_codes(launch.out.result)) return;
  std::uint8_t* const row = shared + threadIdx.x / 32 * Gather::block_columns;
  if (own.counts()) {
#pragma unroll
    for (int i = 0; i < WarpSums<lanes, bytes>::kept; ++i) {
      row[own.first() + i] = static_cast<std::uint8_t>(codes[i]);
    }
  }
  __syncwarp();
  store_row_of_codes<lanes, bytes>(launch.out, slice.row, row);
}

/// Whether all other pieces of a row are in their slots; leaves the count ready for the next run.
__device__ inline bool is_last_piece(const ByteRowsLaunch& launch, int split_row, int num_slots) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned& num_done = launch.work.num_done[std::int64_t{split_row} * gridDim.y + blockIdx.y];
    last = atomicAdd(&num_done, 1u) + 1 == static_cast<unsigned>(num_slots);
    if (last) num_done = 0;
    __threadfence();
  }
  __syncthreads();
  return last;
}

/// A block gathers a piece, its warps equal shares.
template <int lanes, int bytes>
__device__ void sum_piece(const ByteRowsLaunch& launch, std::uint8_t* shared) {
  using Gather = ByteGather<lanes, 32 / lanes, bytes>;
  constexpr int block_columns = Gather::block_columns;
  const int num_warps = static_cast<int>(blockDim.x) / 32;
  const LongPiece piece = launch.work.pieces[blockIdx.x];
  const EdgeOffset share = (piece.end - piece.begin + num_warps - 1) / num_warps;
  const EdgeOffset begin = piece.begin + static_cast<int>(threadIdx.x) / 32 * share;
  const EdgeOffset left = piece.end - begin;
  const int count = left <= 0 ? 0 : static_cast<int>(left < share ? left : share);
  Gather gather(launch);
  const auto sources = gather.first_sources(begin, count);
  cuda::wait_for_previous();
  gather.gather(begin, count, sources);
  std::int32_t all[bytes];
  gather.take_sums(all);
  const WarpSums<lanes, bytes> own(all);
  auto* const of_warps = reinterpret_cast<std::int32_t*>(shared);
  if (own.counts()) {
#pragma unroll
    for (int i = 0; i < WarpSums<lanes, bytes>::kept; ++i) {
      of_warps[threadIdx.x / 32 * block_columns + own.first() + i] = own.sums()[i];
    }
  }
  __syncthreads();
  const std::int64_t first = std::int64_t{blockIdx.y} * block_columns;
  const std::int64_t width = launch.width - first;
  const int num_columns = width < block_columns ? static_cast<int>(width) : block_columns;
  // The sums of the block's first warp are those of the piece from here on.
  for (int i = static_cast<int>(threadIdx.x); i < num_columns; i += static_cast<int>(blockDim.x)) {
    std::int32_t sum = of_warps[i];
    for (int w = 1; w < num_warps; ++w) sum += of_warps[w * block_columns + i];
    of_warps[i] = sum;
    if (piece.slot >= 0) {
      static_cast<std::int32_t*>(launch.work.slots)[piece.slot * launch.width + first + i] = sum;
    }
  }
  if (piece.slot >= 0) {
    const SplitRow split = launch.work.split_rows[piece.split_row];
    if (!is_last_piece(launch, piece.split_row, split.num_slots)) return;
    for (int i = static_cast<int>(threadIdx.x); i < num_columns;
         i += static_cast<int>(blockDim.x)) {
      const auto* slot = static_cast<const std::int32_t*>(launch.work.slots) +
                         split.first_slot * launch.width + first + i;
      std::int32_t sum = 0;
      for (int k = 0; k < split.num_slots; ++k, slot += launch.width) sum += __ldcg(slot);
      of_warps[i] = sum;
    }
  }
  // Each thread reads the sums that it wrote. Codes stand behind the sums of all warps.
  std::uint8_t* const row = shared + num_warps * block_columns * 4;
  for (int i = static_cast<int>(threadIdx.x); i < block_columns;
       i += static_cast<int>(blockDim.x)) {
    const std::int32_t sum[1] = {i < num_columns ? of_warps[i] : 0};
    std::uint32_t code[1];
    finish_sums(launch.out.result, piece.row, first + i, launch.out.cols - first - i, sum, code);
    row[i] = static_cast<std::uint8_t>(code[0]);
  }
  if (!gives_codes(launch.out.result)) return;
  __syncthreads();
  if (threadIdx.x < 32) store_row_of_codes<lanes, bytes>(launch.out, piece.row, row);
}

/// Behind the rows come those that fill a tensor of codes up.
template <int lanes, int bytes>
__device__ void sum_short_rows(const ByteRowsLaunch& launch) {
  using Gather = ByteGather<lanes, 1, bytes>;
  const unsigned block = blockIdx.x - launch.work.num_pieces - launch.work.num_wide_blocks;
  const unsigned team = block * (blockDim.x / lanes) + threadIdx.x / lanes;
  Gather gather(launch);
  RowSlice slice;
  typename Gather::Sources sources = {};
  if (team >= launch.work.num_short) {
    const std::int64_t row = launch.out.rows + (team - launch.work.num_short);
    if (row < launch.out.all_rows) slice.row = static_cast<VertexId>(row);
  } else if (launch.work.short_rows != nullptr) {
    const auto* const start = reinterpret_cast<const int4*>(launch.work.short_rows + team);
    const int4 place = __ldg(start);
    const int4 ids = __ldg(start + 1);
    memcpy(&slice, &place, sizeof(slice));
    static_assert(sizeof(sources) == sizeof(ids));
    memcpy(&sources, &ids, sizeof(sources));
  } else {
    const auto offset_at = [&](std::int64_t row) -> EdgeOffset {
      return launch.offsets.narrow != nullptr ? __ldg(launch.offsets.narrow + row)
                                              : __ldg(launch.offsets.wide + row);
    };
    const EdgeOffset begin = offset_at(team);
    const EdgeOffset count = offset_at(std::int64_t{team} + 1) - begin;
    if (count <= launch.work.short_row) {
      slice = {begin, static_cast<VertexId>(team), static_cast<std::int32_t>(count)};
      sources = gather.first_sources(begin, slice.count);
    }
  }
  cuda::wait_for_previous();
  gather.gather(slice.begin, slice.count, sources);
  __syncwarp();
  float sums[bytes];
  gather.take_sums(sums);
  emit<lanes>(launch.out, slice.row, gather.column(), slice.row >= 0, sums);
}

template <int lanes, int bytes>
__global__ void __launch_bounds__(max_rows_block_threads, bytes == 16 ? 4 : 6)
    sum_byte_rows(const ByteRowsLaunch launch) {
  extern __shared__ __align__(16) std::uint8_t shared[];
  cuda::let_next_begin();
  if (blockIdx.x < launch.work.num_pieces) {
    sum_piece<lanes, bytes>(launch, shared);
  } else if (blockIdx.x < launch.work.num_pieces + launch.work.num_wide_blocks) {
    sum_wide_row<lanes, bytes>(launch, shared);
  } else {
    sum_short_rows<lanes, bytes>(launch);
  }
}

template <int lanes, int bytes>
void launch_byte_rows(const ByteRowsLaunch& launch, Stream stream) {
  constexpr int columns = lanes * bytes;
  const unsigned threads = launch.work.block_threads;
  const std::int64_t teams =
      std::int64_t{launch.work.num_short} + launch.out.all_rows - launch.out.rows;
  const dim3 grid(launch.work.num_pieces + launch.work.num_wide_blocks +
                      cuda::num_blocks(teams, threads / lanes),
                  cuda::num_blocks(launch.width, columns));
  // Warps need a byte for each column, pieces four for each warp and one more.
  const std::size_t for_pieces = std::size_t{threads / 32} * columns * 4 + columns;
  const std::size_t for_wide = std::size_t{threads / 32} * columns;
  const std::size_t shared_bytes = launch.work.num_pieces > 0 ? for_pieces
                                   : launch.work.num_wide > 0 ? for_wide
                                                              : 0;
  cuda::launch_overlapped(sum_byte_rows<lanes, bytes>, grid, threads, shared_bytes, stream, launch);
}

template <int lanes, int bytes>
constexpr ByteRowsFunction byte_rows_function() {
  return {lanes, bytes, launch_byte_rows<lanes, bytes>};
}

}  // namespace tessera::ops

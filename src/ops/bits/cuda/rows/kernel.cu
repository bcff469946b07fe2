// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <type_traits>

#include "cuda/launch.cuh"
#include "ops/bits/cuda/emit.cuh"
#include "ops/bits/cuda/rows/gather.cuh"
#include "ops/rows/work.cuh"

/// Codes of a byte summed by rows on CUDA cores, with the schedule of spmm/cuda/rows: short rows
/// belong to teams of lanes, longer ones to whole warps, and what is too long for a warp to blocks,
/// each with a piece of a row. Sums of integers are the same in every order. `Out` is what becomes
/// of them: anything (`AggregateResult`), or bytes and nothing else (`PlainBytes`), by a kernel
/// that has no code for more.
namespace tessera::ops {

/// Anything. All lanes of a warp come here; those without a row have one below 0.
template <int lanes, int bytes>
__device__ void end_short_row(const AggregateResult& out, VertexId row, std::int64_t column,
                              const float (&sums)[bytes]) {
  emit<lanes>(out, row, column, row >= 0, sums);
}

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

/// `shared` has room for a code of each of the block's columns, for each warp.
template <int lanes, int bytes>
__device__ void end_wide_row(const AggregateResult& out, VertexId row,
                             const RowSums<lanes, bytes>& own, std::uint8_t* shared) {
  constexpr int kept = RowSums<lanes, bytes>::kept;
  const std::int64_t column = std::int64_t{blockIdx.y} * lanes * bytes + own.first();
  std::uint32_t codes[kept];
  finish_sums(out.result, row, column, own.counts() ? out.cols - column : 0, own.sums(), codes);
  if (!gives_codes(out.result)) return;
  std::uint8_t* const of_warp = shared + threadIdx.x / 32 * lanes * bytes;
  if (own.counts()) {
#pragma unroll
    for (int i = 0; i < kept; ++i) of_warp[own.first() + i] = static_cast<std::uint8_t>(codes[i]);
  }
  __syncwarp();
  store_row_of_codes<lanes, bytes>(out, row, of_warp);
}

/// `sums` are those of the block's columns, each of which the thread reads that wrote it; `codes`
/// has room for a code of each.
template <int lanes, int bytes>
__device__ void end_piece(const AggregateResult& out, VertexId row, const std::int32_t* sums,
                          int num_columns, std::uint8_t* codes) {
  const std::int64_t first = std::int64_t{blockIdx.y} * lanes * bytes;
  for (int i = static_cast<int>(threadIdx.x); i < lanes * bytes;
       i += static_cast<int>(blockDim.x)) {
    const std::int32_t sum[1] = {i < num_columns ? sums[i] : 0};
    std::uint32_t code[1];
    finish_sums(out.result, row, first + i, out.cols - first - i, sum, code);
    codes[i] = static_cast<std::uint8_t>(code[0]);
  }
  if (!gives_codes(out.result)) return;
  __syncthreads();
  if (threadIdx.x < 32) store_row_of_codes<lanes, bytes>(out, row, codes);
}

/// The same for plain sums.
template <int lanes, int bytes>
__device__ void end_short_row(const PlainBytes& out, VertexId row, std::int64_t column,
                              const float (&sums)[bytes]) {
  if (row >= 0) {
    store_plain(out, static_cast<std::uint32_t>(row), static_cast<int>(column), sums);
  }
}

template <int lanes, int bytes>
__device__ void end_wide_row(const PlainBytes& out, VertexId row, const RowSums<lanes, bytes>& own,
                             std::uint8_t*) {
  if (!own.counts()) return;
  float sums[RowSums<lanes, bytes>::kept];
#pragma unroll
  for (int i = 0; i < RowSums<lanes, bytes>::kept; ++i) {
    sums[i] = static_cast<float>(own.sums()[i]);
  }
  store_plain(out, static_cast<std::uint32_t>(row),
              static_cast<int>(blockIdx.y) * lanes * bytes + own.first(), sums);
}

template <int lanes, int bytes>
__device__ void end_piece(const PlainBytes& out, VertexId row, const std::int32_t* sums,
                          int num_columns, std::uint8_t*) {
  const int first = static_cast<int>(blockIdx.y) * lanes * bytes;
  for (int i = static_cast<int>(threadIdx.x); i < num_columns; i += static_cast<int>(blockDim.x)) {
    const float sum[1] = {static_cast<float>(sums[i])};
    store_plain(out, static_cast<std::uint32_t>(row), first + i, sum);
  }
}

template <int lanes, int bytes, class Out>
__device__ void sum_wide_row(const ByteRowsLaunch& launch, const Out& out, std::uint8_t* shared) {
  using Gather = ByteGather<lanes, 32 / lanes, bytes>;
  const unsigned warp = wide_row_of_warp(launch.work);
  const bool takes = warp < launch.work.num_wide;
  RowSlice slice;
  if (takes) slice = slice_at(launch.work.wide_rows, warp);
  Gather gather(launch);
  const auto sources = gather.first_sources(slice.begin, slice.count);
  cuda::wait_for_previous();
  if (!takes) return;
  gather.gather(slice.begin, slice.count, sources);
  std::int32_t all[bytes];
  gather.take_sums(all);
  end_wide_row(out, slice.row, RowSums<lanes, bytes>(all), shared);
}

/// A block gathers a piece, its warps equal shares.
template <int lanes, int bytes, class Out>
__device__ void sum_piece(const ByteRowsLaunch& launch, const Out& out, std::uint8_t* shared) {
  using Gather = ByteGather<lanes, 32 / lanes, bytes>;
  constexpr int block_columns = Gather::block_columns;
  const int num_warps = static_cast<int>(blockDim.x) / 32;
  const LongPiece piece = launch.work.pieces[blockIdx.x];
  const RowSlice slice = share_of_warp(piece);
  Gather gather(launch);
  const auto sources = gather.first_sources(slice.begin, slice.count);
  cuda::wait_for_previous();
  gather.gather(slice.begin, slice.count, sources);
  std::int32_t all[bytes];
  gather.take_sums(all);
  const RowSums<lanes, bytes> own(all);
  auto* const of_warps = reinterpret_cast<std::int32_t*>(shared);
  if (own.counts()) {
#pragma unroll
    for (int i = 0; i < RowSums<lanes, bytes>::kept; ++i) {
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
    if (!is_last_piece(launch.work, piece.split_row, split.num_slots)) return;
    for (int i = static_cast<int>(threadIdx.x); i < num_columns;
         i += static_cast<int>(blockDim.x)) {
      const auto* slot = static_cast<const std::int32_t*>(launch.work.slots) +
                         split.first_slot * launch.width + first + i;
      std::int32_t sum = 0;
      for (int k = 0; k < split.num_slots; ++k, slot += launch.width) sum += __ldcg(slot);
      of_warps[i] = sum;
    }
  }
  // Codes stand behind the sums of all warps.
  end_piece<lanes, bytes>(out, piece.row, of_warps, num_columns,
                          shared + num_warps * block_columns * 4);
}

/// Rows behind the last one, which fill a tensor of codes up.
inline __host__ __device__ std::int64_t rows_to_fill(const AggregateResult& out) {
  return out.all_rows - out.rows;
}
inline __host__ __device__ std::int64_t rows_to_fill(const PlainBytes&) { return 0; }

template <int lanes, int bytes, class Out>
__device__ void sum_short_rows(const ByteRowsLaunch& launch, const Out& out) {
  using Gather = ByteGather<lanes, 1, bytes>;
  const unsigned block = blockIdx.x - launch.work.num_pieces - launch.work.num_wide_blocks;
  const unsigned team = block * (blockDim.x / lanes) + threadIdx.x / lanes;
  Gather gather(launch);
  RowSlice slice;
  typename Gather::Sources sources = {};
  if (team >= launch.work.num_short) {
    if constexpr (std::is_same_v<Out, AggregateResult>) {
      const std::int64_t behind = team - launch.work.num_short;
      if (behind < rows_to_fill(out)) slice.row = static_cast<VertexId>(out.rows + behind);
    }
  } else if (launch.work.short_rows != nullptr) {
    const auto* const start = reinterpret_cast<const int4*>(launch.work.short_rows + team);
    const int4 place = __ldg(start);
    const int4 ids = __ldg(start + 1);
    slice = slice_of(place);
    static_assert(sizeof(sources) == sizeof(ids));
    memcpy(&sources, &ids, sizeof(sources));
  } else {
    slice = short_row_at(launch.work, launch.offsets, team);
    sources = gather.first_sources(slice.begin, slice.count);
  }
  cuda::wait_for_previous();
  gather.gather(slice.begin, slice.count, sources);
  __syncwarp();
  float sums[bytes];
  gather.take_sums(sums);
  end_short_row<lanes>(out, slice.row, gather.column(), sums);
}

template <int lanes, int bytes, class Out>
__global__ void __launch_bounds__(max_rows_block_threads, bytes == 16 ? 4 : 6)
    sum_byte_rows(const ByteRowsLaunch launch, const Out out) {
  extern __shared__ __align__(16) std::uint8_t shared[];
  cuda::let_next_begin();
  if (blockIdx.x < launch.work.num_pieces) {
    sum_piece<lanes, bytes>(launch, out, shared);
  } else if (blockIdx.x < launch.work.num_pieces + launch.work.num_wide_blocks) {
    sum_wide_row<lanes, bytes>(launch, out, shared);
  } else {
    sum_short_rows<lanes, bytes>(launch, out);
  }
}

template <int lanes, int bytes, class Out>
void launch_byte_rows(const ByteRowsLaunch& launch, const Out& out, Stream stream) {
  constexpr int columns = lanes * bytes;
  constexpr bool plain = std::is_same_v<Out, PlainBytes>;
  const unsigned threads = launch.work.block_threads;
  const std::int64_t teams = std::int64_t{launch.work.num_short} + rows_to_fill(out);
  const dim3 grid(launch.work.num_pieces + launch.work.num_wide_blocks +
                      cuda::num_blocks(teams, threads / lanes),
                  cuda::num_blocks(launch.width, columns));
  // Pieces need four bytes for each warp and column; codes that are not plain one for each column,
  // and for each warp.
  const std::size_t for_pieces = std::size_t{threads / 32} * columns * 4 + (plain ? 0 : columns);
  const std::size_t for_wide = plain ? 0 : std::size_t{threads / 32} * columns;
  const std::size_t shared_bytes = launch.work.num_pieces > 0 ? for_pieces
                                   : launch.work.num_wide > 0 ? for_wide
                                                              : 0;
  cuda::launch_overlapped(sum_byte_rows<lanes, bytes, Out>, grid, threads, shared_bytes, stream,
                          launch, out);
}

template <int lanes, int bytes>
constexpr ByteRowsFunction byte_rows_function() {
  return {lanes, bytes, launch_byte_rows<lanes, bytes, AggregateResult>,
          launch_byte_rows<lanes, bytes, PlainBytes>};
}

const std::array<ByteRowsFunction, 6> byte_rows_of_16 = {
    byte_rows_function<1, 16>(), byte_rows_function<2, 16>(),  byte_rows_function<4, 16>(),
    byte_rows_function<8, 16>(), byte_rows_function<16, 16>(), byte_rows_function<32, 16>()};

const std::array<ByteRowsFunction, 4> byte_rows_of_8 = {
    byte_rows_function<2, 8>(), byte_rows_function<4, 8>(), byte_rows_function<8, 8>(),
    byte_rows_function<16, 8>()};

}  // namespace tessera::ops

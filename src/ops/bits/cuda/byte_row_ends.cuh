// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/bits/cuda/byte_gather.cuh"
#include "ops/bits/cuda/emit.cuh"

/// What becomes of the sums of a row, by whoever has them: a lane of a team has all of its columns,
/// a lane of a warp a few, a block has them in shared memory.
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

}  // namespace tessera::ops

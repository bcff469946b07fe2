// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/async_copy.cuh"
#include "ops/bits/cuda/chain/launch.hpp"
#include "ops/bits/cuda/integer_mma.cuh"
#include "ops/bits/finish_many.hpp"

/// Steps of a chain in a block of 128 vertices. Codes are bytes in shared memory, in lines of rows
/// where weights multiply them and in lines of columns where the adjacency sums them. A warp has 16
/// rows and some of the tiles of 8 columns.
namespace tessera::ops::chain {

inline constexpr int row_groups = chain_rows / 16;
inline constexpr int adjacency_words = chain_rows / 32;

/// Where everything lies in shared memory.
struct ChainMemory {
  std::uint8_t* image;
  std::uint8_t* codes[2];
  std::uint32_t* adjacency;
  float* row_scale;
  float* col_scale;
  float* row_weights;

  __device__ ChainMemory(std::uint8_t* memory, int image_bytes)
      : image(memory),
        codes{memory + image_bytes, memory + image_bytes + chain_codes_bytes},
        adjacency(reinterpret_cast<std::uint32_t*>(codes[1] + chain_codes_bytes)),
        row_scale(reinterpret_cast<float*>(adjacency + chain_rows * adjacency_words)),
        col_scale(row_scale + chain_rows),
        row_weights(col_scale + chain_rows) {}

  __device__ const float* numbers(int place) const {
    return place < 0 ? nullptr : reinterpret_cast<const float*>(image) + place;
  }
};

/// Four bits as four bytes.
__device__ inline std::uint32_t spread(std::uint32_t bits) {
  return (bits & 15u) * 0x00204081u & 0x01010101u;
}

/// Features as bytes: a thread makes those of a word of every plane.
__device__ inline void load_features(const ChainLaunch& launch, std::uint8_t* codes) {
  const BitRows& from = launch.features;
  const bool by_columns = launch.steps[0].weights < 0;
  const int lines = by_columns ? launch.steps[0].in : chain_rows;
  const int words = by_columns ? chain_rows / 32 : static_cast<int>(from.row_words);
  const int pitch = chain_pitch(by_columns ? chain_rows : launch.steps[0].in);
  const std::uint32_t* const first =
      by_columns ? from.words + std::int64_t{blockIdx.x} * words
                 : from.words + std::int64_t{blockIdx.x} * chain_rows * from.row_words;
  for (int item = static_cast<int>(threadIdx.x); item < lines * words;
       item += static_cast<int>(blockDim.x)) {
    const int line = item / words;
    const int word = item % words;
    const std::uint32_t* const at = first + line * from.row_words + word;
    std::uint32_t bytes[8] = {};
    for (int plane = 0; plane < from.planes; ++plane) {
      const std::uint32_t bits = __ldg(at + plane * from.plane_words);
#pragma unroll
      for (int i = 0; i < 8; ++i) bytes[i] |= spread(bits >> (i * 4)) << plane;
    }
    auto* const to = reinterpret_cast<uint4*>(codes + line * pitch + word * 32);
    to[0] = make_uint4(bytes[0], bytes[1], bytes[2], bytes[3]);
    to[1] = make_uint4(bytes[4], bytes[5], bytes[6], bytes[7]);
  }
}

/// Asks for the weights and numbers of all steps.
__device__ inline void load_image(const ChainLaunch& launch, const ChainMemory& memory) {
  for (int i = static_cast<int>(threadIdx.x) * 16; i < launch.image_bytes;
       i += static_cast<int>(blockDim.x) * 16) {
    cuda::copy_16_async(cuda::shared_address(memory.image + i), launch.image + i);
  }
  cuda::commit_copies();
}

__device__ inline void load_vertices(const ChainLaunch& launch, const ChainMemory& memory) {
  const int row = static_cast<int>(threadIdx.x);
  if (row >= chain_rows) return;
  const std::int64_t vertex = std::int64_t{blockIdx.x} * chain_rows + row;
  if (launch.adjacency != nullptr) {
    reinterpret_cast<uint4*>(memory.adjacency)[row] =
        __ldg(reinterpret_cast<const uint4*>(launch.adjacency) + vertex);
  }
  if (launch.row_scale != nullptr) memory.row_scale[row] = launch.row_scale[vertex];
  if (launch.col_scale != nullptr) memory.col_scale[row] = launch.col_scale[vertex];
  if (launch.row_weights != nullptr) memory.row_weights[row] = launch.row_weights[vertex];
}

__device__ inline std::uint32_t word_at(const std::uint8_t* bytes) {
  return *reinterpret_cast<const std::uint32_t*>(bytes);
}

/// A one in every byte whose number is below `count`, of four that begin at `first`.
__device__ inline std::uint32_t ones_below(int first, int count) {
  const int left = min(max(count - first, 0), 4);
  return left == 4 ? 0x01010101u : 0x01010101u & ((1u << (left * 8)) - 1);
}

/// What a warp has of its tiles: in each two columns of two rows for each lane.
template <int tiles>
struct WarpSums {
  std::int32_t of[tiles][4] = {};
  std::int32_t rows[4] = {};  ///< the sum of the codes on the left, the same in both columns
};

struct LanePlace {
  int row;
  int line;  ///< of a tile's eight columns
  int quad;
  int group;  ///< of the warp's tiles, and how many groups there are
  int groups;
  int first_tile = 0;

  __device__ LanePlace()
      : row(static_cast<int>(threadIdx.x) / 32 % row_groups * 16 +
            static_cast<int>(threadIdx.x) % 32 / 4),
        line(static_cast<int>(threadIdx.x) % 32 / 4),
        quad(static_cast<int>(threadIdx.x) % 4),
        group(static_cast<int>(threadIdx.x) / 32 / row_groups),
        groups(static_cast<int>(blockDim.x) / 32 / row_groups) {}

  __device__ int first_column(int tile) const { return ((first_tile + tile) * groups + group) * 8; }
  /// The warp's tiles of so many columns.
  __device__ int tiles_of(int columns) const {
    const int all = (columns + 7) / 8;
    return (all - group + groups - 1) / groups;
  }
};

/// B's fragments come from lines of `pitch` bytes each, A's from `a_of(step)`.
template <int tiles, class FragmentOf>
__device__ void add_products(WarpSums<tiles>& sums, int steps, int used_tiles,
                             const std::uint8_t* lines, int pitch, const LanePlace& at,
                             FragmentOf&& a_of, int row_codes) {
  const std::uint8_t* const first_line =
      lines + (at.first_column(0) + at.line) * pitch + at.quad * 4;
  for (int step = 0; step < steps; ++step) {
    std::uint32_t a[4];
    std::uint32_t b[tiles][2];
    a_of(step, a);
#pragma unroll
    for (int n = 0; n < tiles; ++n) {
      const std::uint8_t* const line = first_line + n * at.groups * 8 * pitch + step * 32;
      b[n][0] = n < used_tiles ? word_at(line) : 0u;
      b[n][1] = n < used_tiles ? word_at(line + 16) : 0u;
    }
#pragma unroll
    for (int n = 0; n < tiles; ++n) multiply_16x8(sums.of[n], a, b[n]);
    if (row_codes == 0) continue;
    const int first = step * 32 + at.quad * 4;
    const std::uint32_t ones[2] = {ones_below(first, row_codes), ones_below(first + 16, row_codes)};
    multiply_16x8(sums.rows, a, ones);
  }
}

__device__ inline BitFinish finish_of(const ChainLaunch& launch, const ChainStep& step,
                                      const ChainMemory& memory) {
  BitFinish finish;
  const bool sums = step.weights < 0;
  finish.row_scale = sums && launch.row_scale != nullptr ? memory.row_scale : nullptr;
  finish.row_scale_stride = 1;
  finish.col_scale = memory.numbers(step.col_scale);
  finish.row_terms = memory.row_weights;
  finish.row_terms_stride = 1;
  finish.col_terms = memory.numbers(step.col_terms);
  finish.col_terms_stride = step.out;
  finish.terms = step.terms;
  finish.terms_of_a = !sums;
  finish.bias = memory.numbers(step.bias);
  finish.norm_scale = memory.numbers(step.norm_scale);
  finish.norm_shift = memory.numbers(step.norm_shift);
  finish.activation = step.activation;
  finish.result_scale =
      step.scales_result && launch.col_scale != nullptr ? memory.col_scale : nullptr;
  finish.result_scale_stride = 1;
  finish.lower = memory.numbers(step.lower);
  finish.step = memory.numbers(step.step);
  finish.inverse = memory.numbers(step.inverse);
  finish.range_stride = step.range_stride;
  if (step.lower >= 0 && step.range_stride == 0) {
    finish.one_range = finish.range(0);
    finish.one_inverse = finish.inverse == nullptr ? 0.0f : finish.inverse[0];
  }
  finish.floors = step.floors;
  finish.last_code = step.last_code;
  return finish;
}

/// Codes for the next step, or the values of the last one. A lane has two neighbouring columns of
/// two rows in every tile: what belongs to these is read once.
template <int tiles>
__device__ void store(const ChainLaunch& launch, const ChainStep& step, const BitFinish& finish,
                      const WarpSums<tiles>& sums, int used_tiles, const LanePlace& at,
                      std::uint8_t* to) {
  const int pitch = chain_pitch(step.to_columns ? chain_rows : step.out);
  const FinishRow rows[2] = {finish.row(at.row, static_cast<float>(sums.rows[0])),
                             finish.row(at.row + 8, static_cast<float>(sums.rows[2]))};
  const bool last = step.lower < 0;
#pragma unroll
  for (int n = 0; n < tiles; ++n) {
    if (n >= used_tiles) break;
    const int col = at.first_column(n) + at.quad * 2;
    float values[4];
    std::uint32_t codes[4];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      // Columns behind the last are computed and left out.
      const int read = min(col + k, step.out - 1);
      const FinishColumn column = finish.column(read);
      const FinishRange range = last ? FinishRange{0, 1} : finish.range(read);
      const bool divides = last || finish.inverse == nullptr;
      const float inverse = divides ? 0.0f : finish.inverse[read * finish.range_stride];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int i = half * 2 + k;
        values[i] = finish.value(rows[half], column, static_cast<float>(sums.of[n][i]));
        codes[i] = last      ? 0u
                   : divides ? finish.code(range, values[i])
                             : code_of(finish, values[i], range.lower, range.step, inverse);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = at.row + i / 2 * 8;
      if (col + i % 2 >= step.out) continue;
      if (last) {
        launch.values[(std::int64_t{blockIdx.x} * chain_rows + row) * launch.stride + col + i % 2] =
            values[i];
      } else {
        to[step.to_columns ? (col + i % 2) * pitch + row : row * pitch + col + i % 2] =
            static_cast<std::uint8_t>(codes[i]);
      }
    }
  }
}

template <int tiles>
__device__ void run_tiles(const ChainLaunch& launch, const ChainStep& step,
                          const ChainMemory& memory, int used_tiles, const LanePlace& at,
                          const std::uint8_t* from, std::uint8_t* to) {
  WarpSums<tiles> sums;
  if (step.weights < 0) {
    const std::uint32_t* const edges = memory.adjacency + at.row * adjacency_words;
    const auto fragment = [&](int k, std::uint32_t(&a)[4]) {
      const std::uint32_t upper = edges[k] >> (at.quad * 4);
      const std::uint32_t lower = edges[8 * adjacency_words + k] >> (at.quad * 4);
      a[0] = spread(upper);
      a[1] = spread(lower);
      a[2] = spread(upper >> 16);
      a[3] = spread(lower >> 16);
    };
    add_products(sums, chain_rows / 32, used_tiles, from, chain_pitch(chain_rows), at, fragment, 0);
  } else {
    const int pitch = chain_pitch(step.in);
    const std::uint8_t* const codes = from + at.row * pitch + at.quad * 4;
    const auto fragment = [&](int k, std::uint32_t(&a)[4]) {
      a[0] = word_at(codes + k * 32);
      a[1] = word_at(codes + 8 * pitch + k * 32);
      a[2] = word_at(codes + k * 32 + 16);
      a[3] = word_at(codes + 8 * pitch + k * 32 + 16);
    };
    add_products(sums, (step.in + 31) / 32, used_tiles, memory.image + step.weights, pitch, at,
                 fragment, step.terms > 0 ? step.in : 0);
  }
  store(launch, step, finish_of(launch, step, memory), sums, used_tiles, at, to);
}

/// A warp takes up to `most_tiles` of its tiles at once.
template <int most_tiles>
__device__ void run_step(const ChainLaunch& launch, const ChainStep& step,
                         const ChainMemory& memory, const std::uint8_t* from, std::uint8_t* to) {
  static_assert(most_tiles == 4 || most_tiles == 8);
  LanePlace at;
  for (int used = at.tiles_of(step.out); used > 0; used -= most_tiles) {
    if (used == 1) {
      run_tiles<1>(launch, step, memory, used, at, from, to);
    } else if (used <= 4) {
      run_tiles<4>(launch, step, memory, used, at, from, to);
    } else {
      run_tiles<most_tiles>(launch, step, memory, used, at, from, to);
    }
    at.first_tile += most_tiles;
  }
}

}  // namespace tessera::ops::chain

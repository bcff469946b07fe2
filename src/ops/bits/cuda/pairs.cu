// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "cuda/async_copy.cuh"
#include "cuda/overlap.cuh"
#include "cuda/wgmma_rows.cuh"
#include "ops/bits/cuda/emit.cuh"
#include "ops/bits/cuda/instances.cuh"
#include "ops/bits/cuda/integer_mma.cuh"
#include "ops/bits/cuda/pairs_shape.hpp"
#include "ops/bits/cuda/store_sums.cuh"

/// Several planes times several, on the matrix units of every GPU from Ampere on. A block of four
/// warps has 64 rows and 64 columns, a warp 32 of each. Pairs of planes of equal weight are counted
/// together, from the heaviest to the lightest; what was counted doubles in between. Codes as bytes
/// are one plane on either side, whose steps the matrix unit multiplies.
namespace tessera::ops {

inline constexpr int pairs_threads = 128;
inline constexpr int step_words = 8;

/// Copies 4 bytes to shared memory as cuda::copy_16_async does, or writes zeros there.
__device__ inline void copy_4_async(std::uint32_t shared, const void* global, bool exists) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared), "l"(global),
               "r"(exists ? 4 : 0)
               : "memory");
}

class PairsLoader {
 public:
  __device__ PairsLoader(const BitProduct& product, std::int64_t first_row, std::int64_t first_col,
                         std::uint32_t memory)
      : product_(product),
        memory_(memory),
        first_row_(first_row),
        first_col_(first_col),
        b_word_(product.block_starts == nullptr ? 0 : product.block_starts[blockIdx.x] / 32),
        shape_(pairs_shape(product.a.planes, product.b.planes)) {}

  __device__ int num_turns() const {
    const std::int64_t words = shape_.steps * step_words;
    return static_cast<int>((product_.a.row_words + words - 1) / words);
  }
  __device__ int steps() const { return shape_.steps; }
  __device__ int stages() const { return shape_.stages; }

  __device__ std::uint32_t a_plane(int turn, int step, int plane) const {
    const int planes = product_.a.planes + product_.b.planes;
    const int stage = turn % shape_.stages;
    return memory_ + static_cast<std::uint32_t>(((stage * shape_.steps + step) * planes + plane) *
                                                pairs_plane_bytes);
  }
  __device__ std::uint32_t b_plane(int turn, int step, int plane) const {
    return a_plane(turn, step, product_.a.planes + plane);
  }

  __device__ void load(int turn) const {
    for (int step = 0; step < shape_.steps; ++step) {
      const std::int64_t word = (std::int64_t{turn} * shape_.steps + step) * step_words;
      for (int plane = 0; plane < product_.a.planes; ++plane) {
        load_plane(a_plane(turn, step, plane), product_.a, plane, first_row_, word);
      }
      for (int plane = 0; plane < product_.b.planes; ++plane) {
        load_plane(b_plane(turn, step, plane), product_.b, plane, first_col_, b_word_ + word);
      }
    }
  }

 private:
  /// 128 threads: a row's 32 bytes by two.
  __device__ void load_plane(std::uint32_t to, const BitRows& from, int plane, std::int64_t first,
                             std::int64_t word) const {
    const int row = static_cast<int>(threadIdx.x) / 2;
    const int unit = static_cast<int>(threadIdx.x) % 2;
    const std::uint32_t at = to + cuda::RowLayout<32>::offset(row, unit);
    const std::int64_t column = word + unit * 4;
    const std::uint32_t* const source =
        from.words + plane * from.plane_words + (first + row) * from.row_words + column;
    if (first + row >= from.rows || column >= from.row_words) {
      cuda::zero_16_async(at, from.words);
    } else if (from.row_words % 4 == 0) {
      cuda::copy_16_async(at, source);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const bool exists = column + i < from.row_words;
        copy_4_async(at + static_cast<std::uint32_t>(i) * 4, exists ? source + i : from.words,
                     exists);
      }
    }
  }

  const BitProduct& product_;
  std::uint32_t memory_;
  std::int64_t first_row_;
  std::int64_t first_col_;
  std::int64_t b_word_;  ///< that the first word of A's rows meets
  PairsShape shape_;
};

/// One step of 16 rows and 8 columns.
template <bool bytes>
__device__ void add_16x8(std::int32_t (&sums)[4], const std::uint32_t (&a)[4],
                         const std::uint32_t (&b)[2]) {
  if constexpr (bytes) {
    multiply_16x8(sums, a, b);
  } else {
    count_16x8(sums, a, b);
  }
}

/// counts += what a warp's 32 rows and 32 columns of two planes share in one step. With
/// `counts_rows` row_counts += the bits of every row, the same in all columns.
template <bool bytes>
__device__ inline void count_pair(std::int32_t (&counts)[2][4][4], std::int32_t (&row_counts)[2][4],
                                  bool counts_rows, std::uint32_t a_plane, std::uint32_t b_plane,
                                  int first_row, int first_col) {
  using Layout = cuda::RowLayout<32>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  std::uint32_t b[4][2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    std::uint32_t loaded[4];
    const int column = first_col + half * 16 + lane / 16 * 8 + lane % 8;
    cuda::load_fragment(loaded, b_plane + Layout::offset(column, lane / 8 % 2));
    b[half * 2][0] = loaded[0];
    b[half * 2][1] = loaded[1];
    b[half * 2 + 1][0] = loaded[2];
    b[half * 2 + 1][1] = loaded[3];
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    std::uint32_t a[4];
    cuda::load_fragment(a, a_plane + Layout::offset(first_row + half * 16 + lane % 16, lane / 16));
#pragma unroll
    for (int n = 0; n < 4; ++n) add_16x8<bytes>(counts[half][n], a, b[n]);
    if (counts_rows) {
      constexpr std::uint32_t one = bytes ? 0x01010101u : ~0u;
      const std::uint32_t ones[2] = {one, one};
      add_16x8<bytes>(row_counts[half], a, ones);
    }
  }
}

/// A tile of codes between the lanes that make them and the words that are stored.
struct CodeTile {
  std::uint32_t codes[pairs_rows][pairs_rows + 1];
};
static_assert(sizeof(CodeTile) <= static_cast<std::size_t>(pairs_shared_bytes(1, 1)));

/// Writes the words of a tile: a thread has 32 codes of one line, a row or a column of the tile,
/// and makes a word of each plane. The last tile along a line also clears what the padding of the
/// tensor has behind it.
__device__ inline void pack_tile(const CodeTile& tile, const PackedCodes& to, bool by_rows,
                                 std::int64_t first_line, unsigned along, unsigned tiles) {
  static_assert(pairs_threads == pairs_rows * 2);
  const int i = static_cast<int>(threadIdx.x) % pairs_rows;
  const int half = static_cast<int>(threadIdx.x) / pairs_rows;
  const std::int64_t line = first_line + i;
  if (line >= to.padded_rows) return;
  std::uint32_t low[8], high[8];
#pragma unroll
  for (int word = 0; word < 8; ++word) {
    low[word] = high[word] = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int at = half * 32 + word * 4 + k;
      const std::uint32_t code = by_rows ? tile.codes[i][at] : tile.codes[at][i];
      low[word] |= (code & 255u) << (k * 8);
      high[word] |= (code >> 8) << (k * 8);
    }
  }
  const std::int64_t first_word = std::int64_t{along} * (pairs_rows / 32);
  const std::int64_t end_word = along + 1 == tiles ? to.words_per_row : first_word + 2;
  for (int plane = 0; plane < to.bits; ++plane) {
    std::uint32_t bytes[8];
#pragma unroll
    for (int word = 0; word < 8; ++word) bytes[word] = plane < 8 ? low[word] : high[word];
    const std::uint32_t bits = plane_of(bytes, plane % 8);
    std::uint32_t* const words = to.words + (plane * to.padded_rows + line) * to.words_per_row;
    if (first_word + half < end_word) words[first_word + half] = bits;
    for (std::int64_t word = first_word + 2 + half; word < end_word; word += 2) words[word] = 0;
  }
}

/// Writes a tile as bytes, zeros up to the next multiple of 16 columns included.
__device__ inline void store_tile(const CodeTile& tile, const BitResult& result, std::int64_t rows,
                                  std::int64_t cols, std::int64_t first_row,
                                  std::int64_t first_col) {
  for (int i = static_cast<int>(threadIdx.x); i < pairs_rows * 16; i += pairs_threads) {
    const int row = i / 16;
    const int col = i % 16 * 4;
    if (row >= rows || first_col + col >= (cols + 15) / 16 * 16) continue;
    const std::uint32_t* const codes = tile.codes[row] + col;
    *reinterpret_cast<std::uint32_t*>(result.bytes + (first_row + row) * result.stride + first_col +
                                      col) =
        codes[0] | codes[1] << 8 | codes[2] << 16 | codes[3] << 24;
  }
}

/// Calls visit(row, col, sum, row_sum) for what a lane has of a block's tile, row and column
/// counted from its corner.
template <class Visit>
__device__ void visit_sums(const std::int32_t (&sums)[2][4][4],
                           const std::int32_t (&row_sums)[2][4], int warp_row, int warp_col,
                           Visit&& visit) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const int row = warp_row + i / 16 * 16 + lane / 4 + i % 4 / 2 * 8;
    const int col = warp_col + i / 4 % 4 * 8 + lane % 4 * 2 + i % 2;
    visit(row, col, sums[i / 16][i / 4 % 4][i % 4], row_sums[i / 16][i % 4]);
  }
}

/// With `finishes` the result is what the epilogue makes of the sums, otherwise the sums.
template <bool finishes, bool bytes>
__global__ __launch_bounds__(pairs_threads) void multiply_pairs_kernel(const BitProduct product,
                                                                       const BitResult result) {
  extern __shared__ __align__(1024) char shared[];
  cuda::begin_overlapped();
  const std::int64_t first_row = std::int64_t{blockIdx.x} * pairs_rows;
  const std::int64_t first_col = std::int64_t{blockIdx.y} * pairs_rows;
  const PairsLoader loader(product, first_row, first_col, cuda::shared_address(shared));
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_row = warp / 2 * 32;
  const int warp_col = warp % 2 * 32;
  const int turns = loader.num_turns();

  std::int32_t sums[2][4][4] = {};
  std::int32_t row_sums[2][4] = {};
  const bool sums_rows = finishes && result.finish.terms > 0 && result.finish.terms_of_a;
  if (loader.stages() == 2 && turns > 0) loader.load(0);
  cuda::commit_copies();
  for (int turn = 0; turn < turns; ++turn) {
    if (loader.stages() == 1) {
      loader.load(turn);
      cuda::commit_copies();
      cuda::wait_for_copies<0>();
    } else {
      if (turn + 1 < turns) loader.load(turn + 1);
      cuda::commit_copies();
      cuda::wait_for_copies<1>();
    }
    __syncthreads();
    std::int32_t counts[2][4][4] = {};
    std::int32_t row_counts[2][4] = {};
    for (int weight = product.a.planes + product.b.planes - 2; weight >= 0; --weight) {
#pragma unroll
      for (int i = 0; i < 32; ++i) counts[i / 16][i / 4 % 4][i % 4] *= 2;
#pragma unroll
      for (int i = 0; i < 8; ++i) row_counts[i / 4][i % 4] *= 2;
      const int first = max(0, weight - product.b.planes + 1);
      const int last = min(product.a.planes - 1, weight);
      for (int plane = first; plane <= last; ++plane) {
        for (int step = 0; step < loader.steps(); ++step) {
          // Once for every plane of A: with the lightest of B, when both together weigh as much.
          count_pair<bytes>(counts, row_counts, sums_rows && plane == weight,
                            loader.a_plane(turn, step, plane),
                            loader.b_plane(turn, step, weight - plane), warp_row, warp_col);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      sums[i / 16][i / 4 % 4][i % 4] += counts[i / 16][i / 4 % 4][i % 4];
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) row_sums[i / 4][i % 4] += row_counts[i / 4][i % 4];
    __syncthreads();
  }
  cuda::wait_for_copies<0>();
  if constexpr (finishes) {
    const auto value_at = [&](std::int64_t row, std::int64_t col, std::int32_t sum,
                              std::int32_t row_sum) {
      return result.finish.value(row, col, static_cast<float>(sum), static_cast<float>(row_sum));
    };
    if (result.kind == BitResultKind::values) {
      visit_sums(sums, row_sums, warp_row, warp_col,
                 [&](int r, int c, std::int32_t sum, std::int32_t row_sum) {
                   const std::int64_t row = first_row + r;
                   const std::int64_t col = first_col + c;
                   if (row >= product.a.rows || col >= product.b.rows) return;
                   result.values[row * result.stride + col] = value_at(row, col, sum, row_sum);
                 });
      return;
    }
    // All copies into this memory are done, and all who read it have passed the last barrier.
    auto& tile = *reinterpret_cast<CodeTile*>(shared);
    __syncthreads();
    visit_sums(sums, row_sums, warp_row, warp_col,
               [&](int r, int c, std::int32_t sum, std::int32_t row_sum) {
                 const std::int64_t row = first_row + r;
                 const std::int64_t col = first_col + c;
                 const bool exists = row < product.a.rows && col < product.b.rows;
                 tile.codes[r][c] =
                     exists ? result.finish.code(col, value_at(row, col, sum, row_sum)) : 0u;
               });
    __syncthreads();
    if (result.kind == BitResultKind::bytes) {
      store_tile(tile, result, product.a.rows - first_row, product.b.rows, first_row, first_col);
    } else if (result.kind == BitResultKind::rows) {
      pack_tile(tile, result.codes, true, first_row, blockIdx.y, gridDim.y);
    } else {
      pack_tile(tile, result.codes, false, first_col, blockIdx.x, gridDim.x);
    }
  } else {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const std::int64_t row = first_row + warp_row + half * 16 + lane / 4;
        const std::int64_t col = first_col + warp_col + n * 8 + lane % 4 * 2;
        store_pair(product, row, col, sums[half][n][0], sums[half][n][1]);
        store_pair(product, row + 8, col, sums[half][n][2], sums[half][n][3]);
      }
    }
  }
}

namespace {

template <bool finishes, bool bytes>
void launch(const BitProduct& product, const BitResult& result, Stream stream) {
  cuda::launch_overlapped(
      multiply_pairs_kernel<finishes, bytes>, bit_grid(product, pairs_rows, pairs_rows, 1),
      pairs_threads,
      static_cast<std::size_t>(pairs_shared_bytes(product.a.planes, product.b.planes)), stream,
      product, result);
}

template <bool bytes>
constexpr BitFunction pairs_of() {
  return {pairs_rows,
          pairs_rows,
          0,
          false,
          [](const BitProduct&) {
            // The same for all plans: each sets it for all others.
            cuda::allow_shared(multiply_pairs_kernel<false, bytes>, pairs_most_bytes);
            cuda::allow_shared(multiply_pairs_kernel<true, bytes>, pairs_most_bytes);
          },
          [](const BitProduct& product, int, Stream stream) {
            launch<false, bytes>(product, BitResult(), stream);
          },
          launch<true, bytes>};
}

}  // namespace

const BitFunction pairs_function = pairs_of<false>();
const BitFunction byte_pairs_function = pairs_of<true>();

}  // namespace tessera::ops

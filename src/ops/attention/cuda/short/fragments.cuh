// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/async_copy.cuh"
#include "cuda/mma.cuh"
#include "ops/attention/cuda/short/launch.hpp"
#include "ops/attention/cuda/short/step_walk.cuh"
#include "ops/attention/cuda/tall/packed.cuh"

/// What a warp holds of 16 rows of a window and the 16 columns of a step. Rows of features come
/// straight from memory to the registers in which matrix instructions want them, in one of two
/// ways.
///
/// Products of rows with rows: in what order features are added does not matter, so that a lane
/// takes 16 bytes of a row at once, and of the window's own row those that meet them. Sums of
/// weighted rows: a lane takes 16 bytes of four rows and pairs them up. That product has features
/// as rows and the rows of the window as columns, so that its weights are where the cells have
/// been.
///
///     lane 4 g + q has  cells of rows g, g + 8 and columns 2q, 2q + 1, 2q + 8, 2q + 9,
///                       sums of features 8 g to 8 g + 7 and rows 2q, 2q + 1, 2q + 8, 2q + 9
namespace tessera::ops {

struct WarpLane {
  __device__ static int number() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int group() { return number() / 4; }
  __device__ static int quarter() { return number() % 4; }
};

/// The rows of a matrix of 16-bit features, from `first` of the head blockIdx.y on.
class FeatureRows {
 public:
  __device__ FeatureRows(const void* matrix, std::int64_t stride, int width, int first)
      : data_(static_cast<const char*>(matrix) + (std::int64_t{blockIdx.y} * width + first) * 2),
        row_bytes_(static_cast<std::uint32_t>(stride * 2)) {}

  __device__ const uint4* at(VertexId row, int feature) const {
    const auto number = static_cast<std::uint64_t>(static_cast<std::uint32_t>(row));
    return reinterpret_cast<const uint4*>(data_ + number * row_bytes_ + feature * 2);
  }
  __device__ uint4 load(VertexId row, int feature) const { return __ldg(at(row, feature)); }

 private:
  const char* data_;
  std::uint32_t row_bytes_;
};

/// Cells of a step: `of[i]` are those of columns 8 i on, two of row g, then two of row g + 8.
struct StepCells {
  float of[2][4] = {};

  /// Whether the step has an edge there, by its bits.
  __device__ static bool exists(std::uint32_t bits, int i, int k) {
    return (bits >> (i * 2 + k / 2 + k % 2 * 16) & 1) != 0;
  }
};

/// The rows of the window itself as operands of products with gathered rows: those of each thread
/// lie in shared memory for itself, since registers are scarcer.
template <class T, int width>
class OwnRows {
 public:
  static constexpr int chunks = width / 32;
  using Memory = uint4[chunks][2][short_attention_warps * 32];

  __device__ OwnRows(Memory& memory, const void* matrix, std::int64_t stride)
      : memory_(memory), rows_(matrix, stride, width, WarpLane::quarter() * 8) {}

  /// Asks for the rows of a window, zeros for those that it does not have.
  __device__ void start(const tiles::Piece& piece) const {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int place = WarpLane::group() + 8 * row;
      const bool exists = place < piece.num_rows && piece.num_steps > 0;
#pragma unroll
      for (int chunk = 0; chunk < chunks; ++chunk) {
        const std::uint32_t to = cuda::shared_address(&memory_[chunk][row][threadIdx.x]);
        const uint4* const from = rows_.at(piece.first_row + (exists ? place : 0), chunk * 32);
        if (exists) {
          cuda::copy_16_async(to, from);
        } else {
          cuda::zero_16_async(to, from);
        }
      }
    }
  }

  __device__ uint4 load(int chunk, int row) const { return memory_[chunk][row][threadIdx.x]; }

 private:
  Memory& memory_;
  FeatureRows rows_;
};

/// Gathered rows as operands of products with rows of the window.
template <class T, int width>
class MetRows {
 public:
  static constexpr int chunks = width / 32;

  __device__ MetRows(const void* matrix, std::int64_t stride)
      : rows_(matrix, stride, width, WarpLane::quarter() * 8) {}

  /// 64 features of the rows of a step.
  __device__ void load(const StepWalk::Step& step, int part) {
#pragma unroll
    for (int block = 0; block < 2; ++block) {
#pragma unroll
      for (int chunk = 2 * part; chunk < 2 * part + 2; ++chunk) {
        held_[block][chunk] = rows_.load(step.met[block], chunk * 32);
      }
    }
  }
  __device__ void load(const StepWalk::Step& step) {
#pragma unroll
    for (int part = 0; part < width / 64; ++part) load(step, part);
  }

  __device__ void multiply(const OwnRows<T, width>& own, StepCells& cells) const {
#pragma unroll
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const uint4 low = own.load(chunk, 0);
      const uint4 high = own.load(chunk, 1);
      const std::uint32_t a[2][4] = {{low.x, high.x, low.y, high.y},
                                     {low.z, high.z, low.w, high.w}};
#pragma unroll
      for (int block = 0; block < 2; ++block) {
        const uint4& row = held_[block][chunk];
        const std::uint32_t b[2][2] = {{row.x, row.y}, {row.z, row.w}};
        cuda::multiply_16x8<T>(cells.of[block], a[0], b[0]);
        cuda::multiply_16x8<T>(cells.of[block], a[1], b[1]);
      }
    }
  }

 private:
  FeatureRows rows_;
  uint4 held_[2][chunks];  ///< of columns g and g + 8
};

/// The weights of a step as operands, in two parts: of rows 0 to 7, then of the others.
template <class T>
struct StepOperands {
  std::uint32_t high[2][2];
  std::uint32_t low[2][2];

  __device__ explicit StepOperands(const StepCells& weights) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const PackedTwice<T> pair(weights.of[i][2 * half], weights.of[i][2 * half + 1]);
        high[half][i] = pair.high;
        low[half][i] = pair.low;
      }
    }
  }
};

/// 64 features of gathered rows, to be weighted.
template <class T>
struct WeightedRows {
  uint4 held[4];  ///< of columns 2q, 2q + 1, 2q + 8, 2q + 9

  __device__ void load(const FeatureRows& rows, const StepWalk::Step& step, int chunk) {
#pragma unroll
    for (int column = 0; column < 4; ++column) {
      held[column] = rows.load(step.weighted[column], chunk * 64);
    }
  }

  /// The operand of features 8 g + 2 pair and the next.
  __device__ void pair_up(int pair, std::uint32_t (&a)[4]) const {
    const std::uint32_t v[4] = {word(held[0], pair), word(held[1], pair), word(held[2], pair),
                                word(held[3], pair)};
    a[0] = __byte_perm(v[0], v[1], 0x5410);
    a[1] = __byte_perm(v[0], v[1], 0x7632);
    a[2] = __byte_perm(v[2], v[3], 0x5410);
    a[3] = __byte_perm(v[2], v[3], 0x7632);
  }

 private:
  __device__ static std::uint32_t word(const uint4& vector, int i) {
    return i == 0 ? vector.x : i == 1 ? vector.y : i == 2 ? vector.z : vector.w;
  }
};

/// Sums of weighted rows: 64 features.
template <class T>
class FeatureSums {
 public:
  __device__ void clear() {
#pragma unroll
    for (auto& of_pair : sums_) {
#pragma unroll
      for (auto& of_half : of_pair) {
#pragma unroll
        for (float& sum : of_half) sum = 0;
      }
    }
  }
  __device__ void add(const StepOperands<T>& weights, const WeightedRows<T>& rows) {
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      std::uint32_t a[4];
      rows.pair_up(pair, a);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        cuda::multiply_16x8<T>(sums_[pair][half], a, weights.low[half]);
        cuda::multiply_16x8<T>(sums_[pair][half], a, weights.high[half]);
      }
    }
  }
  /// By a number per row: rows 2q and 2q + 1, then those 8 further on.
  __device__ void scale(const float (&factors)[2][2]) {
#pragma unroll
    for (auto& of_pair : sums_) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int k = 0; k < 4; ++k) of_pair[half][k] *= factors[half][k % 2];
      }
    }
  }
  /// The eight features of row 8 half + 2q + odd.
  __device__ void row(int half, int odd, float (&features)[8]) const {
#pragma unroll
    for (int k = 0; k < 8; ++k) features[k] = sums_[k / 2][half][k % 2 * 2 + odd];
  }

 private:
  /// Of features 8 g + 2 i and the next: two rows of the first, then of the second; of rows 2q and
  /// 2q + 1, then of those 8 further on.
  float sums_[4][2][4];
};

}  // namespace tessera::ops

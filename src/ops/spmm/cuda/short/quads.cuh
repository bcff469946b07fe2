// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "cuda/finite_bf16.cuh"
#include "cuda/mma.cuh"
#include "ops/spmm/cuda/short/window_sums.cuh"
#include "tessera/tiles/quad_tiles.hpp"

/// Sums over windows of 16 rows with `mma.sp.m16n8k32`: sparse tensor cores, from Ampere on.
///
/// The window's rows are the sparse operand, 32 of its columns at once, in quads of which every row
/// uses at most two; features are the short side of the instruction. Of the 32 columns of a step
/// lane l needs eight: 2 * (l % 4) and the next, and those 8, 16 and 24 further on. It loads 16
/// bytes of their rows of X, the features from 8 * (l / 4) on, straight into registers. The order
/// of features within the instruction is free, so a byte permute of two rows makes a register of
/// the operand: the instruction j of eight takes the features 8 * n + j. A lane's sums are then 16
/// neighbouring features of the window's rows l / 4 and l / 4 + 8. There is no shared memory.
namespace tessera::ops {

/// What a lane knows of a step: its eight columns, and the words of its tile.
struct QuadStep {
  int2 columns[4] = {};
  std::uint32_t indices = 0;
  std::uint32_t bits = 0;

  /// Step and tile count in the whole graph. Of a step that does not exist: column 0, which nobody
  /// uses; its indices do not matter, since its entries are 0, but they have to rise.
  __device__ static QuadStep load(const ShortLaunch& launch, bool exists, int step, int tile) {
    QuadStep loaded;
    loaded.indices = 0xCCCCCCCCu;
    if (!exists) return loaded;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const VertexId* const columns =
        launch.matrix.columns + std::int64_t{step} * tiles::quad_step_columns + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < 4; ++i) loaded.columns[i] = *reinterpret_cast<const int2*>(columns + 8 * i);
    const std::uint32_t* const words =
        launch.matrix.words + std::int64_t{tile} * tiles::quad_strip_words;
    loaded.indices = words[lane];
    loaded.bits = words[32 + lane / 2];
    return loaded;
  }

  /// Numbers that add up to what an edge is multiplied by.
  static constexpr int terms = 1;

  /// 1 where there is an edge: tiles/quad_fragment.hpp says which bits they are. `parity` is 0 for
  /// the first step of a tile, 1 for the second.
  template <class T>
  __device__ void expand(int parity, std::uint32_t (&entries)[1][4]) const {
    constexpr std::uint32_t one = std::is_same_v<T, __nv_bfloat16> ? 0x3f80u : 0x3c00u;
    // The bits of the first entries to the low half, those of the second ones to the high half.
    const std::uint32_t halves = __byte_perm(bits, 0, threadIdx.x % 2 == 0 ? 0x4140 : 0x4342);
#pragma unroll
    for (int i = 0; i < 4; ++i) entries[0][i] = (halves >> (4 * parity + i) & 0x00010001u) * one;
  }

  /// Where the instruction wants them: the lanes 4 g + 2 and 4 g + 3 have those of second steps.
  __device__ std::uint32_t indices_of(int parity) const {
    const std::uint32_t other = __shfl_xor_sync(0xFFFFFFFFu, indices, 2);
    return parity == 0 ? indices : other;
  }
};

/// The same with a value for every entry, as a high and a low part.
struct ValuedQuadStep : QuadStep {
  uint4 values[2] = {};

  __device__ static ValuedQuadStep load(const ShortLaunch& launch, bool exists, int step,
                                        int tile) {
    ValuedQuadStep loaded{QuadStep::load(launch, exists, step, tile)};
    if (!exists) return loaded;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const auto* const values =
        reinterpret_cast<const uint4*>(launch.matrix.values) + (std::int64_t{step} * 32 + lane) * 2;
    loaded.values[0] = values[0];
    loaded.values[1] = values[1];
    return loaded;
  }

  static constexpr int terms = 2;

  template <class T>
  __device__ void expand(int, std::uint32_t (&entries)[2][4]) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint4 of = values[i];
      entries[0][2 * i] = __byte_perm(of.x, of.y, 0x5410);
      entries[1][2 * i] = __byte_perm(of.x, of.y, 0x7632);
      entries[0][2 * i + 1] = __byte_perm(of.z, of.w, 0x5410);
      entries[1][2 * i + 1] = __byte_perm(of.z, of.w, 0x7632);
    }
  }
};

/// Eight features of a row of X as a lane holds them, and the operands that two rows make of one of
/// them.
template <class T>
struct QuadRow {
  using Element = T;
  static constexpr int planes = 1;

  std::uint32_t words[4];

  __device__ void load(const char* from, float) {
    const uint4 raw = *reinterpret_cast<const uint4*>(from);
    memcpy(words, &raw, sizeof(raw));
  }
  __device__ static void pair(const QuadRow& even, const QuadRow& odd, int feature,
                              std::uint32_t (&operand)[planes]) {
    operand[0] = __byte_perm(even.words[feature / 2], odd.words[feature / 2],
                             feature % 2 == 0 ? 0x5410 : 0x7632);
  }
};

/// fp32 is two planes of bf16, which leave 2^-17 of a feature. The scale of its column comes first.
template <>
struct QuadRow<float> {
  using Element = __nv_bfloat16;
  static constexpr int planes = 2;

  float values[8];
  float scale;

  __device__ void load(const char* from, float column_scale) {
    scale = column_scale;
    const float4* const raw = reinterpret_cast<const float4*>(from);
    const float4 halves[2] = {raw[0], raw[1]};
    memcpy(values, halves, sizeof(values));
  }
  __device__ static void pair(const QuadRow& even, const QuadRow& odd, int feature,
                              std::uint32_t (&operand)[planes]) {
    cuda::split_in_two_planes(even.values[feature] * even.scale, odd.values[feature] * odd.scale,
                              operand);
  }
};

/// A lane's share of `width` features of a window. Rows go through an epilogue if there is one.
/// Where they are no whole rows, those of X were copied to where they are; those of Y end anywhere.
template <class T, int width, bool epilogue, bool whole_rows>
class QuadSums : public WindowSums<width / 8> {
  using Base = WindowSums<width / 8>;

 public:
  static constexpr int parts = width / 64;
  static_assert(parts >= 1 && parts <= 2);

  __device__ explicit QuadSums(const ShortLaunch& launch) : Base(launch) {
    // Lanes without features multiply others, which nobody stores.
    const int features = launch.features.count;
    x_ = static_cast<const T*>(launch.features.x) +
         (first_loaded(0) < features ? first_loaded(0) : 0);
    other_part_ = first_loaded(parts - 1) < features ? (parts - 1) * 64 : 0;
  }

  /// Asks for the rows of X.
  __device__ void gather(const QuadStep& step) {
#pragma unroll
    for (int part = 0; part < parts; ++part) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int2 columns = step.columns[i];
        rows_[part][i][0].load(row_of(columns.x, part), scale_of(columns.x));
        rows_[part][i][1].load(row_of(columns.y, part), scale_of(columns.y));
      }
    }
  }

  template <class Step>
  __device__ void multiply(const Step& step, int number) {
    std::uint32_t entries[Step::terms][4];
    step.template expand<Element>(number % 2, entries);
    const std::uint32_t indices = step.indices_of(number % 2);
#pragma unroll
    for (int part = 0; part < parts; ++part) {
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        std::uint32_t features[QuadRow<T>::planes][4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          std::uint32_t operand[QuadRow<T>::planes];
          QuadRow<T>::pair(rows_[part][i][0], rows_[part][i][1], j, operand);
#pragma unroll
          for (int plane = 0; plane < QuadRow<T>::planes; ++plane) {
            features[plane][i] = operand[plane];
          }
        }
#pragma unroll
        for (const auto& plane : features) {
#pragma unroll
          for (const auto& term : entries) {
            cuda::multiply_sparse_16x8<Element>(sums_[part * 8 + j], term, plane, indices);
          }
        }
      }
    }
  }

  /// Multiplies the rows by their scales and brings them to Y.
  __device__ void store(VertexId first_row) {
#pragma unroll
    for (int lower = 0; lower < 2; ++lower) {
      const VertexId row = first_row + lane() / 4 + 8 * lower;
      if (row >= launch_.matrix.num_rows) continue;
      this->scale_row(row, 2 * lower, 2 * lower + 1);
      T* const y = this->template row_of_y<T>(row);
#pragma unroll
      for (int part = 0; part < parts; ++part) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int feature =
              static_cast<int>(blockIdx.y) * width + part * 64 + lane() % 4 * 16 + half * 8;
          if (feature >= launch_.features.count) continue;
          float sums[8];
#pragma unroll
          for (int j = 0; j < 8; ++j) sums[j] = sums_[part * 8 + j][2 * lower + half];
          this->template to_y<T, epilogue, whole_rows>(y, row, feature, sums);
        }
      }
    }
  }

 private:
  using Element = typename QuadRow<T>::Element;
  using Base::lane;
  using Base::launch_;
  /// Tile j has the features 8 * n + j of 64, for n of two neighbours and two rows each.
  using Base::sums_;

  /// The first of the eight features that the lane loads of each row.
  __device__ static int first_loaded(int part) {
    return static_cast<int>(blockIdx.y) * width + part * 64 + lane() / 4 * 8;
  }

  __device__ const char* row_of(VertexId column, int part) const {
    const std::uint64_t offset =
        std::uint64_t{static_cast<std::uint32_t>(column)} * launch_.features.x_row_bytes;
    return reinterpret_cast<const char*>(x_ + (part > 0 ? other_part_ : 0)) + offset;
  }

  __device__ float scale_of(VertexId column) const {
    const float* const scales = launch_.matrix.column_scales;
    return scales == nullptr ? 1 : __ldg(scales + column);
  }

  const T* x_;
  int other_part_;  ///< from the first
  QuadRow<T> rows_[parts][4][2];
};

/// Windows of 16 rows, their edges in quads of columns.
template <bool whole_rows>
struct QuadWindows {
  static constexpr int steps_per_tile = 2;
  using Step = QuadStep;
  template <class T, int width, bool epilogue>
  using Sums = QuadSums<T, width, epilogue, whole_rows>;
  /// Blocks that a processor should hold.
  static constexpr int blocks(int bytes) { return bytes > 128 ? 3 : 4; }
};

template <bool whole_rows>
struct ValuedQuadWindows : QuadWindows<whole_rows> {
  using Step = ValuedQuadStep;
};

}  // namespace tessera::ops

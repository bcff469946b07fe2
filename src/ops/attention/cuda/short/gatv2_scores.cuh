// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "ops/attention/cuda/exponentials.cuh"
#include "ops/attention/cuda/short/direct_rows.cuh"

/// Scores a . leaky_relu(x + y) of the rows of a window, x, with the columns of a step, y.
/// leaky_relu(z) is s z + (1 - s) max(0, z), and max(0, x + y) is x + max(-x, y), so that
///
///     S = a . x + s (a . y) + (1 - s) a . max(-x, y)
///
/// of which only the last part belongs to a cell. A maximum is one of its two numbers, so that
/// nothing is rounded; one instruction finds two. The product with a is a matrix product with a in
/// all of its columns. Its rows are the columns of the step, whose features lanes hold as they
/// came; those of a row of the window come from shared memory, where all lanes that have a quarter
/// of them read the same, and rows without an edge in the step are left out.
namespace tessera::ops {

/// Which rows of a window have an edge in a step.
__device__ inline std::uint32_t used_rows(std::uint32_t bits) {
  const int g = WarpLane::group();
  return __reduce_or_sync(~0u, ((bits & 0x00050005u) != 0 ? 1u << g : 0u) |
                                   ((bits & 0x000a000au) != 0 ? 256u << g : 0u));
}

/// `turns` is for how many windows there is room.
template <class T, int width, int turns>
class GatV2Scores {
  static constexpr int row_bytes = width * 2;
  /// Numbers per row of cells: the second 16 are copies, and no banks collide.
  static constexpr int cells_stride = 40;
  static constexpr int cells_bytes = 16 * cells_stride * static_cast<int>(sizeof(float));

 public:
  static constexpr int chunks = width / 32;  ///< units of eight features per lane and row
  static constexpr int own_bytes = 16 * row_bytes;
  /// Room for the rows of windows, and for cells on their way to the lanes that want them.
  static constexpr int shared_bytes = turns * own_bytes + cells_bytes;

  __device__ GatV2Scores(const TallAttentionLaunch& launch, char* memory)
      : own_(memory),
        cells_(reinterpret_cast<float*>(memory + turns * own_bytes)),
        own_rows_(launch.target, launch.target_stride, width, 0),
        met_rows_(launch.source, launch.source_stride, width, WarpLane::quarter() * 8),
        factor_((1 - launch.slope) * log2_of_e),
        column_factor_(launch.slope * log2_of_e) {
    // Not to be formed again for every row.
    asm volatile("" : "+f"(factor_));
    const T* const vector = static_cast<const T*>(launch.vector) + std::int64_t{blockIdx.y} * width;
#pragma unroll
    for (int chunk = 0; chunk < chunks; ++chunk) {
      // a need not lie on a boundary of 16 bytes. Read-only loads could move ahead of the wait for
      // the kernel that wrote it.
      T unit[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        unit[i] = vector[chunk * 32 + WarpLane::quarter() * 8 + i];
      }
      memcpy(vector_ + chunk, unit, sizeof unit);
    }
  }

  /// Asks for the rows of a window, zeros for those that it does not have. `turn` is which of
  /// several places they go to.
  __device__ void start_own(const tiles::Piece& piece, int turn) const {
    each_unit([&](int row, int unit) {
      const bool exists = row < piece.num_rows && piece.num_steps > 0;
      const char* const from = own_rows_.at(piece.first_row + (exists ? row : 0)) + unit * 16;
      const std::uint32_t to = cuda::shared_address(own_at(row, unit, turn));
      if (exists) {
        cuda::copy_16_async(to, from);
      } else {
        cuda::zero_16_async(to, from);
      }
    });
  }
  /// When those that this lane has asked for have come: they are kept negative.
  __device__ void begin(int turn) {
    each_unit([&](int row, int unit) {
      auto* const at = reinterpret_cast<uint4*>(own_at(row, unit, turn));
      const uint4 positive = *at;
      *at = {positive.x ^ signs, positive.y ^ signs, positive.z ^ signs, positive.w ^ signs};
    });
    __syncwarp();
    const int g = WarpLane::group();
    float sums[4] = {};
#pragma unroll
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const uint4 rows[2] = {own_unit(g, chunk, turn), own_unit(g + 8, chunk, turn)};
      add_products(sums, rows, vector_[chunk]);
    }
    linear_[0] = -log2_of_e * sums[0];
    linear_[1] = -log2_of_e * sums[2];
  }

  /// Asks for the rows of a step's columns.
  __device__ void load(const StepColumns& columns) {
#pragma unroll
    for (int chunk = 0; chunk < chunks; ++chunk) {
#pragma unroll
      for (int block = 0; block < 2; ++block) {
        met_[chunk][block] = load_unit(met_rows_, columns.met[block], chunk * 32);
      }
    }
  }

  /// Scores of a step, in powers of two, where it has edges; elsewhere they are anything. `rows`
  /// are those that have some.
  __device__ void find(StepCells& cells, std::uint32_t rows, int turn) {
    float sums[4] = {};
#pragma unroll
    for (int chunk = 0; chunk < chunks; ++chunk) {
      add_products(sums, met_[chunk], vector_[chunk]);
    }
    const bool second = WarpLane::quarter() % 2 != 0;
    const float of_column = column_factor_ * (second ? sums[2] : sums[0]);
#pragma unroll 1
    while ((rows & (rows - 1)) != 0) {
      const int last = last_of(rows);
      find_rows<2>({last, last_of(rows)}, turn, of_column);
    }
    if (rows != 0) find_rows<1>({last_of(rows)}, turn, of_column);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 pair = *reinterpret_cast<const float2*>(
          cell_at(WarpLane::group() + i % 2 * 8, i / 2 * 8 + WarpLane::quarter() * 2));
      cells.of[i / 2][i % 2 * 2] = pair.x + linear_[i % 2];
      cells.of[i / 2][i % 2 * 2 + 1] = pair.y + linear_[i % 2];
    }
    __syncwarp();
  }

  /// The rows of the step's columns, until others are asked for.
  __device__ const uint4 (&columns() const)[chunks][2] { return met_; }
  /// Eight features of a row of the window, negative.
  __device__ uint4 own(int row, int unit, int turn) const {
    return *reinterpret_cast<const uint4*>(own_at(row, unit, turn));
  }
  /// Free for others between searches.
  __device__ char* scratch() const { return reinterpret_cast<char*>(cells_); }
  static constexpr int scratch_bytes = cells_bytes;

 private:
  /// The last of some rows, which is taken off them.
  __device__ static int last_of(std::uint32_t& rows) {
    const int last = 31 - __clz(static_cast<int>(rows));
    rows ^= 1u << last;
    return last;
  }
  static constexpr std::uint32_t signs = 0x80008000u;

  /// Calls visit(row, unit) for this lane's share of a window's own rows.
  template <class Visit>
  __device__ static void each_unit(Visit&& visit) {
    constexpr int units = width / 8;
#pragma unroll
    for (int i = 0; i < units / 2; ++i) {
      visit(i * (32 / units) + WarpLane::number() / units, WarpLane::number() % units);
    }
  }
  __device__ char* own_at(int row, int unit, int turn) const {
    return own_ + turn * own_bytes + row * row_bytes + unit * 16;
  }
  __device__ uint4 own_unit(int row, int chunk, int turn) const {
    return own(row, chunk * 4 + WarpLane::quarter(), turn);
  }
  __device__ float* cell_at(int row, int column) const {
    return cells_ + row * cells_stride + column;
  }

  using Pair = std::conditional_t<std::is_same_v<T, __half>, __half2, __nv_bfloat162>;
  /// Products of eight features per lane of two rows of 16 with those of a.
  __device__ static void add_products(float (&sums)[4], const uint4 (&rows)[2], const uint4& a) {
    cuda::multiply_16x8<T>(sums, {rows[0].x, rows[1].x, rows[0].y, rows[1].y}, {a.x, a.y});
    cuda::multiply_16x8<T>(sums, {rows[0].z, rows[1].z, rows[0].w, rows[1].w}, {a.z, a.w});
  }
  /// Of either half the larger one; not-a-number if one is.
  __device__ static std::uint32_t larger(std::uint32_t a, std::uint32_t b) {
    const Pair result =
        __hmax2_nan(reinterpret_cast<const Pair&>(a), reinterpret_cast<const Pair&>(b));
    return reinterpret_cast<const std::uint32_t&>(result);
  }
  __device__ static uint4 larger(const uint4& a, const uint4& b) {
    return {larger(a.x, b.x), larger(a.y, b.y), larger(a.z, b.z), larger(a.w, b.w)};
  }

  /// Cells of some rows of the window: each has its own sums, and those of a row are two chains, as
  /// a product waits for the one before it.
  template <int count>
  __device__ void find_rows(const int (&rows)[count], int turn, float of_column) {
    float sums[count][2][4] = {};
#pragma unroll
    for (int chunk = 0; chunk < chunks; ++chunk) {
#pragma unroll
      for (int i = 0; i < count; ++i) {
        const uint4 own = own_unit(rows[i], chunk, turn);
        const uint4 maxima[2] = {larger(own, met_[chunk][0]), larger(own, met_[chunk][1])};
        add_products(sums[i][chunk % 2], maxima, vector_[chunk]);
      }
    }
    const bool second = WarpLane::quarter() % 2 != 0;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float low = sums[i][0][0] + sums[i][1][0];
      const float high = sums[i][0][2] + sums[i][1][2];
      const float cell = fmaf(factor_, second ? high : low, of_column);
      *cell_at(rows[i], WarpLane::group() + WarpLane::quarter() * 8) = cell;
    }
  }

  char* own_;
  float* cells_;
  FeatureRows own_rows_;
  FeatureRows met_rows_;
  float factor_, column_factor_;  ///< 1 - s and s, in powers of two
  uint4 vector_[chunks];
  uint4 met_[chunks][2];  ///< of columns g and g + 8
  float linear_[2];       ///< a . x of rows g and g + 8, in powers of two
};

}  // namespace tessera::ops

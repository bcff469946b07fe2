// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/async_copy.cuh"
#include "ops/sddmm/cuda/tall/shape.cuh"

namespace tessera::ops {

/// 16 bytes, or zeros without a look at `global`.
__device__ inline void copy_16_or_zero(std::uint32_t shared, const void* global, bool copies) {
  asm volatile(
      "{\n.reg .pred zero;\nsetp.eq.u32 zero, %2, 0;\n"
      "cp.async.cg.shared.global [%0], [%1], 16, zero;\n}" ::"r"(shared),
      "l"(global), "r"(static_cast<std::uint32_t>(copies))
      : "memory");
}

/// Brings rows into slots. A thread has the same 16 bytes of all rows that it brings. Rows that a
/// tile does not have, and features beyond the last, become 0.
template <class Shape>
class RowLoader {
 public:
  using T = typename Shape::T;
  using Tile = typename Shape::Tile;
  static constexpr int units = Shape::chunk_bytes / 16;
  static constexpr int elements = 16 / static_cast<int>(sizeof(T));
  static constexpr int rows_at_once = Shape::threads / units;
  static constexpr int passes = rows_at_once >= 64 ? 1 : 64 / rows_at_once;
  static_assert(rows_at_once % 8 == 0);

  __device__ RowLoader(const TallDotsLaunch& launch, std::uint32_t slots)
      : num_rows_(launch.num_rows), row_(static_cast<int>(threadIdx.x) / units), slots_(slots) {
    const int unit = static_cast<int>(threadIdx.x) % units;
    to_ = Shape::offset(row_, unit);
    left_ = launch.width - unit * elements;
    const std::int64_t first = std::int64_t{blockIdx.y} * launch.width + unit * elements;
    constexpr int size = static_cast<int>(sizeof(T));
    u_ = static_cast<const char*>(launch.u) + first * size;
    v_ = static_cast<const char*>(launch.v) + first * size;
    u_bytes_ = static_cast<std::uint32_t>(launch.u_stride * size);
    v_bytes_ = static_cast<std::uint32_t>(launch.v_stride * size);
  }

  __device__ void load(const Tile& tile, SlotContent part, int slot) const {
    const char* const source = (part.targets ? u_ : v_) + part.chunk * Shape::chunk_bytes;
    const std::uint32_t row_bytes = part.targets ? u_bytes_ : v_bytes_;
    const std::uint32_t to = slots_ + static_cast<std::uint32_t>(slot * Shape::slot_bytes) + to_;
    const VertexId first_row = tile.first_row + part.group * 64;
    const bool inside = part.chunk * Shape::chunk_elements < left_;
    const int rows = !inside ? 0 : part.targets ? num_rows_ - first_row : tile.num_columns;
#pragma unroll
    for (int pass = 0; pass < passes; ++pass) {
      const int row = row_ + pass * rows_at_once;
      if (rows_at_once > 64 && row >= 64) break;
      const VertexId id = part.targets ? first_row + row : tile.columns[row];
      copy_16_or_zero(
          to + static_cast<std::uint32_t>(pass * rows_at_once * row_pitch),
          source + static_cast<std::uint64_t>(static_cast<std::uint32_t>(id)) * row_bytes,
          row < rows);
    }
  }

  /// What tf32 leaves out of the features that this thread brought.
  __device__ void split(int slot, int plane) const {
    const std::uint32_t from = slots_ + static_cast<std::uint32_t>(slot * Shape::slot_bytes) + to_;
    const std::uint32_t to =
        slots_ + static_cast<std::uint32_t>(Shape::low_at + plane * Shape::slot_bytes) + to_;
#pragma unroll
    for (int pass = 0; pass < passes; ++pass) {
      if (row_ >= 64) break;
      const auto at = static_cast<std::uint32_t>(pass * rows_at_once * row_pitch);
      float x, y, z, w;
      asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(x), "=f"(y), "=f"(z), "=f"(w)
                   : "r"(from + at)
                   : "memory");
      asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to + at), "f"(low(x)),
                   "f"(low(y)), "f"(low(z)), "f"(low(w))
                   : "memory");
    }
  }

  __device__ static float low(float value) {
    return value - __uint_as_float(__float_as_uint(value) & 0xffffe000u);
  }

 private:
  static constexpr int row_pitch = Shape::row_pitch;

  VertexId num_rows_;
  int row_;
  int left_;  ///< features of a head from this thread's on
  const char* u_;
  const char* v_;
  std::uint32_t u_bytes_;  ///< from one row to the next
  std::uint32_t v_bytes_;
  std::uint32_t slots_;
  std::uint32_t to_;  ///< within a slot
};

}  // namespace tessera::ops

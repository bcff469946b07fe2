// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>

#include <cstdint>
#include <type_traits>

#include "cuda/any_start.cuh"
#include "ops/spmm/cuda/tall/loaders.cuh"

namespace tessera::ops {

/// Rows of X that begin anywhere, 16-bit or fp32: through registers, loaded two stages and stored
/// one stage ahead, each unit of 16 bytes as the two blocks that it lies in. That takes more
/// instructions than a copy of X in whole units, but asks memory for nothing twice.
template <class T, int width_, bool scaled_>
class ShiftLoader {
  static constexpr bool splits = sizeof(T) == 4;

 public:
  using Source = T;
  using Element = std::conditional_t<splits, __nv_bfloat16, T>;
  static constexpr int width = width_;
  static constexpr int threads = 128;
  static constexpr int rows = 64;
  static constexpr bool valued = false;
  static constexpr bool quads = false;
  static constexpr bool by_warps = false;
  static constexpr int planes = splits ? 2 : 1;
  static constexpr int num_stages = 2;
  static constexpr bool scaled = scaled_;  ///< in the matrix unit
  static constexpr bool aligned = false;
  static constexpr bool copies = false;
  static constexpr bool exact_sums = false;
  static constexpr int min_blocks = splits ? 3 : 4;
  using Layout = StageLayout<width, rows>;
  using Share = RowShare<T, width, rows, threads>;
  using Feed = StageFeed<rows, threads, splits || scaled, false>;
  using Record = typename Feed::Record;
  static constexpr int stage_bytes = planes * Layout::plane_bytes;
  static_assert(!splits || !scaled);

  __device__ ShiftLoader(const TallLaunch& launch, std::uint32_t stages)
      : launch_(launch), share_(launch), to_(stages + offset(share_.first_row, share_.unit)) {
    const std::int64_t first = blockIdx.y * launch.features.panel + share_.unit * Share::elements;
    bytes_left_ = static_cast<int>((launch.features.count - first) * std::int64_t{sizeof(T)});
  }

  __device__ void first(int num_steps, Record record) {
    pull(num_steps, record);
    store(record, 0);
  }
  __device__ void second(int num_steps, Record record) { pull(num_steps, record); }
  __device__ void advance(int num_steps, Record next, Record after_next, int now) {
    store(next, 1 - now);
    pull(num_steps, after_next);
  }

 private:
  __device__ static std::uint32_t offset(int row, int unit) {
    if constexpr (splits) {
      return half_unit_offset<Layout>(row, unit);
    } else {
      return Layout::offset(row, unit);
    }
  }

  __device__ void pull(int num_steps, Record record) {
    live_ = share_.live(num_steps);
    if (!live_) return;
    VertexId columns[Share::count];
    share_.read(record.columns(), columns);
    VertexId last = 0;
#pragma unroll
    for (const VertexId column : columns) last = max(last, column);
    const bool in_blocks = last < launch_.features.rows_in_blocks;
#pragma unroll
    for (int i = 0; i < Share::count; ++i) {
      loaded_[i].load_if(in_blocks, share_.of(columns[i]), bytes_left_);
    }
    if (in_blocks) return;
#pragma unroll
    for (int i = 0; i < Share::count; ++i) {
      loaded_[i].load_alone(true, share_.of(columns[i]), bytes_left_);
    }
  }

  /// The matrix unit must see what is written here. The fence waits for loads under way too, so it
  /// comes before the next ones are asked for.
  __device__ void store(Record record, int place) {
    if (live_) {
      const std::uint32_t to = to_ + static_cast<std::uint32_t>(place * stage_bytes);
      std::uint32_t scales[Share::count];
      const bool scales_rows = splits && launch_.matrix.scales != nullptr;
      if (scales_rows) share_.read(record.scales(), scales);
#pragma unroll
      for (int i = 0; i < Share::count; ++i) {
        const std::uint32_t at = Layout::further(to, i);
        uint4 unit = loaded_[i].unit();
        if constexpr (splits) {
          if (scales_rows) unit = scaled_unit(unit, scales[i]);
          store_planes<planes, Layout>(at, unit);
        } else {
          asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(unit.x),
                       "r"(unit.y), "r"(unit.z), "r"(unit.w)
                       : "memory");
        }
      }
    }
    cuda::fence_shared_for_wgmma();
  }

  const TallLaunch& launch_;
  Share share_;
  std::uint32_t to_;
  int bytes_left_;     ///< of a row, from this thread's unit on
  bool live_ = false;  ///< whether there are loaded rows
  cuda::UnitBlocks<T> loaded_[Share::count];
};

}  // namespace tessera::ops

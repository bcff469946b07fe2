// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/spmm/cuda/tall/loaders.cuh"

namespace tessera::ops {

/// 64 16-bit features of 192 rows of X in a stage, copied two stages ahead. Windows of small graphs
/// have a few more columns than their 128 rows, which are one stage here and two of 128. A thread
/// brings the same 16 bytes of every 32nd row.
class LongCopyLoader {
 public:
  using Source = __nv_bfloat16;
  using Element = __nv_bfloat16;
  static constexpr int width = 64;
  static constexpr int threads = 256;
  static constexpr int rows = 192;
  static constexpr bool valued = false;
  static constexpr bool quads = false;
  static constexpr bool by_warps = false;
  static constexpr int planes = 1;
  static constexpr int num_stages = 3;
  static constexpr bool scaled = false;
  static constexpr bool copies = true;
  static constexpr bool exact_sums = false;
  static constexpr int min_blocks = 2;
  using Layout = StageLayout<width, rows>;
  using Feed = StageFeed<rows, threads, scaled, valued>;
  using Record = typename Feed::Record;
  static constexpr int stage_bytes = Layout::plane_bytes;

  __device__ LongCopyLoader(const TallLaunch& launch, std::uint32_t stages)
      : first_row_(static_cast<int>(threadIdx.x) / units),
        row_bytes_(static_cast<std::uint32_t>(launch.features.x_stride) * element_bytes) {
    const int unit = static_cast<int>(threadIdx.x) % units;
    const int feature = unit * 16 / element_bytes;
    if (feature >= launch.features.end) first_row_ = rows;
    source_ = static_cast<const char*>(launch.features.x) + unit * 16;
    to_ = stages + Layout::offset(static_cast<int>(threadIdx.x) / units, unit);
    // One register pair, not a sum that is formed again for every row.
    asm volatile("" : "+l"(source_));
  }

  __device__ void first(int num_steps, Record record) { load(num_steps, record, 0); }
  __device__ void second(int num_steps, Record record) { load(num_steps, record, 1); }
  /// While the stage in place `now` is multiplied; the stage after next has so many steps.
  __device__ void advance(int num_steps, Record, Record after_next, int now) {
    load(num_steps, after_next, now == 0 ? 2 : now - 1);
  }

 private:
  static constexpr int element_bytes = 2;
  static constexpr int units = width * element_bytes / 16;
  static constexpr int rows_apart = threads / units;
  static constexpr int count = rows / rows_apart;

  /// As `copy_16_async`, with a condition and no branch.
  __device__ static void copy_if(bool wanted, std::uint32_t shared, const void* global) {
    asm volatile(
        "{ .reg .pred p; setp.ne.s32 p, %0, 0;\n"
        "  @p cp.async.cg.shared.global [%1], [%2], 16; }" ::"r"(static_cast<int>(wanted)),
        "r"(shared), "l"(global)
        : "memory");
  }

  __device__ void load(int num_steps, Record record, int place) const {
    const VertexId* const listed = record.columns() + static_cast<int>(threadIdx.x) / units;
    // All of them before the first is asked for, be they old ones that no row is brought for.
    std::uint32_t columns[count];
#pragma unroll
    for (int i = 0; i < count; ++i) {
      columns[i] = static_cast<std::uint32_t>(listed[i * rows_apart]);
    }
    const int left = num_steps * 16 - first_row_;
    const std::uint32_t to = to_ + static_cast<std::uint32_t>(place * stage_bytes);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      copy_if(i * rows_apart < left, to + static_cast<std::uint32_t>(i * rows_apart * 128),
              source_ + std::uint64_t{columns[i]} * row_bytes_);
    }
  }

  int first_row_;  ///< of this thread; none of a stage where there are no such features
  std::uint32_t row_bytes_;
  const char* source_;  ///< in the first row of X
  std::uint32_t to_;
};

}  // namespace tessera::ops

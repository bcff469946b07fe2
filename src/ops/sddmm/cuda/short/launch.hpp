// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "tessera/core/device.hpp"
#include "tessera/core/types.hpp"

/// Dot products of windows of 16 rows, in steps of 16 of a window's columns: what their kernels
/// read. Steps are those of translation (tiles/tiled_graph.hpp), with their bits row by row.
namespace tessera::ops {

inline constexpr int short_dot_rows = 16;
inline constexpr int short_dot_columns = 16;

/// Steps of a window that one warp takes, one after the other.
struct alignas(8) DotRun {
  std::int32_t first_step = 0;
  std::uint32_t window_and_steps = 0;  ///< the steps in the low bits

  static constexpr int step_bits = 3;
  static constexpr std::uint32_t step_mask = (1u << step_bits) - 1;
};
/// More would need more room for results.
inline constexpr int most_run_steps = 4;
static_assert(most_run_steps <= static_cast<int>(DotRun::step_mask));

/// A window's number has to fit beside the steps.
inline constexpr VertexId max_short_dot_rows = 0x7ffffff0;

/// Where the edges of rows r and r + 8 begin in a run, counted in CSR.
struct alignas(8) DotPlaces {
  std::uint32_t lower = 0;
  std::uint32_t upper = 0;
};

/// Everything a launch needs; passed to the GPU by value.
struct ShortDotsLaunch {
  const DotRun* runs = nullptr;  ///< and one more without steps
  std::int32_t num_runs = 0;
  const DotPlaces* places = nullptr;            ///< 8 a run
  const std::int32_t* block_offsets = nullptr;  ///< the runs of each block
  std::int32_t num_blocks = 0;
  const VertexId* columns = nullptr;     ///< 16 a step
  const std::uint32_t* masks = nullptr;  ///< 8 a step: row r in the low half, r + 8 in the high one

  VertexId num_rows = 0;
  std::uint32_t row_bytes = 0;  ///< of a head
  std::int32_t heads = 1;
  const void* u = nullptr;
  const void* v = nullptr;
  void* edges = nullptr;
  std::uint32_t u_stride = 0;  ///< in bytes, as all that follow
  std::uint32_t v_stride = 0;
  std::uint32_t edge_stride = 0;
};

/// For the row of a head. A product of matrices cuts up to 4e-8 off the sum so far, always in one
/// direction; 128 of them, in either precision, leave half of the bound on the error.
inline constexpr std::int64_t max_short_dot_bytes = 4096;

/// One kernel: how to run it, and how many blocks of it a GPU holds.
struct ShortDotsFunction {
  void (*launch)(const ShortDotsLaunch& launch, Stream stream) = nullptr;
  int (*resident_blocks)() = nullptr;
};

/// Bytes of a head's row for which there is a kernel that keeps a window's rows in registers; the
/// last takes any number of 16 bytes.
inline constexpr std::array<int, 7> short_dot_bytes = {32, 64, 128, 256, 512, 1024, 0};
using ShortDotsFunctions = std::array<ShortDotsFunction, short_dot_bytes.size()>;

/// Compiled in units of their own (inst/).
extern const ShortDotsFunctions short_dots_bf16, short_dots_fp16, short_dots_fp32;
extern const ShortDotsFunctions direct_dots_bf16, direct_dots_fp16, direct_dots_fp32;

}  // namespace tessera::ops

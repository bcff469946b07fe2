// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "tessera/core/device.hpp"
#include "tessera/core/dtype.hpp"
#include "tiles/dot_steps.hpp"

/// Dot products of windows of 16 rows, in steps of 16 of a window's columns: what their kernels
/// read (tiles/dot_steps.hpp).
namespace tessera::ops {

/// Steps of a run, at most: more would need more room for results.
inline constexpr int most_run_steps = 4;
static_assert(most_run_steps <= static_cast<int>(tiles::DotRun::step_mask));

/// A window's number has to fit beside the steps.
inline constexpr VertexId max_short_dot_rows = 0x7ffffff0;

/// Everything a launch needs; passed to the GPU by value.
struct ShortDotsLaunch {
  const tiles::DotRun* runs = nullptr;  ///< and one more without steps
  std::int32_t num_runs = 0;
  const tiles::DotPlaces* places = nullptr;     ///< 8 per run
  const std::int32_t* block_offsets = nullptr;  ///< the runs of each block
  std::int32_t num_blocks = 0;
  const VertexId* columns = nullptr;     ///< 16 per step
  const std::uint32_t* masks = nullptr;  ///< 8 per step

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

/// What sets kernels apart.
struct ShortDotsKey {
  Precision precision = Precision::fp32;
  bool direct = false;  ///< results are stored one by one

  friend constexpr bool operator==(const ShortDotsKey&, const ShortDotsKey&) = default;
};

/// Bytes of a head's row for which there is a kernel that keeps a window's rows in registers; the
/// last takes any number of 16 bytes. A key's kernels are in this order.
inline constexpr std::array<int, 7> short_dot_bytes = {32, 64, 128, 256, 512, 1024, 0};

/// Compiled in units of their own (inst/).
template <ShortDotsKey key>
struct ShortDotsKernels {
  static std::span<const ShortDotsFunction> get();
};

}  // namespace tessera::ops

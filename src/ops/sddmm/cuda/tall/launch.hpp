// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "tessera/core/device.hpp"
#include "tessera/core/dtype.hpp"
#include "tiles/dot_tiles.hpp"

namespace tessera::ops {

/// Everything a launch needs; passed to the GPU by value.
struct TallDotsLaunch {
  const tiles::DotTile* tiles = nullptr;
  const std::uint32_t* codes = nullptr;
  int num_tiles = 0;
  /// Blocks take runs of 2^run_shift tiles in turn; row windows are loaded anew at each run.
  int run_shift = 0;
  int num_workers = 0;

  VertexId num_rows = 0;
  const void* u = nullptr;
  std::int64_t u_stride = 0;  ///< in elements, as all that follow
  const void* v = nullptr;
  std::int64_t v_stride = 0;
  void* edges = nullptr;
  std::int32_t edges_stride = 0;
  std::int32_t width = 0;  ///< features of a head
  std::int32_t heads = 1;
};

/// One kernel: how to run it, and how many blocks of it a GPU holds.
struct TallDotsFunction {
  void (*launch)(const TallDotsLaunch& launch, Stream stream) = nullptr;
  int (*resident_blocks)() = nullptr;
};

/// Bytes of a head's row that a kernel takes at once; the last takes any number in parts. The
/// kernels of a precision are in this order.
inline constexpr std::array<int, 6> tall_dot_bytes = {32, 64, 128, 256, 512, 0};

/// Compiled in units of their own (inst/).
template <Precision precision>
struct TallDotsKernels {
  static std::span<const TallDotsFunction> get();
};

/// Products of matrices that one sum may take, each of 32 bytes of a row: every one cuts up to 4e-8
/// off the sum so far, always in one direction, and the bound is 1e-5.
inline constexpr std::int64_t max_tall_dot_products = 240;

}  // namespace tessera::ops

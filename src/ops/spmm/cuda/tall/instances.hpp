// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>

#include "ops/spmm/cuda/tall/launch.hpp"

namespace tessera::ops {

/// What sets kernels apart. Rows of Y lie on 16-byte boundaries if `aligned`; those of X always do.
struct TallKey {
  Precision precision = Precision::fp32;
  int height = 64;
  int planes = 1;  ///< of bf16, for fp32 features
  /// Columns have scales, of 16-bit features. Those of fp32 features are multiplied on their way.
  bool scaled = false;
  bool valued = false;  ///< edges have values
  bool aligned = true;
  bool epilogue = false;
  bool warps = false;  ///< on mma.sync, by warps of their own, instead of wgmma
  bool quads = false;  ///< on sparse wgmma, columns in quads

  friend constexpr bool operator==(const TallKey&, const TallKey&) = default;
};

/// Whether there are kernels: 16-bit features are exact in one plane; values take windows of 64
/// rows; an epilogue takes two planes at most, and no values; warps take windows of 64 rows, two
/// planes at most, and with an epilogue rows on boundaries. Quads take windows of 128 or 256 rows,
/// two planes at most and no weights of edges.
constexpr bool is_compiled(const TallKey& key) {
  if (key.quads != (key.height == 256) && !(key.quads && key.height == 128)) return false;
  if (key.quads && (key.scaled || key.valued || key.warps || key.planes == 3)) return false;
  const bool full = key.precision == Precision::fp32;
  if (full ? key.scaled || key.planes < 2 : key.planes > 1) return false;
  if (key.valued && (key.height != 64 || key.scaled || key.planes == 3)) return false;
  if (key.warps && (key.height != 64 || key.planes == 3)) return false;
  return !key.epilogue || ((key.aligned || !key.warps) && !key.valued && key.planes < 3);
}

/// Features of a block, by which a key's kernels are ordered.
inline constexpr std::array<int, 3> tall_widths = {32, 64, 128};

/// Compiled in units of their own (inst/).
template <TallKey key>
struct TallKernels {
  static_assert(is_compiled(key));
  static std::span<const TallFunction> all();
};

}  // namespace tessera::ops

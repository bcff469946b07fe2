// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "ops/windows/launch.hpp"
#include "ops/windows/policy.hpp"

namespace tessera::ops {

inline constexpr std::array<TallPolicy, 9> tall_policies = {{
    {"tall_64", 64, 32, 2, 1},
    {"tall_64_long", 64, 256, 2, 1},
    {"tall_64_strict", 64, 32, 3, 1},
    {"split_128", 128, 256, 2, 3},
    {"valued_64", 64, 32, 2, 1, true},
    {"valued_64_mma", 64, 32, 2, 1, true, true},
    {"nm_256", 256, 32, 2, 1, false, false, true},
    {"nm_split_256", 256, 256, 2, 3, false, false, true},
    {"tall_64_mma", 64, 32, 2, 1, false, true},
}};
/// All but the last are kernels of their own; that one is part of a hybrid (hybrid/policy.hpp).
inline constexpr std::size_t num_tall_kernels = tall_policies.size() - 1;

/// Which of them are offered on rows in an order of the plan's own, too (row_order.hpp): long
/// windows that are not cut, and columns in quads, whose order inside of a window is free, so that
/// an order of rows is all that 2:4 wants. Shorter pieces are part of a hybrid (hybrid/policy.hpp).
inline constexpr std::array<TallPolicy, 3> ordered_tall_policies = {
    tall_policies[1], tall_policies[6], tall_policies[7]};
static_assert(ordered_tall_policies[1].quads && ordered_tall_policies[2].quads);

/// What sets kernels apart. Rows of Y lie on 16-byte boundaries if `aligned`; those of X always do.
struct TallKey {
  Precision precision = Precision::fp32;
  int height = 64;
  bool strict = false;  ///< fp32 features in three planes of bf16, not in two
  /// Columns have scales, of 16-bit features. Those of fp32 features are multiplied as they arrive.
  bool scaled = false;
  bool valued = false;  ///< edges have values
  bool aligned = true;
  bool epilogue = false;
  bool warps = false;  ///< on mma.sync, by warps of their own, instead of wgmma
  bool quads = false;  ///< on sparse wgmma, columns in quads

  constexpr int planes() const { return precision != Precision::fp32 ? 1 : strict ? 3 : 2; }
  friend constexpr bool operator==(const TallKey&, const TallKey&) = default;
};

/// Whether there are kernels: three planes and values take windows of 64 rows and no epilogue;
/// warps take windows of 64 rows, and with an epilogue rows on boundaries. Quads take windows of
/// 256 rows and no weights of edges.
constexpr bool is_compiled(const TallKey& key) {
  const bool full = key.precision == Precision::fp32;
  if (key.quads != (key.height == 256) || (full ? key.scaled : key.strict)) return false;
  if (key.quads && (key.scaled || key.valued || key.warps || key.strict)) return false;
  if (key.strict && (key.valued || key.warps)) return false;
  if (key.valued && key.scaled) return false;
  if ((key.strict || key.valued || key.warps) && key.height != 64) return false;
  return !key.epilogue || ((key.aligned || !key.warps) && !key.valued && !key.strict);
}

/// Features of a block, by which a key's kernels are ordered.
inline constexpr std::array<int, 3> tall_widths = {32, 64, 128};

/// Compiled in units of their own (inst/).
template <TallKey key>
struct TallKernels {
  static_assert(is_compiled(key));
  static std::span<const TallFunction> get();
};

}  // namespace tessera::ops

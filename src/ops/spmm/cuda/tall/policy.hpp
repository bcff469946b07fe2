// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tessera::ops {

/// How tall windows are and when they are cut. Taller windows use a gathered row more often, but
/// are fewer; pieces share a long window among blocks, but their sums have to be added later.
struct TallPolicy {
  const char* name;
  int height;
  std::int64_t min_cut_steps;
  int planes;  ///< of fp32 features: two leave 2^-17 of a feature, three nothing
  /// Columns that fewer rows of a window use are left to CUDA cores.
  int min_uses;
  /// Edges have values, the graph's own or those of a run.
  bool valued = false;
  /// On mma.sync, which every GPU has from compute capability 8.0 on, instead of wgmma.
  bool warps = false;
  /// On sparse wgmma: columns in quads of which every row uses at most two.
  bool quads = false;
};

inline constexpr std::array<TallPolicy, 12> tall_policies = {{
    {"tall_64", 64, 32, 2, 1},
    {"tall_64_long", 64, 256, 2, 1},
    {"tall_128", 128, 32, 2, 1},
    {"tall_64_strict", 64, 32, 3, 1},
    {"split_128", 128, 256, 2, 3},
    {"valued_64", 64, 32, 2, 1, true},
    {"tall_64_mma", 64, 32, 2, 1, false, true},
    {"valued_64_mma", 64, 32, 2, 1, true, true},
    {"nm_128", 128, 32, 2, 1, false, false, true},
    {"nm_256", 256, 32, 2, 1, false, false, true},
    {"nm_split_128", 128, 256, 2, 3, false, false, true},
    {"nm_split_256", 256, 256, 2, 3, false, false, true},
}};

/// Which of them are offered on rows in an order of the plan's own, too (row_order.hpp): long
/// windows that are not cut, and columns in quads, whose order inside of a window is free, so that
/// an order of rows is all that 2:4 wants. Shorter pieces are part of a hybrid (hybrid/policy.hpp).
inline constexpr std::array<std::size_t, 3> ordered_tall_policies = {1, 9, 11};
static_assert(tall_policies[9].quads && tall_policies[11].quads);

}  // namespace tessera::ops

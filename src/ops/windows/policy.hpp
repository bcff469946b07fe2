// SPDX-License-Identifier: Apache-2.0
#pragma once

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

}  // namespace tessera::ops

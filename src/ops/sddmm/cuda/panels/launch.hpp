// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "ops/sddmm/cuda/panels/policy.hpp"
#include "tessera/core/device.hpp"
#include "tessera/core/dtype.hpp"
#include "tessera/core/types.hpp"

namespace tessera::ops {

/// An edge of a panel, whose edges are ordered by source.
struct PanelEdge {
  VertexId source = 0;
  std::uint32_t target_and_place = 0;  ///< the target within the panel, the place of the result
};

inline constexpr int panel_place_bits = 23;

/// Consecutive edges of one panel, for one block.
struct PanelPiece {
  EdgeOffset first_edge = 0;   ///< in the order of panels
  EdgeOffset first_place = 0;  ///< of the panel's results
  std::int32_t num_edges = 0;
  VertexId first_row = 0;
  std::int32_t num_rows = 0;
};

/// Everything a launch needs; passed to the GPU by value.
struct PanelsLaunch {
  const PanelPiece* pieces = nullptr;
  std::int64_t num_pieces = 0;
  const PanelEdge* order = nullptr;
  const void* u = nullptr;
  const void* v = nullptr;
  std::int64_t u_stride = 0;  ///< in elements
  std::int64_t v_stride = 0;
  void* edges = nullptr;
  std::int64_t edges_stride = 0;
  int rows = 0;  ///< of a panel, at most
};

/// One policy, compiled.
struct PanelsKernel {
  void (*allow)(int rows);  ///< on the current GPU, panels of so many rows from now on
  void (*start)(const PanelsLaunch& launch, Stream stream);
};

/// One for each of `panel_policies`. Compiled in units of their own (inst/).
template <Precision precision>
struct PanelsKernels {
  static std::span<const PanelsKernel> all();
};

}  // namespace tessera::ops

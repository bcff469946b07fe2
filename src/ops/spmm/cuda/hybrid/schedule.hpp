// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/degrees.hpp"
#include "ops/spmm/cuda/rows/cost.hpp"
#include "ops/spmm/cuda/tall/cost.hpp"
#include "tessera/ops/window_cores.hpp"

namespace tessera::ops {

/// What the windows of a problem cost on either kind of core.
struct WindowCosts {
  TallWindowCost tall;
  RowsUnitCost rows;

  double on_tensor_cores(double columns) const { return tall.window_us + columns * tall.column_us; }
  double on_cuda_cores(double num_rows, double edges) const { return rows(num_rows, edges); }
};

/// Each window with the cores that are expected to be faster for it, whatever its neighbours get.
struct WindowCores {
  std::vector<std::uint8_t> on_tensor_cores;  ///< for each window
  std::vector<VertexId> cuda_rows;            ///< the rows of the others, in their order
  WindowShare tensor;
  WindowShare cuda;
};

/// `offsets` of rows, and of the steps of 16 columns that windows of `height` rows have.
WindowCores choose_cores(std::span<const EdgeOffset> offsets,
                         std::span<const EdgeOffset> step_offsets, int height,
                         const WindowCosts& costs);

/// Some rows of a matrix as if there were no others.
class SomeRows {
 public:
  SomeRows(std::span<const EdgeOffset> matrix_offsets, std::vector<VertexId> ids);

  RowLengths lengths() const { return {offsets_, degrees_, ids_, matrix_offsets_}; }

 private:
  std::span<const EdgeOffset> matrix_offsets_;
  std::vector<VertexId> ids_;
  std::vector<EdgeOffset> offsets_;
  DegreeStatistics degrees_;
};

}  // namespace tessera::ops

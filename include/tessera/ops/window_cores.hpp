// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/core/device.hpp"
#include "tessera/core/dtype.hpp"
#include "tessera/graph/graph.hpp"

/// Which kind of core suits which windows of a graph, as hybrid plans of spmm choose: for reports
/// on orders of vertices.
namespace tessera::ops {

/// The windows that one kind of core has.
struct WindowShare {
  std::int64_t windows = 0;
  EdgeOffset edges = 0;
  EdgeOffset columns = 0;   ///< distinct ones of each window
  double predicted_us = 0;  ///< together

  /// Edges for each row of X that is gathered.
  double intensity() const noexcept {
    return columns == 0 ? 0 : static_cast<double>(edges) / static_cast<double>(columns);
  }
};

struct WindowCoreReport {
  int height = 0;   ///< rows of a window
  std::string gpu;  ///< whose costs decided
  WindowShare tensor;
  WindowShare cuda;
  std::vector<std::uint8_t> on_tensor_cores;  ///< for each window
};

/// By the costs of `device`, or of an H200 where that is no GPU.
WindowCoreReport window_cores(const Graph& graph, std::int64_t features = 128,
                              Precision precision = Precision::fp32, Device device = {});

}  // namespace tessera::ops

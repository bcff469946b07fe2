// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "json.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/ops/window_cores.hpp"

namespace tessera::app {

/// What an order makes of the windows of a graph: what `reorder --report` shows.
struct WindowReport {
  ops::WindowCoreReport cores;
  std::int64_t blocks = 0;  ///< of 16 x 8 places with columns side by side, as papers count them

  explicit WindowReport(const Graph& graph);

  std::int64_t windows() const { return cores.tensor.windows + cores.cuda.windows; }
  double tensor_edges() const;  ///< their share
  double intensity() const;     ///< of all windows
  double predicted_us() const { return cores.tensor.predicted_us + cores.cuda.predicted_us; }
};

std::string compared(const WindowReport& before, const WindowReport& after);
Json to_json(const WindowReport& report);
/// Lines below a picture.
std::vector<std::string> notes(const WindowReport& report);

}  // namespace tessera::app

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/graph/graph.hpp"
#include "tessera/ops/kernels.hpp"

namespace tessera::ops {

/// From the beginning of planning to its end. It begins with a survey of a graph that lies on the
/// plan's GPU, the one thing that planning waits for; at its end, the graph lets go of all that was
/// made of it for kernels that were not chosen.
class PlanningScope {
 public:
  /// `both_sides`: whether the transposed graph is needed; `short_windows`: whether kernels may
  /// want tiles of 8 or 16 rows. Throws `invalid_argument` inside a recording.
  PlanningScope(const Graph& graph, const PlanOptions& options, bool both_sides,
                bool short_windows = false);
  ~PlanningScope();
  PlanningScope(const PlanningScope&) = delete;
  PlanningScope& operator=(const PlanningScope&) = delete;

 private:
  Graph graph_;
};

}  // namespace tessera::ops

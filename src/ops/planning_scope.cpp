// SPDX-License-Identifier: Apache-2.0
#include "ops/planning_scope.hpp"

#include "graph/access.hpp"
#include "graph/requirements.hpp"
#include "ops/registry.hpp"
#include "tiles/survey.hpp"

namespace tessera::ops {

PlanningScope::PlanningScope(const Graph& graph, const PlanOptions& options, bool both_sides,
                             bool short_windows)
    : graph_(graph) {
  detail::require_whole(graph);
  require_available(options.device);
  refuse_while_recording();
  tiles::survey(graph, both_sides, short_windows, options.place());
}

PlanningScope::~PlanningScope() { detail::GraphAccess::release_unused(graph_); }

}  // namespace tessera::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/plan/planning_scope.hpp"

#include "graph/access.hpp"
#include "graph/requirements.hpp"
#include "ops/plan/registry.hpp"
#include "tessera/detail/ops/plan_only.hpp"

#ifdef TESSERA_WITH_CUDA
#include "tiles/cuda/survey.hpp"
#endif

namespace tessera::ops {
namespace {

thread_local bool planning_only = false;

}  // namespace

PlanningScope::PlanningScope(const Graph& graph, const PlanOptions& options,
                             [[maybe_unused]] bool both_sides, [[maybe_unused]] bool short_windows)
    : graph_(graph) {
  detail::require_whole(graph);
  require_available(options.device);
  refuse_while_recording();
#ifdef TESSERA_WITH_CUDA
  if (options.device.kind == DeviceKind::cuda && graph.device() == options.device) {
    tiles::survey_on_device(graph, both_sides, short_windows, options.place());
  }
#endif
}

PlanningScope::~PlanningScope() { detail::GraphAccess::release_unused(graph_); }

PlanOnly::PlanOnly(bool only) noexcept : before_(planning_only) { planning_only = only; }
PlanOnly::~PlanOnly() { planning_only = before_; }

bool plans_only() noexcept { return planning_only; }

}  // namespace tessera::ops

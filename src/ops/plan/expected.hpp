// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <utility>

#include "core/absent_gpu.hpp"
#include "ops/plan/planning_scope.hpp"
#include "ops/plan/registry.hpp"

namespace tessera::ops {

/// Costs for a GPU that need not be there, as long as it lives.
class ExpectedOn {
 public:
  explicit ExpectedOn(const DeviceProfile& gpu) : gpu_(gpu) {
    gpu.validate(gpu.name);
    require_available({DeviceKind::cuda, 0});
  }

  /// What would be chosen there.
  template <class KernelType>
  Explanation choice(std::span<const KernelType> table, const typename KernelType::Problem& problem,
                     const PlanOptions& options) const {
    return choose_kernel(table, problem, options).decision.explain();
  }

 private:
  AbsentGpu gpu_;
};

/// The same options on a GPU.
template <class Options>
Options on_a_gpu(Options options) {
  options.device = {DeviceKind::cuda, 0};
  options.tune = Tune::predicted;
  options.store = nullptr;
  return options;
}

inline void add_child(Explanation& explanation, const char* name, Explanation child) {
  child.name = name;
  explanation.children.push_back(std::move(child));
}

}  // namespace tessera::ops

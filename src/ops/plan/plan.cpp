// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/plan.hpp"

#include "ops/plan/check.hpp"
#include "ops/plan/plan_record.hpp"

namespace tessera::ops {

const PlanRecord& AnyPlan::record() const {
  if (record_ != nullptr) return *record_;
  refuse("the plan is empty", "plan",
         "make it with a planning function, and do not use it after moving it away");
}

const Graph& AnyPlan::graph() const { return record().graph; }
const KernelInfo& AnyPlan::kernel() const { return *record().kernel; }
bool AnyPlan::has_backward() const { return record().has_backward; }
std::int64_t AnyPlan::workspace_bytes() const { return record().workspace_bytes(); }
Explanation AnyPlan::explain() const { return record().decision.explain(); }

void require_backward(const AnyPlan& plan) {
  if (plan.has_backward()) return;
  refuse("the plan has no backward pass", "plan", "plan with PlanOptions::backward");
}

Decision by_same_kernel(const PlanRecord& record) {
  return Decision({record.kernel->name + ": has both passes", {}});
}

void check_plan_options(const PlanOptions& options, Precision precision) {
  check_enum("device", options.device.kind, DeviceKind::cuda);
  check_enum("tune", options.tune, Tune::measured);
  check_enum("precision", precision, Precision::fp16);
  if (options.epochs >= 1) return;
  refuse("a plan for " + std::to_string(options.epochs) + " epochs", "epochs", "give at least 1");
}

}  // namespace tessera::ops

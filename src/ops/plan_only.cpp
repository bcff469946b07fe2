// SPDX-License-Identifier: Apache-2.0
#include "ops/plan_only.hpp"

namespace tessera::ops {
namespace {

thread_local bool planning_only = false;

}  // namespace

PlanOnly::PlanOnly(bool only) noexcept : before_(planning_only) { planning_only = only; }
PlanOnly::~PlanOnly() { planning_only = before_; }

bool plans_only() noexcept { return planning_only; }

}  // namespace tessera::ops

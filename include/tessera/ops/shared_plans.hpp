// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/ops/plan_store.hpp"

namespace tessera::ops {

/// Adds to a file of plans what it does not have yet; a choice that it has stays. Where there is no
/// file, it is made. Processes that add to one file at the same time come one after the other, so
/// that no choice is lost. Throws `io` where another one keeps the file locked for half a minute.
void merge_plans(const PlanStore& store, const std::string& path);

}  // namespace tessera::ops

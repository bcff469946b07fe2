// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device_traits.hpp"
#include "ops/spmm/kernel.hpp"

namespace tessera::ops {

/// What cuSPARSE should take: it starts slowly, then gathers at a steady pace.
double predict_cusparse_us(const SpmmProblem& problem, const DeviceTraits& traits);

}  // namespace tessera::ops
